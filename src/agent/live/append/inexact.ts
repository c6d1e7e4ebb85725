/**
 * Undecodable bytes whose raw bytes cannot be had: what they are is unknown, but how many there are is not, so that the
 * mirror does not drift. A response that begins with U+FFFD begins with undecodable bytes, at least one for each; it is
 * requested from behind these, again and again, until it begins with text.
 */
import { BYTE_ORDER_MARK, REPLACEMENT, standsAt, startsAlike, widthOfLead } from '../../../bytes.ts';
import type { Content, Follow } from '../../ports.ts';
import type { LiveFile } from '../mirror/live-file.ts';
import type { Answer, FirstResponse, FollowEnd } from '../steps.ts';
import { WITHIN_BLOCK_BYTES } from '../text/blocks.ts';
import { findMark } from '../text/byte-order-mark.ts';
import { type Decode, readMarked } from '../text/explain.ts';
import type { Reading } from '../text/reading.ts';

/** Requests for one stretch; each halves it at least, but for the longest ones. */
const MAX_PROBES = 24;
/** Bytes of a response into which no block edge falls (docs/servers.md 1.2). */
const UNCUT_BYTES = 1_020;
/** Text behind U+FFFD that is compared. */
const FOLLOWING_BYTES = 64;
/** Text that has to be the same before and after. */
const COMPARED_BYTES = 64 * 1024;

/**
 * Fills the mirror where it ends before undecodable bytes, at which `text` stands. Returns a response that stands behind
 * what was filled, or how the poll ends: the stretch may still end in a character that is not complete, or the file
 * changed.
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
    // The last one may stand for a character that is not complete yet.
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
 * The response from `offset`, which is within the undecodable bytes at which `before` stands, or behind them. One that
 * begins with text is right behind them if it goes on as that one does, or with a character that was cut there; else it
 * has lost a byte-order mark.
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
  // Of few bytes, and of one mark behind the other, the beginning is no evidence: the text has to be as long, too.
  const isWeak = follows.remaining() < WITHIN_BLOCK_BYTES || (isMark && standsAt(followed, 3, BYTE_ORDER_MARK));
  const beginsAlike = (bytes: Buffer, others: Buffer) =>
    bytes.length > 0 && others.length > 0 && startsAlike(bytes, others);
  const isAlike = (bytes: Buffer, others: Buffer, moreBytes: number) =>
    beginsAlike(bytes, others) && (!isWeak || reading.remaining() === follows.remaining() + moreBytes);
  const width = widthOfLead(begins[0] ?? 0);
  const isBehind = isAlike(begins, followed, 0);
  const isCut = isAlike(begins.subarray(width), followed, width);
  // At the beginning of the undecodable bytes there is one at least: a response without it has lost a mark.
  const hasLostMark = isStart && isBehind;
  if (hasLostMark !== isCut || (isBehind && !isStart))
    return { offset, reading: hasLostMark && !isCut ? readMarked(part.content, { bytes: BYTE_ORDER_MARK }) : reading };
  if (isMark) {
    // The response from the mark itself is what follows the mark, if it was swallowed.
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
  // Of one character again and again, either may be; and an edge may cut another character in either response, which
  // makes its text longer. The text of other offsets has decided.
  const isNear = (!isStart && beginsAlike(begins, followed)) || beginsAlike(begins.subarray(width), followed);
  return isNear ? { offset, reading } : 'again';
}

/** Whether a response would still be the same, or longer: only then were those since then of the same content. */
export async function* isStillShown({ offset, part }: FirstResponse): Follow<boolean> {
  const again = yield offset;
  return again !== undefined && (await goesOnAs(part.content, again.content));
}

/** Whether the later text begins with the earlier one, but for a character at its end that was not complete. */
async function goesOnAs(earlier: Content, later: Content): Promise<boolean> {
  const before = await earlier.read(0, COMPARED_BYTES);
  let end = before.length;
  while (end >= REPLACEMENT.length && before.subarray(end - REPLACEMENT.length, end).equals(REPLACEMENT))
    end -= REPLACEMENT.length;
  const after = await later.read(0, COMPARED_BYTES);
  return after.length >= end && startsAlike(after, before.subarray(0, end));
}
