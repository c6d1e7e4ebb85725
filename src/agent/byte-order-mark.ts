/**
 * Whether a service swallowed the byte-order mark at the beginning of a file (field notes 1). Its text then is three
 * bytes short and every later offset would be wrong, so it is found out before the first byte is appended: the service
 * is asked from another offset, and the two answers are held against each other.
 */
import { BYTE_ORDER_MARK, characterStart, REPLACEMENT, standsAt, startsAlike, widthOfLead } from '../chunk.ts';
import type { TextEncoding } from './encoding.ts';
import type { Follow } from './follow.ts';
import type { Content, Part } from './ports.ts';

/** What the probe found; `second` is its answer where that is worth to be used again. */
export interface MarkFound {
  readonly mark: 'none' | 'swallowed' | 'again';
  readonly second?: Part;
}

/** Beyond this much text, asking for nearly all of it once more would cost too much. */
const SMALL_BYTES = 64 * 1024;
/** Text that is compared; less than a block, so that no block edge falls into it. */
const COMPARED_BYTES = 480;
const HALF_BLOCK_BYTES = 512;

/** `text` was asked for from offset 0, and is not empty. */
export async function* findMark(text: Content, encoding: TextEncoding): Follow<MarkFound> {
  const head = await text.read(0, SMALL_BYTES);
  if (standsAt(head, 0, BYTE_ORDER_MARK)) {
    encoding.learnMark('kept');
    return { mark: 'none' };
  }
  let found: MarkFound | undefined;
  if (text.length > SMALL_BYTES) {
    if (head.includes(REPLACEMENT)) found = yield* askHalfBlock(head);
    else found = yield* askEnd(text);
  }
  found ??= yield* askBehindFirst(text, head);
  if (found.mark === 'swallowed') encoding.learnMark('swallowed');
  return found;
}

/**
 * From offset 1 a swallowed mark shows its other two bytes as U+FFFD, and then all of the text; without a mark, the
 * rest of the first character is shown as U+FFFD, and then what follows it.
 */
async function* askBehindFirst(text: Content, head: Buffer): Follow<MarkFound> {
  const part = yield 1;
  if (part === undefined) return { mark: 'again' };
  const found = withoutReplaced(await part.content.read(0, SMALL_BYTES));
  const whole = withoutReplaced(head);
  const shifted = found.replaced === whole.replaced + 2 && agree(found.rest, whole.rest);
  // A first U+FFFD stands for one to three bytes; any other first character is cut by the question itself.
  const width = whole.replaced > 0 ? 0 : widthOfLead(head[0] ?? 0);
  const behind = width > 0 ? withoutReplaced(head.subarray(width)) : whole;
  const straight =
    agree(found.rest, behind.rest) &&
    (width > 0 ? found.replaced === behind.replaced + width - 1 : found.replaced <= behind.replaced);
  if (straight && shifted) {
    // One character again and again: only the length tells whether one of them is missing.
    return { mark: part.content.length - text.length === 2 * REPLACEMENT.length ? 'swallowed' : 'none' };
  }
  return { mark: straight ? 'none' : shifted ? 'swallowed' : 'again' };
}

function withoutReplaced(text: Buffer): { replaced: number; rest: Buffer } {
  let at = 0;
  while (standsAt(text, at, REPLACEMENT)) at += REPLACEMENT.length;
  return { replaced: at / REPLACEMENT.length, rest: text.subarray(at) };
}

/** Whether two texts go on alike, as far as no block edge falls between them. */
function agree(found: Buffer, expected: Buffer): boolean {
  return found.length >= expected.length
    ? startsAlike(found.subarray(0, COMPARED_BYTES), expected.subarray(0, COMPARED_BYTES))
    : found.length >= COMPARED_BYTES &&
        startsAlike(found.subarray(0, COMPARED_BYTES), expected.subarray(0, COMPARED_BYTES));
}

/** Half a block on: the answer also serves as the second reading of a text that is full of cut characters. */
async function* askHalfBlock(head: Buffer): Follow<MarkFound | undefined> {
  const certain = head.subarray(0, head.indexOf(REPLACEMENT));
  if (certain.length < 2 * HALF_BLOCK_BYTES - 4) return undefined;
  const offset = characterStart(certain, HALF_BLOCK_BYTES);
  const part = yield offset;
  if (part === undefined) return { mark: 'again' };
  const mark = compareShifted(certain, offset, await part.content.read(0, COMPARED_BYTES));
  return mark === undefined ? undefined : { mark, second: part };
}

/** Near the end of a long text without a cut: little has to be sent again. */
async function* askEnd(text: Content): Follow<MarkFound | undefined> {
  for (let at = 0; at < text.length; at += SMALL_BYTES) {
    if ((await text.read(at, at + SMALL_BYTES + REPLACEMENT.length)).includes(REPLACEMENT)) return undefined;
  }
  const start = text.length - 2 * COMPARED_BYTES;
  const end = await text.read(start, text.length);
  const index = characterStart(end, COMPARED_BYTES);
  const part = yield start + index;
  if (part === undefined) return { mark: 'again' };
  const mark = compareShifted(end, index, await part.content.read(0, COMPARED_BYTES));
  return mark === undefined ? undefined : { mark };
}

/** Whether `stretch` goes on at `index` of the text, or three bytes before; undefined if that cannot be told apart. */
function compareShifted(text: Buffer, index: number, stretch: Buffer): MarkFound['mark'] | undefined {
  const straight = startsAlike(text.subarray(index), stretch);
  const shifted = startsAlike(text.subarray(index - BYTE_ORDER_MARK.length), stretch);
  if (straight && shifted) return undefined;
  return straight ? 'none' : shifted ? 'swallowed' : 'again';
}
