/**
 * Whether a service swallowed the byte-order mark at the beginning of a file (field notes 1). Its text then is three
 * bytes short and every later offset would be wrong, so it is found out before the first byte is appended: the service
 * is asked from another offset, and the two answers are held against each other.
 */
import { BYTE_ORDER_MARK, characterStart, REPLACEMENT, standsAt, startsAlike, widthOfLead } from '../../chunk.ts';
import type { Content, Part } from '../ports.ts';
import { agree } from './alike.ts';
import { HALF_BLOCK_BYTES, WITHIN_BLOCK_BYTES } from './blocks.ts';
import type { TextEncoding } from './encoding.ts';
import { type Reading, Utf8Reading } from './reading.ts';
import type { Follow } from './recipe.ts';

type Mark = 'none' | 'swallowed' | 'again';

/** `again`: the file changed while it was looked at. `second` is an answer of the probe that is worth to be used again. */
export interface MarkFound {
  readonly mark: Mark;
  readonly second?: Part;
}

/** A text with the byte-order mark that the service swallowed. */
export class Marked implements Content {
  readonly length: number;
  readonly #content: Content;

  constructor(content: Content) {
    this.#content = content;
    this.length = BYTE_ORDER_MARK.length + content.length;
  }

  async read(start: number, end: number, space?: Buffer): Promise<Buffer> {
    const mark = BYTE_ORDER_MARK.subarray(start, end);
    const width = BYTE_ORDER_MARK.length;
    const rest = await this.#content.read(Math.max(0, start - width), Math.max(0, end - width), space);
    return mark.length === 0 ? rest : Buffer.concat([mark, rest]);
  }

  /** The text itself is given back by whoever received it. */
  async release(): Promise<void> {}
}

/** Beyond this much text, asking for nearly all of it once more would cost too much. */
const SMALL_BYTES = 64 * 1024;
/** Text that is looked through in one go. */
const STEP_BYTES = 1024 * 1024;

/** `text` was asked for from offset 0. */
export async function* findMark(text: Content, encoding: TextEncoding): Follow<MarkFound> {
  const head = await text.read(0, SMALL_BYTES);
  // Of undecodable bytes at the beginning nothing is certain: whoever finds out what they are finds the mark, too.
  if (standsAt(head, 0, REPLACEMENT)) return { mark: 'none' };
  let found: MarkFound | undefined;
  if (text.length === 0) found = yield* askBehindNothing();
  if (head.includes(REPLACEMENT)) found = yield* askHalfBlock(head);
  else if (text.length > SMALL_BYTES) found = yield* askEnd(text);
  found ??= yield* askBehindFirst(text, head);
  if (found.mark === 'swallowed') encoding.learnMark('swallowed');
  // A mark in the text could be the second of two, the first of which was swallowed.
  else if (found.mark === 'none' && standsAt(head, 0, BYTE_ORDER_MARK)) encoding.learnMark('kept');
  return found;
}

/** A file without text may hold a mark and nothing else; it must not have grown in between. */
async function* askBehindNothing(): Follow<MarkFound> {
  const part = yield 1;
  if (part === undefined) return { mark: 'again' };
  if (part.content.length === 0) return { mark: 'none' };
  const again = yield 0;
  const rest = await part.content.read(0, SMALL_BYTES);
  const marked = rest.equals(Buffer.concat([REPLACEMENT, REPLACEMENT])) && again?.content.length === 0;
  return { mark: marked ? 'swallowed' : 'again' };
}

/**
 * From offset 1, a swallowed mark shows its other two bytes as U+FFFD, and then all of the text; without a mark, the
 * rest of the first character is shown as U+FFFD, and then what follows it.
 */
async function* askBehindFirst(text: Content, head: Buffer): Follow<MarkFound> {
  const part = yield 1;
  if (part === undefined) return { mark: 'again' };
  const found = await part.content.read(0, SMALL_BYTES);
  const straight = goesOnBehindFirst(found, head);
  const shifted = goOnAlike(found, Buffer.concat([REPLACEMENT, REPLACEMENT, head]));
  if (straight && shifted) return { mark: await markByEnds(text, part.content, widthOfLead(head[0] ?? 0)) };
  return { mark: straight ? 'none' : shifted ? 'swallowed' : 'again' };
}

/** Whether `found` is what `head` looks like from its second byte on. */
function goesOnBehindFirst(found: Buffer, head: Buffer): boolean {
  const width = widthOfLead(head[0] ?? 0);
  const behind = head.subarray(width);
  // A mark that stands right there is swallowed, too.
  const unmarked = standsAt(behind, 0, BYTE_ORDER_MARK) ? behind.subarray(BYTE_ORDER_MARK.length) : undefined;
  const cut = Buffer.concat([...Array<Buffer>(width - 1).fill(REPLACEMENT), behind]);
  return goOnAlike(found, cut) || (width === 1 && unmarked !== undefined && goOnAlike(found, unmarked));
}

/** The same few bytes again and again: only the end can tell whether one character of three bytes is missing. */
async function markByEnds(text: Content, found: Content, width: number): Promise<Mark> {
  const straight = await endTogether(new Utf8Reading(text, width), new Utf8Reading(found));
  const shifted = await endTogether(new Utf8Reading(text), new Utf8Reading(found));
  if (straight === shifted) return 'again';
  return straight ? 'none' : 'swallowed';
}

/** Whether two readings, each behind the replacement characters at which it may stand, go on alike to their end. */
async function endTogether(left: Reading, right: Reading): Promise<boolean> {
  for (;;) {
    await left.skipUncertain();
    await right.skipUncertain();
    const { end } = await agree(left, right, Number.POSITIVE_INFINITY);
    if (end !== 'uncertain') return end === 'both';
  }
}

function withoutReplaced(text: Buffer): { replaced: number; rest: Buffer } {
  let at = 0;
  while (standsAt(text, at, REPLACEMENT)) at += REPLACEMENT.length;
  return { replaced: at / REPLACEMENT.length, rest: text.subarray(at) };
}

/** Whether two texts go on alike, as far as no block edge falls between them. */
function goOnAlike(found: Buffer, expected: Buffer): boolean {
  return found.length >= expected.length
    ? startsAlike(found.subarray(0, WITHIN_BLOCK_BYTES), expected.subarray(0, WITHIN_BLOCK_BYTES))
    : found.length >= WITHIN_BLOCK_BYTES &&
        startsAlike(found.subarray(0, WITHIN_BLOCK_BYTES), expected.subarray(0, WITHIN_BLOCK_BYTES));
}

/** Whether the service, asked for `index` or three bytes before, would be asked at a mark, which it may swallow, too. */
function isNearMark(text: Buffer, index: number): boolean {
  return standsAt(text, index, BYTE_ORDER_MARK) || standsAt(text, index - BYTE_ORDER_MARK.length, BYTE_ORDER_MARK);
}

/** Half a block on: the answer also serves as the second reading of a text that is full of cut characters. */
async function* askHalfBlock(head: Buffer): Follow<MarkFound | undefined> {
  const certain = head.subarray(0, head.indexOf(REPLACEMENT));
  if (certain.length < 2 * HALF_BLOCK_BYTES - 4) return undefined;
  const offset = characterStart(certain, HALF_BLOCK_BYTES);
  if (isNearMark(certain, offset)) return undefined;
  const part = yield offset;
  if (part === undefined) return { mark: 'again' };
  const mark = compareShifted(certain, offset, await part.content.read(0, WITHIN_BLOCK_BYTES));
  return mark === undefined ? undefined : { mark, second: part };
}

/** Near the end of a long text without a cut: little has to be sent again. */
async function* askEnd(text: Content): Follow<MarkFound | undefined> {
  for (let at = 0; at < text.length; at += STEP_BYTES) {
    if ((await text.read(at, at + STEP_BYTES + REPLACEMENT.length)).includes(REPLACEMENT)) return undefined;
  }
  const start = text.length - 2 * WITHIN_BLOCK_BYTES;
  const end = await text.read(start, text.length);
  const index = characterStart(end, WITHIN_BLOCK_BYTES);
  if (isNearMark(end, index)) return undefined;
  const part = yield start + index;
  if (part === undefined) return { mark: 'again' };
  const mark = compareShifted(end, index, await part.content.read(0, WITHIN_BLOCK_BYTES));
  return mark === undefined ? undefined : { mark };
}

/**
 * Whether `stretch` goes on at `index` of the text, where a character begins, or three bytes before; undefined if that
 * cannot be told apart.
 */
function compareShifted(text: Buffer, index: number, stretch: Buffer): Mark | undefined {
  const before = index - BYTE_ORDER_MARK.length;
  const { replaced, rest } = withoutReplaced(stretch);
  // Three bytes before may be within a character; its rest is shown as U+FFFD, and then what follows it.
  if (replaced > 0) return startsAlike(text.subarray(before + replaced), rest) ? 'swallowed' : 'again';
  const straight = startsAlike(text.subarray(index), stretch);
  const shifted = startsAlike(text.subarray(before), stretch);
  if (straight && shifted) return undefined;
  return straight ? 'none' : shifted ? 'swallowed' : 'again';
}
