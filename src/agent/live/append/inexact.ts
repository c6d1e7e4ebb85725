/**
 * Substitutes undecodable bytes whose raw bytes are refused. Their number is determined, so that offsets stay right: a
 * response that starts with U+FFFD starts with undecodable bytes, at least one for each U+FFFD. The next request starts
 * after these, until a response starts with text: the one that the response before shows there. Otherwise the file
 * waits for raw bytes, or for other text.
 */
import { BYTE_ORDER_MARK, REPLACEMENT, standsAt, startsAlike } from '../../../bytes.ts';
import type { Content, Follow } from '../../ports.ts';
import { match } from '../match.ts';
import type { LiveFile } from '../mirror/live-file.ts';
import type { FollowEnd, Response } from '../steps.ts';
import { Marked, Reading } from '../text/reading.ts';

/** Maximum requests for one range; each at least halves it, except the longest ranges. */
const MAX_PROBES = 24;
/** Bytes of a response without a block edge (docs/servers.md 1.2). */
const UNCUT_BYTES = 1_020;
/** Bytes of text after U+FFFD that are compared. */
const FOLLOWING_BYTES = 64;
/** Bytes of text that must be equal before and after. */
const COMPARED_BYTES = 64 * 1024;

/**
 * Appends substituted bytes for the undecodable bytes that follow the mirror; they may begin within it, at `from`.
 * Returns a response whose cursor is after them, or the end of the poll: the range may end in an incomplete character,
 * or the file changed since `first`.
 */
export async function* fillInexact(file: LiveFile, from: number, first: Response): Follow<Response | FollowEnd> {
  const { decode } = first;
  let part = yield from;
  if (part === undefined) return 'absent';
  let next: Response | FollowEnd = { offset: from, part, reading: decode(part.content), decode };
  const found = await match(next.reading, file, { from, to: file.length });
  if (found.kind !== 'same') return 'unclear';
  // Where the mirror ends within the U+FFFD is shown by a request for its end.
  let isAtEnd = !found.open;
  let width = 0;
  for (let probes = 0; probes < MAX_PROBES; probes++) {
    const rest = next.reading.fork();
    const replaced = await rest.skipUncertain();
    if (isAtEnd) {
      // The first byte is undecodable: a text without U+FFFD lost a byte-order mark, or a block edge had cut it.
      if (replaced === 0 && from + width === file.length && !rest.atEnd()) return 'unclear';
      if (replaced === 0) break;
      // The last one may stand for an incomplete character.
      const sure = rest.atEnd() ? replaced - 1 : replaced;
      if (sure === 0) {
        next = 'tail';
        break;
      }
      width += Math.min(sure, UNCUT_BYTES);
    }
    isAtEnd = true;
    const offset = file.length + width;
    part = yield offset;
    if (part === undefined) return 'absent';
    const reading = await readBehind(rest, decode(part.content), part.content);
    if (reading === undefined) return 'unclear';
    next = { offset, part, reading, decode };
  }
  if (!(yield* isStillShown(first))) return 'unclear';
  if (width > 0) await file.appendInexact(width);
  return next;
}

/**
 * The text of `content`, if it starts with U+FFFD, or with what `follows`: with the byte-order mark that the server may
 * have stripped from it. Undefined if it starts otherwise, or with one of several such marks.
 */
async function readBehind(follows: Reading, text: Reading, content: Content): Promise<Reading | undefined> {
  const begins = Buffer.from(await text.peek(FOLLOWING_BYTES));
  const followed = await follows.peek(FOLLOWING_BYTES);
  if (begins.length === 0) return followed.length === 0 || !text.atEnd() ? text : undefined;
  const behindMark = standsAt(followed, 0, BYTE_ORDER_MARK) ? followed.subarray(BYTE_ORDER_MARK.length) : undefined;
  if (behindMark !== undefined && standsAt(behindMark, 0, BYTE_ORDER_MARK)) return undefined;
  if (followed.length > 0 && startsAlike(begins, followed)) return text;
  const isStripped = behindMark !== undefined && behindMark.length > 0 && startsAlike(begins, behindMark);
  return isStripped ? new Reading(new Marked(content)) : undefined;
}

/** Whether a repeated request returns the same text, or more: only then are the responses in between of one content. */
async function* isStillShown({ offset, part }: Response): Follow<boolean> {
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
