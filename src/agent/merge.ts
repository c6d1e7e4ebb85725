/**
 * Two readings of one file, asked from offsets half a block apart. The service decodes independent blocks counted from
 * the offset asked for (field notes 1), so a character that a block edge cuts in one reading is whole in the other:
 * together they are certain over all of the text, for twice its bytes, however many characters were cut.
 */
import { commonLength, widthOfLead } from '../chunk.ts';
import type { Reading } from './reading.ts';

const STEP_BYTES = 1024 * 1024;

/**
 * Gives the certain bytes of both, in order, to `write`; both stand at the same position of the file at first. Stops
 * where neither is certain, or where the two contradict each other (the file was rewritten in between).
 */
export async function merge(left: Reading, right: Reading, write: (bytes: Buffer) => Promise<void>): Promise<void> {
  for (;;) {
    const a = await left.peek(STEP_BYTES);
    const b = await right.peek(STEP_BYTES);
    const common = commonLength(a, b);
    if (common > 0) {
      await write(a.subarray(0, common));
      left.advance(common);
      right.advance(common);
    }
    if (common < a.length && common < b.length) return;
    if (common > 0) continue;
    const [whole, bytes, cut] = a.length > 0 ? [left, a, right] : [right, b, left];
    if (bytes.length === 0) return;
    const count = cut.atEnd() ? bytes.length : await crossCut(cut, bytes);
    if (count === 0) return;
    await write(bytes.subarray(0, count));
    whole.advance(count);
  }
}

const RESUME_BYTES = 64;

/**
 * Moves `cut` past its replacement characters, to where it goes on like `whole` does behind its first character. The
 * bytes of that character; 0 if the two do not go on alike, or nothing follows that could show it.
 */
async function crossCut(cut: Reading, whole: Buffer): Promise<number> {
  const width = widthOfLead(whole[0] ?? 0);
  await cut.skipUncertain();
  const resumes = await cut.peek(RESUME_BYTES);
  const follows = whole.subarray(width, width + resumes.length);
  if (cut.atEnd()) return width <= whole.length ? width : 0;
  return follows.length > 0 && commonLength(follows, resumes) === follows.length ? width : 0;
}
