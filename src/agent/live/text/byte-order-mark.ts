/**
 * Some servers strip a byte-order mark at the requested offset; one of UTF-16 makes them decode all that follows as
 * UTF-16 (docs/servers.md 1.4). A response whose first bytes are unknown may be any of these. Each possibility predicts
 * the text from other offsets; requests from there exclude those that do not match.
 */
import { StringDecoder } from 'node:string_decoder';
import { BYTE_ORDER_MARK, characterStart, REPLACEMENT, standsAt, startsAlike } from '../../../bytes.ts';
import type { Content, Follow, Part } from '../../ports.ts';
import { HALF_BLOCK_BYTES, shows, WITHIN_BLOCK_BYTES } from './blocks.ts';
import { MARKS, type Mark } from './marks.ts';

/** `again`: the file changed between the requests. `second`: a response that the caller can use, too. */
export interface MarkFound {
  readonly mark: Mark | 'none' | 'again';
  readonly second?: Part;
}

const NONE: MarkFound = { mark: 'none' };
const AGAIN: MarkFound = { mark: 'again' };

/** Bytes at the start of the text that are examined: less than a block. */
const HEAD_BYTES = 1_020;
/** Minimum text for a request from the middle of its first block. */
const FEWEST_HALF_BLOCK_BYTES = 1_000;
/** A longer text is too expensive to request again from its start. */
const SMALL_BYTES = 64 * 1024;
/** Bytes of text that are searched at a time. */
const STEP_BYTES = 1024 * 1024;
/** Offsets of the requests; the first one nearly always suffices. */
const OFFSETS = [1, 2, 3];

/** Finds the mark that was stripped from `text`, the response from `from` on, where the file starts with `known`. */
export async function* findMark(text: Content, from: number, known: Buffer): Follow<MarkFound> {
  const head = wholeCharacters(await text.read(0, HEAD_BYTES));
  const cut = head.indexOf(REPLACEMENT);
  const certain = cut < 0 ? head : head.subarray(0, cut);
  if (head.length === 0) return yield* askBehindNothing(from);
  // Undecodable bytes predict nothing: the raw download, or readBehind, finds the mark.
  if (certain.length === 0) return NONE;
  const marks = MARKS.filter((mark) => startsAlike(beginning(mark, certain), known));
  if (marks.length === 0) return NONE;
  const before = { text, from, head, certain, marks };
  return (yield* askCheaply(before)) ?? (yield* askNear(before));
}

/** An empty text may be a mark alone; the file must not have grown between the requests. */
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
  /** The start of the text, and its part before the first U+FFFD. */
  readonly head: Buffer;
  readonly certain: Buffer;
  readonly marks: readonly Mark[];
}

/** The bytes of the file if the mark precedes the text. */
function beginning({ bytes, encoder }: Mark, certain: Buffer): Buffer {
  return Buffer.concat([bytes, encoder === undefined ? certain : encoder.encode(certain.toString())]);
}

async function* askNear(before: Before): Follow<MarkFound> {
  const { text, from, head, certain } = before;
  let left: readonly Mark[] = before.marks;
  // In a text that repeats few characters, only the text after the last of them distinguishes the possibilities.
  const isInSight = certain.length < head.length || head.length === text.length;
  const last = isInSight ? characterStart(certain, certain.length - 1) : 0;
  for (const at of last > 0 ? [...OFFSETS, last] : OFFSETS) {
    const part = yield from + at;
    if (part === undefined) return AGAIN;
    const found = await part.content.read(0, WITHIN_BLOCK_BYTES);
    const behind = { at, found, rest: head.subarray(certain.length), isAll: certain.length === text.length };
    const ofNone = Math.max(evidenceFor(certain, behind), evidenceOfCodePage(head, behind));
    // A mark may be among undecodable bytes, so the text there predicts nothing.
    const isBlind = at >= certain.length && head.length > certain.length;
    const ofMarks = left.map((mark) => evidenceFor(beginning(mark, certain), behind));
    const most = Math.max(...ofMarks);
    if (most < 0 || ofNone > most) {
      if (ofNone > 0) return NONE;
      return (isBlind || ofNone === 0) && (yield* isAsBefore(before)) ? NONE : AGAIN;
    }
    // Of the two marks of UTF-16, only a contradiction excludes one: their evidence is not comparable.
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

/** Whether the file is unchanged since the first request: weak evidence is void if it was truncated, or grew. */
async function* isAsBefore({ text, from, head }: Before): Follow<boolean> {
  const part = yield from;
  return part?.content.length === text.length && shows(await part.content.read(0, HEAD_BYTES), head);
}

/** The text found `at` bytes after the start, and the text after the certain bytes, if these are UTF-8. */
interface Found {
  readonly at: number;
  readonly found: Buffer;
  readonly rest: Buffer;
  /** Whether all of the text is certain. */
  readonly isAll: boolean;
}

/** Matching bytes, if the file starts with `bytes` and the server decodes UTF-8; -1 for a mismatch. */
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
  // The server may strip it.
  const marked = behind.subarray(mark.bytes.length);
  const shown = mark.encoder?.decode(marked) ?? Buffer.concat([shownOf(marked), follows]);
  return Math.max(asItIs, evidence(found, shown, goesOn));
}

/** The same for a server with a code page. */
function evidenceOfCodePage(head: Buffer, { at, found }: Pick<Found, 'at' | 'found'>): number {
  return evidence(found, Buffer.from([...head.toString()].slice(at).join('')));
}

/** `goesOn`: more text follows the shown one. */
function evidence(found: Buffer, shown: Buffer, goesOn = false): number {
  if (!shows(found, shown) || (goesOn && found.length <= shown.length)) return -1;
  return Math.min(shown.length, WITHIN_BLOCK_BYTES);
}

/** Requests an offset whose response is useful anyway, as the second one for cut characters, or short. */
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
  // Neither: perhaps UTF-16, or a code page; both: the text repeats itself.
  if (straight === shifted) return undefined;
  if (straight) return { mark: 'none', ...second };
  return (yield* isAsBefore(before)) ? { mark, ...second } : AGAIN;
}

async function hasUncertain(text: Content): Promise<boolean> {
  for (let at = 0; at < text.length; at += STEP_BYTES)
    if ((await text.read(at, at + STEP_BYTES + REPLACEMENT.length)).includes(REPLACEMENT)) return true;
  return false;
}

/** Whether a request for `index`, or for three bytes before, is at a mark that the server may strip, too. */
function isNearMark(text: Buffer, index: number): boolean {
  return standsAt(text, index, BYTE_ORDER_MARK) || standsAt(text, index - BYTE_ORDER_MARK.length, BYTE_ORDER_MARK);
}

/** Whether `found` matches the text three bytes before `index`, which may be within a character. */
function isShifted(text: Buffer, index: number, found: Buffer): boolean {
  const shifted = text.subarray(index - BYTE_ORDER_MARK.length);
  return shows(found, wholeCharacters(shifted));
}

/** The text of the whole characters in `bytes`. */
function wholeCharacters(bytes: Buffer): Buffer {
  return Buffer.from(new StringDecoder('utf8').write(bytes));
}
