/**
 * The characters of a JSON string as bytes: they are UTF-8 already, so only the escapes have to be resolved. What an
 * escape cannot be turned into bytes of a text (half of a surrogate pair) is an error of its own.
 */
import { endOfWholeUtf8 } from '../../../bytes.ts';
import { JobtailError } from '../../../errors.ts';
import { malformed } from '../../wrong-answers.ts';

export const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const LOWER_U = 0x75;
/** Below, characters have to be escaped. */
const FIRST_PLAIN = 0x20;

const ESCAPE_BYTES = 6;

/** So many bytes are looked through here: of a short string, a call into the platform costs more. */
const NEAR_BYTES = 64;

/** What a letter behind a backslash stands for. */
const LETTERS: ReadonlyMap<number, number> = new Map(
  ['""', '\\\\', '//', 'b\b', 'f\f', 'n\n', 'r\r', 't\t'].map((pair) => [pair.charCodeAt(0), pair.charCodeAt(1)]),
);

/** Some characters of a string. */
export interface Characters {
  /** As UTF-8; whole ones. Only good until the next are read into the same space. */
  readonly bytes: Buffer;
  /** What comes next in the document: the quote that ends the string, or what more bytes are needed for. */
  readonly next: number;
}

/**
 * The characters of the string that goes on at `start`, as far as they have come; `space` is as large as `bytes`.
 * @throws JobtailError malformed
 */
export function readCharacters(bytes: Buffer, start: number, space: () => Buffer): Characters {
  const plainEnd = endOfPlain(bytes, start);
  if (bytes[plainEnd] === QUOTE) return { bytes: bytes.subarray(start, plainEnd), next: plainEnd };
  const end = endOfWholeUtf8(bytes, start);
  if (plainEnd === bytes.length) return { bytes: bytes.subarray(start, end), next: end };
  return resolveEscapes(bytes, { start, plainEnd, end }, space());
}

/** Where something else than a character that stands for itself begins. */
function endOfPlain(bytes: Buffer, start: number): number {
  const near = Math.min(bytes.length, start + NEAR_BYTES);
  for (let at = start; at < near; at += 1) {
    const byte = bytes[at] as number;
    if (byte === QUOTE || byte === BACKSLASH) return at;
    if (byte < FIRST_PLAIN) throw rawControl();
  }
  const quote = bytes.indexOf(QUOTE, near);
  const piece = bytes.subarray(near, quote === -1 ? bytes.length : quote);
  const backslash = piece.indexOf(BACKSLASH);
  const plain = backslash === -1 ? piece : piece.subarray(0, backslash);
  if (hasControl(plain)) throw rawControl();
  return near + plain.length;
}

function hasControl(bytes: Buffer): boolean {
  if (bytes.length < NEAR_BYTES) return hasControlWithin(bytes, 0, bytes.length);
  const unaligned = (4 - (bytes.byteOffset & 3)) & 3;
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + unaligned, (bytes.length - unaligned) >> 2);
  // The highest bit of a byte is left where the byte is below 0x20, and never where none is.
  let found = 0;
  for (let index = 0; index < words.length; index += 1) {
    const word = words[index] as number;
    found |= (word - 0x20202020) & ~word;
  }
  if ((found & 0x80808080) !== 0) return true;
  return hasControlWithin(bytes, 0, unaligned) || hasControlWithin(bytes, unaligned + 4 * words.length, bytes.length);
}

function hasControlWithin(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) if ((bytes[at] as number) < FIRST_PLAIN) return true;
  return false;
}

const rawControl = () => malformed('a control character that is not escaped');

/** Where a piece of a string begins, has its first escape, and can be cut. */
interface Piece {
  readonly start: number;
  readonly plainEnd: number;
  readonly end: number;
}

function resolveEscapes(bytes: Buffer, { start, plainEnd, end }: Piece, space: Buffer): Characters {
  let length = bytes.copy(space, 0, start, plainEnd);
  let at = plainEnd;
  while (at < end) {
    const byte = bytes[at] as number;
    if (byte === BACKSLASH) {
      const width = widthOfEscape(bytes, at);
      if (at + width > bytes.length) break;
      length = writePoint(space, length, pointOf(bytes, at, width));
      at += width;
    } else if (byte === QUOTE) {
      break;
    } else if (byte < FIRST_PLAIN) {
      throw rawControl();
    } else {
      space[length] = byte;
      length += 1;
      at += 1;
    }
  }
  return { bytes: space.subarray(0, length), next: at };
}

/** The bytes of the escape at `at`; more than there are if it is not known yet. @throws JobtailError malformed */
function widthOfEscape(bytes: Buffer, at: number): number {
  if (at + 1 === bytes.length || bytes[at + 1] !== LOWER_U) return 2;
  if (at + ESCAPE_BYTES > bytes.length || !isHighSurrogate(unitOf(bytes, at))) return ESCAPE_BYTES;
  // The other half has to follow, as an escape.
  const follows = [BACKSLASH, LOWER_U].every((byte, index) =>
    [byte, undefined].includes(bytes[at + ESCAPE_BYTES + index]),
  );
  if (!follows) throw loneSurrogate();
  return 2 * ESCAPE_BYTES;
}

function pointOf(bytes: Buffer, at: number, width: number): number {
  if (width === 2) {
    const point = LETTERS.get(bytes[at + 1] ?? 0);
    if (point === undefined) throw malformed('an unknown escape');
    return point;
  }
  const unit = unitOf(bytes, at);
  if (width === ESCAPE_BYTES) {
    if (isLowSurrogate(unit)) throw loneSurrogate();
    return unit;
  }
  const low = unitOf(bytes, at + ESCAPE_BYTES);
  if (!isLowSurrogate(low)) throw loneSurrogate();
  return 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
}

/** The number of `\uXXXX` at `at`. */
function unitOf(bytes: Buffer, at: number): number {
  let unit = 0;
  for (let index = at + 2; index < at + ESCAPE_BYTES; index += 1) unit = unit * 16 + digitOf(bytes[index] as number);
  return unit;
}

function digitOf(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  if (letter >= 0x61 && letter <= 0x66) return letter - 0x57;
  throw malformed('an escape that is not four hexadecimal digits');
}

const isHighSurrogate = (unit: number) => unit >= 0xd800 && unit <= 0xdbff;
const isLowSurrogate = (unit: number) => unit >= 0xdc00 && unit <= 0xdfff;

/** The answer is well-formed, but one of its texts is none: no bytes of a file stand for half a character. */
function loneSurrogate(): JobtailError {
  return new JobtailError(
    'malformed',
    'a text of the answer holds half of a surrogate pair, for which no bytes stand',
    {
      hint: 'the service shows a file as something that no file holds; show this to its operator',
    },
  );
}

/** Writes a character as UTF-8, and returns where the next one stands. */
function writePoint(space: Buffer, at: number, point: number): number {
  if (point < 0x80) {
    space[at] = point;
    return at + 1;
  }
  const continuation = (shift: number) => 0x80 | ((point >> shift) & 0x3f);
  if (point < 0x800) {
    space[at] = 0xc0 | (point >> 6);
    space[at + 1] = continuation(0);
    return at + 2;
  }
  if (point < 0x10000) {
    space[at] = 0xe0 | (point >> 12);
    space[at + 1] = continuation(6);
    space[at + 2] = continuation(0);
    return at + 3;
  }
  space[at] = 0xf0 | (point >> 18);
  space[at + 1] = continuation(12);
  space[at + 2] = continuation(6);
  space[at + 3] = continuation(0);
  return at + 4;
}
