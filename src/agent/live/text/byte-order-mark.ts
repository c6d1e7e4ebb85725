/**
 * Some services swallow a byte-order mark at the offset they are asked for, and one of UTF-16 there makes UTF-16 of all
 * that follows (docs/servers.md 1.4). An answer whose first bytes are not known yet may be any of these: each says what
 * the service would show from another offset, so it is asked from there, and what does not fit is dropped.
 */
import { StringDecoder } from 'node:string_decoder';
import { BYTE_ORDER_MARK, characterStart, REPLACEMENT, standsAt, startsAlike } from '../../../bytes.ts';
import type { Content, Follow, Part } from '../../ports.ts';
import { HALF_BLOCK_BYTES, shows, WITHIN_BLOCK_BYTES } from './blocks.ts';
import { MARKS, type Mark } from './marks.ts';

/** `again`: the file changed while it was looked at. `second` is an answer that is worth to be used again. */
export interface MarkFound {
  readonly mark: Mark | 'none' | 'again';
  readonly second?: Part;
}

const NONE: MarkFound = { mark: 'none' };
const AGAIN: MarkFound = { mark: 'again' };

/** Text that is looked at from its beginning: less than a block. */
const HEAD_BYTES = 1_020;
/** What there has to be of it, to be asked for from the middle of its first block. */
const FEWEST_HALF_BLOCK_BYTES = 1_000;
/** Beyond this much text, asking for nearly all of it once more would cost too much. */
const SMALL_BYTES = 64 * 1024;
/** Text that is looked through in one go. */
const STEP_BYTES = 1024 * 1024;
/** Where the service is asked; the first one tells nearly everything. */
const OFFSETS = [1, 2, 3];

/** `text` is the answer from `from` on, where the file has the bytes `known`, as far as they are known. */
export async function* findMark(text: Content, from: number, known: Buffer): Follow<MarkFound> {
  const head = wholeCharacters(await text.read(0, HEAD_BYTES));
  const cut = head.indexOf(REPLACEMENT);
  const certain = cut < 0 ? head : head.subarray(0, cut);
  if (head.length === 0) return yield* askBehindNothing(from);
  // Of undecodable bytes nothing is certain: whoever finds out what they are finds the mark, too.
  if (certain.length === 0) return NONE;
  const marks = MARKS.filter((mark) => startsAlike(beginning(mark, certain), known));
  if (marks.length === 0) return NONE;
  const before = { text, from, head, certain, marks };
  return (yield* askCheaply(before)) ?? (yield* askNear(before));
}

/** A file that shows nothing may hold a mark and nothing else; it must not have grown in between. */
async function* askBehindNothing(from: number): Follow<MarkFound> {
  const part = yield from + 1;
  if (part === undefined) return AGAIN;
  if (part.content.length === 0) return NONE;
  const again = yield from;
  const rest = await part.content.read(0, WITHIN_BLOCK_BYTES);
  const [mark] = MARKS.filter(({ bytes }) => rest.equals(wholeCharacters(bytes.subarray(1))));
  return mark !== undefined && mark.encoder === undefined && again?.content.length === 0 ? { mark } : AGAIN;
}

interface Before {
  readonly text: Content;
  readonly from: number;
  /** The beginning of the text, and of that what stands before its first U+FFFD. */
  readonly head: Buffer;
  readonly certain: Buffer;
  readonly marks: readonly Mark[];
}

/** The bytes of the file if the mark stands before the text. */
function beginning({ bytes, encoder }: Mark, certain: Buffer): Buffer {
  return Buffer.concat([bytes, encoder === undefined ? certain : encoder.encode(certain.toString())]);
}

async function* askNear(before: Before): Follow<MarkFound> {
  const { text, from, head, certain } = before;
  let left: readonly Mark[] = before.marks;
  // Of the same few characters, what follows the last of them tells, if it is in sight.
  const isInSight = certain.length < head.length || head.length === text.length;
  const last = isInSight ? characterStart(certain, certain.length - 1) : 0;
  for (const at of last > 0 ? [...OFFSETS, last] : OFFSETS) {
    const part = yield from + at;
    if (part === undefined) return AGAIN;
    const found = await part.content.read(0, WITHIN_BLOCK_BYTES);
    const behind = { at, found, rest: head.subarray(certain.length), isAll: certain.length === text.length };
    const ofNone = Math.max(evidenceFor(certain, behind), evidenceOfCodePage(head, behind));
    // Where undecodable bytes stand, a mark may, too, so nothing is known of what is shown there.
    const isBlind = at >= certain.length && head.length > certain.length;
    const ofMarks = left.map((mark) => evidenceFor(beginning(mark, certain), behind));
    const most = Math.max(...ofMarks);
    if (most < 0 || ofNone > most) {
      if (ofNone > 0) return NONE;
      return (isBlind || ofNone === 0) && (yield* isAsBefore(before)) ? NONE : AGAIN;
    }
    // Of the two of UTF-16, only what contradicts one drops it: the bytes of one may say more than those of the other.
    const mayBeUtf16 = left.some(({ encoder }, index) => encoder !== undefined && ofMarks[index] === most);
    left = left.filter(({ encoder }, index) => {
      const evidence = ofMarks[index] ?? -1;
      return evidence === most || (evidence >= 0 && mayBeUtf16 && encoder !== undefined);
    });
    const [mark, ...others] = left;
    if (mark === undefined || others.length > 0) continue;
    const isSure = ofNone < 0 && (!isBlind || mark.encoder !== undefined);
    if (isSure || (ofNone < most && !isBlind)) return isSure || (yield* isAsBefore(before)) ? { mark } : AGAIN;
  }
  return AGAIN;
}

/** Where little was shown, the file must not have been truncated, or have grown, meanwhile. */
async function* isAsBefore({ text, from, head }: Before): Follow<boolean> {
  const part = yield from;
  return part?.content.length === text.length && shows(await part.content.read(0, HEAD_BYTES), head);
}

/** What was found `at` bytes behind the beginning; and what was shown behind the certain bytes, if these were UTF-8. */
interface Found {
  readonly at: number;
  readonly found: Buffer;
  readonly rest: Buffer;
  /** The certain bytes are all there is. */
  readonly isAll: boolean;
}

/** How much of what a service that decodes UTF-8 shows was found, if the file begins with `bytes`; -1 if it was not. */
function evidenceFor(bytes: Buffer, { at, found, rest, isAll }: Found): number {
  const shownOf = isAll ? (all: Buffer) => Buffer.from(all.toString()) : wholeCharacters;
  if (at > bytes.length) return -1;
  const isUtf16 = MARKS.some(({ encoder, bytes: mark }) => encoder !== undefined && startsAlike(mark, bytes));
  const follows = isUtf16 ? Buffer.alloc(0) : rest;
  const behind = bytes.subarray(at);
  const goesOn = isUtf16 && rest.length > 0 && found.length < WITHIN_BLOCK_BYTES;
  const asItIs = evidence(found, Buffer.concat([shownOf(behind), follows]), goesOn);
  const mark = MARKS.find((each) => each.bytes.equals(behind.subarray(0, each.bytes.length)));
  if (mark === undefined) return asItIs;
  // It may be swallowed.
  const marked = behind.subarray(mark.bytes.length);
  const shown = mark.encoder?.decode(marked) ?? Buffer.concat([shownOf(marked), follows]);
  return Math.max(asItIs, evidence(found, shown, goesOn));
}

/** The same of one with a code page. */
function evidenceOfCodePage(head: Buffer, { at, found }: Pick<Found, 'at' | 'found'>): number {
  return evidence(found, Buffer.from([...head.toString()].slice(at).join('')));
}

/** `goesOn`: there is more behind what is shown. */
function evidence(found: Buffer, shown: Buffer, goesOn = false): number {
  if (!shows(found, shown) || (goesOn && found.length <= shown.length)) return -1;
  return Math.min(shown.length, WITHIN_BLOCK_BYTES);
}

/** Asks where the answer serves as the second reading of a text full of cut characters, or where little is sent again. */
async function* askCheaply(before: Before): Follow<MarkFound | undefined> {
  const { text, from, head, certain, marks } = before;
  const [mark] = marks;
  if (mark === undefined || mark.encoder !== undefined) return undefined;
  const isCut = certain.length < text.length && (head.length > certain.length || (await hasUncertain(text)));
  let stretch = certain;
  let start = 0;
  if (isCut) {
    if (certain.length < FEWEST_HALF_BLOCK_BYTES) return undefined;
  } else {
    if (text.length <= SMALL_BYTES) return undefined;
    start = text.length - 2 * WITHIN_BLOCK_BYTES;
    stretch = await text.read(start, text.length);
  }
  const at = characterStart(stretch, isCut ? HALF_BLOCK_BYTES : WITHIN_BLOCK_BYTES);
  if (isNearMark(stretch, at)) return undefined;
  const part = yield from + start + at;
  if (part === undefined) return AGAIN;
  const second = isCut ? { second: part } : {};
  const found = await part.content.read(0, WITHIN_BLOCK_BYTES);
  const straight = shows(found, stretch.subarray(at));
  const shifted = isShifted(stretch, at, found);
  // Neither: perhaps it is UTF-16, or a code page; both: the text repeats itself.
  if (straight === shifted) return undefined;
  if (straight) return { mark: 'none', ...second };
  return (yield* isAsBefore(before)) ? { mark, ...second } : AGAIN;
}

async function hasUncertain(text: Content): Promise<boolean> {
  for (let at = 0; at < text.length; at += STEP_BYTES)
    if ((await text.read(at, at + STEP_BYTES + REPLACEMENT.length)).includes(REPLACEMENT)) return true;
  return false;
}

/** Whether the service, asked for `index` or three bytes before, would be asked at a mark, which it may swallow, too. */
function isNearMark(text: Buffer, index: number): boolean {
  return standsAt(text, index, BYTE_ORDER_MARK) || standsAt(text, index - BYTE_ORDER_MARK.length, BYTE_ORDER_MARK);
}

/** Whether `found` goes on three bytes before `index` of the text; that may be within a character. */
function isShifted(text: Buffer, index: number, found: Buffer): boolean {
  const shifted = text.subarray(index - BYTE_ORDER_MARK.length);
  return shows(found, wholeCharacters(shifted));
}

/** The text of bytes that may be cut within a character. */
function wholeCharacters(bytes: Buffer): Buffer {
  return Buffer.from(new StringDecoder('utf8').write(bytes));
}
