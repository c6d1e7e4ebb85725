/**
 * Substitutes undecodable bytes whose raw bytes are refused. Their number is determined, so that offsets stay right: a
 * response that starts with U+FFFD starts with undecodable bytes, at least one for each U+FFFD. The next request starts
 * after these, until a response starts with text.
 */
import { BYTE_ORDER_MARK, REPLACEMENT, standsAt, startsAlike, widthOfLead } from '../../../bytes.ts';
import type { Content, Follow } from '../../ports.ts';
import type { LiveFile } from '../mirror/live-file.ts';
import type { Answer, FirstResponse, FollowEnd } from '../steps.ts';
import { WITHIN_BLOCK_BYTES } from '../text/blocks.ts';
import { findMark } from '../text/byte-order-mark.ts';
import { type Decode, readMarked } from '../text/explain.ts';
import type { Reading } from '../text/reading.ts';

/** Maximum requests for one range; each at least halves it, except the longest ranges. */
const MAX_PROBES = 24;
/** Bytes of a response without a block edge (docs/servers.md 1.2). */
const UNCUT_BYTES = 1_020;
/** Bytes of text after U+FFFD that are compared. */
const FOLLOWING_BYTES = 64;
/** Bytes of text that must be equal before and after. */
const COMPARED_BYTES = 64 * 1024;

/**
 * Appends substituted bytes for the undecodable bytes at the cursor of `text`. Returns a response whose cursor is after
 * them, or the end of the poll: the range may end in an incomplete character, or the file changed.
 */
export async function* fillInexact(
  file: LiveFile,
  text: Reading,
  { first, decode }: { readonly first: FirstResponse; readonly decode: Decode },
): Follow<Answer | FollowEnd> {
  let width = 0;
  let next: Answer | FollowEnd = 'raw';
  let before = text;
  for (let probes = 0; probes < MAX_PROBES; probes++) {
    const behind = yield* readBehind(before, file.length + width, decode, width === 0);
    if (behind === 'again') return 'unclear';
    next = behind;
    before = behind.reading;
    const rest = behind.reading.fork();
    const replaced = await rest.skipUncertain();
    if (replaced === 0) break;
    // The last one may stand for an incomplete character.
    const sure = rest.atEnd() ? replaced - 1 : replaced;
    next = sure === 0 ? 'tail' : 'raw';
    if (sure === 0) break;
    width += Math.min(sure, UNCUT_BYTES);
  }
  if (width === 0 && typeof next === 'string') return next;
  if (!(yield* isStillShown(first))) return 'unclear';
  if (width > 0) await file.appendInexact(width);
  return next;
}

/**
 * Requests `offset`, which is within the undecodable bytes at the cursor of `before`, or after them. A response that
 * starts with text is directly after them if it continues like `before`, or with a character that an edge cut there.
 * Otherwise the server stripped a byte-order mark from it.
 */
export async function* readBehind(
  before: Reading,
  offset: number,
  decode: Decode,
  isStart = false,
): Follow<Answer | 'again'> {
  const part = yield offset;
  if (part === undefined) return 'again';
  const reading = decode(part.content);
  const begins = Buffer.from(await reading.peek(FOLLOWING_BYTES));
  const follows = before.fork();
  await follows.skipUncertain();
  const followed = Buffer.from(await follows.peek(FOLLOWING_BYTES));
  const isMark = standsAt(followed, 0, BYTE_ORDER_MARK);
  // For few bytes, an equal start proves nothing: the length must be equal, too.
  const isWeak = follows.remaining() < WITHIN_BLOCK_BYTES;
  // For a mark after a mark, not even the length proves anything: a short read cuts the two texts at different places.
  const isRow = isMark && standsAt(followed, BYTE_ORDER_MARK.length, BYTE_ORDER_MARK);
  const beginsAlike = (bytes: Buffer, others: Buffer) =>
    bytes.length > 0 && others.length > 0 && startsAlike(bytes, others);
  const isAlike = (bytes: Buffer, others: Buffer, moreBytes: number) =>
    !isRow && beginsAlike(bytes, others) && (!isWeak || reading.remaining() === follows.remaining() + moreBytes);
  const width = widthOfLead(begins[0] ?? 0);
  const isBehind = isAlike(begins, followed, 0);
  const isCut = isAlike(begins.subarray(width), followed, width);
  // The first byte is undecodable: a response without U+FFFD lost a byte-order mark.
  const hasLostMark = isStart && isBehind;
  if (hasLostMark !== isCut || (isBehind && !isStart))
    return { offset, reading: hasLostMark && !isCut ? readMarked(part.content, { bytes: BYTE_ORDER_MARK }) : reading };
  if (isMark) {
    // If the server stripped the mark, the response from the mark shows what follows it.
    const behindMark = followed.subarray(BYTE_ORDER_MARK.length);
    const isReplaced = begins.length === 0 && behindMark.length === 0;
    const isAsLong = reading.remaining() === follows.remaining() - BYTE_ORDER_MARK.length;
    if ((isReplaced && isAsLong) || isAlike(begins, behindMark, -BYTE_ORDER_MARK.length))
      return { offset, reading: readMarked(part.content, { bytes: BYTE_ORDER_MARK }) };
  }
  if (begins.length === 0) return { offset, reading };
  const { mark } = yield* findMark(part.content, offset, Buffer.alloc(0));
  if (mark === 'again') return 'again';
  if (mark !== 'none') return { offset, reading: readMarked(part.content, mark) };
  // A repeated character fits both ways, and an edge that cuts another character makes a text longer. Other offsets
  // have shown that there is no mark.
  const isNear = (!isStart && beginsAlike(begins, followed)) || beginsAlike(begins.subarray(width), followed);
  return isNear ? { offset, reading } : 'again';
}

/** Whether a repeated request returns the same text, or more: only then are the responses in between of one content. */
export async function* isStillShown({ offset, part }: FirstResponse): Follow<boolean> {
  const again = yield offset;
  return again !== undefined && (await goesOnAs(part.content, again.content));
}

/** Whether the later text starts with the earlier one, except an incomplete character at its end. */
async function goesOnAs(earlier: Content, later: Content): Promise<boolean> {
  const before = await earlier.read(0, COMPARED_BYTES);
  let end = before.length;
  while (end >= REPLACEMENT.length && before.subarray(end - REPLACEMENT.length, end).equals(REPLACEMENT))
    end -= REPLACEMENT.length;
  const after = await later.read(0, COMPARED_BYTES);
  return after.length >= end && startsAlike(after, before.subarray(0, end));
}
