/**
 * Two readings of one file, asked from offsets half a block apart. The service decodes independent blocks counted from
 * the offset asked for (field notes 1), so a character that a block edge cuts in one reading is whole in the other:
 * together they are certain over all of the text, for twice its bytes, however many characters were cut.
 */
import { commonLength, startsAlike, widthOfLead } from '../../chunk.ts';
import type { Reading } from './reading.ts';

const STEP_BYTES = 1024 * 1024;

/**
 * The certain bytes of both, in order; both stand at the same position of the file at first. Ends where neither is
 * certain, or where the two contradict each other (the file was rewritten in between).
 */
export async function* merge(left: Reading, right: Reading): AsyncGenerator<Buffer, void> {
  for (;;) {
    const a = await left.peek(STEP_BYTES);
    const b = await right.peek(STEP_BYTES);
    const common = commonLength(a, b);
    if (common > 0) {
      yield a.subarray(0, common);
      left.advance(common);
      right.advance(common);
    }
    if (common < a.length && common < b.length) return;
    if (common > 0) continue;
    const [whole, bytes, cut] = a.length > 0 ? [left, a, right] : [right, b, left];
    if (bytes.length === 0) return;
    const count = cut.atEnd() ? bytes.length : await widthOfCut(cut.fork(), bytes);
    if (count === 0) return;
    yield bytes.subarray(0, count);
    whole.advance(count);
    await cut.skipUncertain();
  }
}

const RESUME_BYTES = 64;

/**
 * The bytes of the first character of `whole` if it is the one that `cut` has replaced: if behind it, both go on alike.
 * Else, or if nothing follows that could show it, 0.
 */
async function widthOfCut(cut: Reading, whole: Buffer): Promise<number> {
  const width = widthOfLead(whole[0] ?? 0);
  await cut.skipUncertain();
  if (cut.atEnd()) return width <= whole.length ? width : 0;
  const resumes = await cut.peek(RESUME_BYTES);
  const follows = whole.subarray(width, width + resumes.length);
  return follows.length > 0 && startsAlike(follows, resumes) ? width : 0;
}
