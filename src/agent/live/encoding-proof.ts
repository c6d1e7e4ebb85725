/**
 * The proof of how a service decodes. Offsets count bytes, so a wrong guess would let the mirror drift: before the first
 * text that could tell is appended, the service is asked from within its first character beyond ASCII. Decoded as UTF-8,
 * the rest of that character comes back as U+FFFD; decoded with a code page there is no rest, and the text goes on
 * behind it.
 */
import { isAscii } from 'node:buffer';
import { BYTE_ORDER_MARK, characterStart, REPLACEMENT, standsAt, startsAlike, widthOfLead } from '../../chunk.ts';
import type { Part } from '../ports.ts';
import { WITHIN_BLOCK_BYTES } from './blocks.ts';
import type { TextEncoding } from './encoding.ts';
import type { Reading } from './reading.ts';
import type { Follow } from './recipe.ts';

const WINDOW_BYTES = 64 * 1024;

/**
 * Proves how the text is to be read that `reading` has from `position` on, and returns it so read; `again` if the file
 * changed while it was looked at, or shows too little yet. `mayLackMark`: the service may have swallowed a byte-order
 * mark before it.
 */
export async function* proveEncoding(
  { position, mayLackMark = false }: { readonly position: number; readonly mayLackMark?: boolean },
  reading: Reading,
  encoding: TextEncoding,
): Follow<Reading | 'again'> {
  const known = reading.as(encoding.codePage);
  // A character that the code page does not have says that it is another one, or none.
  const fits = encoding.codePage === undefined || known.atEnd() || (await known.peek(1)).length > 0;
  if (encoding.proven && fits) return known;

  const first = await firstBeyondAscii(reading.as(undefined));
  if (first === undefined) return known;
  if (first.uncertainFollows && encoding.codePage === undefined) {
    // No code page brings about a U+FFFD.
    encoding.learnUtf8();
    return known;
  }
  if (first.character.length === 0) return known;
  const decoded = yield* askWithin(first, { offset: position + first.before, mayLackMark });
  if (decoded === 'again') return decoded;
  if (decoded === 'utf-8') encoding.learnUtf8();
  else encoding.learnCodePage(first.text);
  return reading.as(encoding.codePage);
}

/** The first character beyond ASCII of a text. */
interface BeyondAscii {
  /** Bytes before it, all of which are characters. */
  readonly before: number;
  /** Empty if it is a U+FFFD. */
  readonly character: Buffer;
  /** The certain bytes behind it, as far as they were looked at, and how many bytes of text there are in all. */
  readonly behind: Buffer;
  readonly bytesBehind: number;
  /** Whether a U+FFFD stands at the end of what was looked at. */
  readonly uncertainFollows: boolean;
  /** The text around it, to tell one code page from another. */
  readonly text: string;
}

async function firstBeyondAscii(text: Reading): Promise<BeyondAscii | undefined> {
  const probe = text.fork();
  // What a kill left of the mirror may end inside a character: its rest is known by what is there.
  const start = await probe.peek(4);
  let begun = 0;
  while (((start[begun] ?? 0) & 0xc0) === 0x80) begun++;
  probe.advance(begun);
  const before = begun + (await skipAscii(probe));
  if (probe.atEnd()) return undefined;
  const remaining = probe.remaining();
  const window = wholeCharacters(await probe.peek(WINDOW_BYTES));
  const rest = probe.fork();
  rest.advance(window.length);
  const width = window.length === 0 ? 0 : widthOfLead(window[0] ?? 0);
  return {
    before,
    character: window.subarray(0, width),
    behind: window.subarray(width),
    bytesBehind: remaining - width,
    uncertainFollows: !rest.atEnd() && (await rest.peek(1)).length === 0,
    text: window.toString('utf8'),
  };
}

/** Moves a reading to where it has something else than ASCII, and says how far that was. */
async function skipAscii(reading: Reading): Promise<number> {
  for (let skipped = 0; ; ) {
    const window = await reading.peek(WINDOW_BYTES);
    const count = isAscii(window) ? window.length : window.findIndex((byte) => byte >= 0x80);
    reading.advance(count);
    skipped += count;
    if (count < window.length || count === 0) return skipped;
  }
}

function wholeCharacters(window: Buffer): Buffer {
  if (window.length === 0) return window;
  const last = characterStart(window, window.length - 1);
  return last + widthOfLead(window[last] ?? 0) > window.length ? window.subarray(0, last) : window;
}

/**
 * How the character at `offset` was decoded. Only what is there proves anything: an empty answer may be that of a file
 * that was truncated meanwhile, and so may be any other text unless the character still stands where it stood.
 */
async function* askWithin(
  { character, behind, bytesBehind, before }: BeyondAscii,
  { offset, mayLackMark }: { readonly offset: number; readonly mayLackMark: boolean },
): Follow<'utf-8' | 'code-page' | 'again'> {
  if (character.length > 3) return 'utf-8';
  const within = yield offset + 1;
  if (within === undefined) return 'again';
  const found = await within.content.read(0, WITHIN_BLOCK_BYTES);
  if (standsAt(found, 0, REPLACEMENT)) return 'utf-8';
  if (behind.length === 0) {
    // Nothing is to be seen behind it, so it has to be gone, there, and gone again.
    const there = yield* textFrom(offset);
    const gone = yield* textFrom(offset + 1);
    const alone = found.length === 0 && gone?.length === 0 && there?.equals(character);
    return alone ? 'code-page' : 'again';
  }
  if (!shows(found, behind)) return 'again';
  // Behind a mark that was swallowed the character stands further on; a text that repeats itself may look like another.
  if (mayLackMark && before >= BYTE_ORDER_MARK.length - 1 && within.content.length !== bytesBehind) {
    const shifted = yield* textFrom(offset + 1 + BYTE_ORDER_MARK.length);
    if (shifted !== undefined && standsAt(shifted, 0, REPLACEMENT)) return 'utf-8';
    if (!shows(shifted, behind.subarray(BYTE_ORDER_MARK.length)) || behind.length <= BYTE_ORDER_MARK.length)
      return 'again';
  }
  const still = yield* textFrom(offset);
  return shows(still, Buffer.concat([character, behind])) ? 'code-page' : 'again';
}

async function* textFrom(offset: number): Follow<Buffer | undefined> {
  const part: Part | undefined = yield offset;
  return part?.content.read(0, WITHIN_BLOCK_BYTES);
}

/** Whether a text begins with all of what is expected of it, as far as it is compared. */
function shows(found: Buffer | undefined, expected: Buffer): boolean {
  if (found === undefined) return false;
  return found.length >= Math.min(expected.length, WITHIN_BLOCK_BYTES) && startsAlike(found, expected);
}
