/**
 * Substitutes undecodable bytes whose raw bytes are refused. Their number is determined, so that offsets stay right: a
 * response that starts with U+FFFD starts with undecodable bytes, at least one for each U+FFFD. The next request starts
 * after these, until a response starts with text: the one that the response before shows there. Otherwise the file
 * waits for raw bytes, or for other text.
 */
import { BYTE_ORDER_MARK, standsAt, startsAlike, widthOfLead } from '../../../bytes.ts';
import type { FileParts } from '../../ports/server.ts';
import { match } from '../match.ts';
import type { LiveFile } from '../mirror/live-file.ts';
import { startsCharacter } from '../offsets.ts';
import type { FollowEnd, Response, Shown } from '../steps.ts';
import { Reading } from '../text/reading.ts';
import { appendCertain } from './append.ts';

/** Maximum requests for one range; each at least halves it, except the longest ranges. */
const MAX_PROBES = 24;
/** Bytes of a response without a block edge (docs/dev/servers.md 1.2). */
const UNCUT_BYTES = 1_020;
/** So many U+FFFD, of at most three bytes each, and the character after them fit into UNCUT_BYTES. */
const MAX_UNCUT_REPLACED = 300;
/** Bytes of text after U+FFFD that are compared. */
const FOLLOWING_BYTES = 64;
/** Bytes of text that must be equal before and after. */
const COMPARED_BYTES = 64 * 1024;
/** Maximum ranges in one poll; each takes a few requests. The others wait for the next poll. */
const MAX_RANGES = 8;
/** Bytes of the longest character. */
const WIDEST_BYTES = 4;
const TWO_MARKS = Buffer.concat([BYTE_ORDER_MARK, BYTE_ORDER_MARK]);

interface Substitution {
  /** The response that shows the undecodable bytes. */
  readonly first: Shown;
  readonly parts: FileParts;
  /** Why raw bytes are refused. */
  readonly reason: string;
}

/** Appends the text, with substituted bytes for undecodable ones, which may begin within the mirror, at `from`. */
export async function substitute(file: LiveFile, from: number, how: Substitution): Promise<FollowEnd> {
  let start = from;
  for (let ranges = 0; ranges < MAX_RANGES; ranges++) {
    const filled = await fill(file, start, how);
    if (typeof filled === 'string') return filled;
    await appendCertain(file, filled.reading);
    if (filled.reading.atEnd()) return 'current';
    start = file.length;
  }
  return 'raw';
}

/**
 * Appends substituted bytes for one range of undecodable bytes. Returns a response whose cursor is after them, or the end
 * of the poll: the range may end in an incomplete character, or the file changed since `first`.
 */
async function fill(
  file: LiveFile,
  from: number,
  { first, parts, reason }: Substitution,
): Promise<Response | FollowEnd> {
  let part = await parts.at(from);
  if (part === undefined) return 'absent';
  let next: Response | FollowEnd = { ...part, reading: new Reading(part.content) };
  // Undecodable bytes are shown as U+FFFD, but for a mark of UTF-16, which makes other text of all that follows.
  const isUndecodable = from < file.length && !startsCharacter(await file.read(from, from + WIDEST_BYTES), 0);
  if (isUndecodable && (await next.reading.fork().skipUncertain(1)) === 0) return 'unclear';
  const found = await match(next.reading, file, { from, to: file.length });
  if (found.kind !== 'same') return 'unclear';
  // Where the mirror ends within the U+FFFD is shown by a request for its end.
  let isAtEnd = !found.open;
  let width = 0;
  let follows: Reading | undefined;
  for (let probes = 0; probes < MAX_PROBES; probes++) {
    const rest = next.reading.fork();
    const replaced = await rest.skipUncertain();
    if (isAtEnd) {
      // The first byte is undecodable: a text without U+FFFD lost a byte-order mark, or a block edge had cut it.
      if (replaced === 0 && width === 0 && from === file.length && !rest.atEnd()) return 'unclear';
      if (replaced === 0 && follows !== undefined && !(await startsThere(follows, next, parts))) return 'unclear';
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
    part = await parts.at(offset);
    if (part === undefined) return 'absent';
    const reading = new Reading(part.content);
    if (!(await isAfter(rest, reading, replaced))) return 'unclear';
    next = { ...part, reading };
    follows = rest;
  }
  if (!(await isStillShown(first, parts))) return 'unclear';
  if (width > 0) await file.appendInexact(width, reason);
  return next;
}

/** Whether a text goes on with what `follows` so many U+FFFD in the text before it, perhaps after some of them. */
async function isAfter(follows: Reading, text: Reading, replaced: number): Promise<boolean> {
  const rest = text.fork();
  // Beyond that, the edge of a block may have cut what follows in one of the texts.
  const isUncut = replaced <= MAX_UNCUT_REPLACED;
  const isWithin = isUncut && (await rest.skipUncertain(MAX_UNCUT_REPLACED)) > 0;
  const begins = Buffer.from(await rest.peek(FOLLOWING_BYTES));
  const followed = await follows.peek(FOLLOWING_BYTES);
  if (begins.length === 0) return followed.length === 0 || !rest.atEnd();
  if (isWithin && followed.length === 0) return true;
  // The server may strip one of several marks unseen.
  const isMarks = standsAt(followed, 0, TWO_MARKS);
  return followed.length > 0 && !isMarks && startsAlike(begins, followed);
}

/** Whether text starts at the offset of a response: a mark of UTF-16 there makes such text of undecodable bytes. */
async function startsThere(follows: Reading, { offset }: Response, parts: FileParts): Promise<boolean> {
  const [lead = 0] = await follows.peek(1);
  const bytes = widthOfLead(lead);
  follows.advance(bytes);
  const later = await parts.at(offset + bytes);
  return later !== undefined && (await new Reading(later.content).skipUncertain(1)) <= (await follows.skipUncertain(1));
}

/** Whether a repeated request returns the same text, or more: only then are the responses in between of one content. */
async function isStillShown({ offset, content }: Shown, parts: FileParts): Promise<boolean> {
  const again = await parts.at(offset);
  if (again === undefined) return false;
  const before = await content.read(0, COMPARED_BYTES);
  return before.equals(await again.content.read(0, before.length));
}
