/**
 * The bytes that two responses show of a file. The edge of a block cuts a character in one of them; in the other one,
 * which was requested half a block later, it is whole. It counts if both go on alike after it: otherwise the file changed
 * between them.
 */
import { commonLength, widthOfLead } from '../../bytes.ts';
import type { Reading } from './reading.ts';

/** Bytes after a cut character that must be equal, as far as both responses show them. */
const FOLLOWING_BYTES = 1024;
const NONE = Buffer.alloc(0);

/**
 * Moves both cursors, which are at one place of the file, past the next bytes, at most `max` or one block, and returns
 * these; empty if neither response shows what follows; undefined if they contradict each other.
 */
export async function nextAgreed(first: Reading, second: Reading, max: number): Promise<Buffer | undefined> {
  const [ours, theirs] = [await first.peek(max), await second.peek(max)];
  if (ours.length > 0 && theirs.length > 0) {
    const common = commonLength(ours, theirs);
    first.advance(common);
    second.advance(common);
    return common === 0 ? undefined : ours.subarray(0, common);
  }
  if (first.atEnd() || (ours.length === 0 && theirs.length === 0)) return NONE;
  const [shown, cut] = ours.length > 0 ? [first, second] : [second, first];
  const bytes = Buffer.from(await shown.peek(4 + FOLLOWING_BYTES));
  const width = widthOfLead(bytes[0] ?? 0);
  // The second response may have ended before: the file grew between them, or shrank.
  if (cut.atEnd()) return undefined;
  // No decoder makes U+FFFD of an ASCII character.
  if (width === 1 || bytes.length < width) return undefined;
  const past = cut.fork();
  await past.skipUncertain();
  // The first response ends within a character: nothing after it shows that the second one is of the same content.
  if (cut === first && past.atEnd()) return NONE;
  await cut.skipUncertain();
  const after = bytes.subarray(width);
  const follows = await cut.peek(FOLLOWING_BYTES);
  if (after.length === 0 && follows.length > 0) return NONE;
  const common = commonLength(after, follows);
  if (common < Math.min(after.length, follows.length)) return undefined;
  shown.advance(width + common);
  cut.advance(common);
  return bytes.subarray(0, width + common);
}
