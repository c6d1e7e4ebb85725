/**
 * Encodes decoded text back into the bytes of the file, as far as these are certain.
 *
 * Older servers decode a single-byte code page: every byte is one character (docs/servers.md 1.3). If several code
 * pages are possible, a character is certain where all of them have the same byte for it.
 */
import iconv from 'iconv-lite';
import { BYTE_ORDER_MARK, REPLACEMENT_CHARACTER } from '../../../bytes.ts';
import type { Content } from '../../ports.ts';

const BYTES = 256;
const ASCII_BYTES = 128;
/** Code units of UTF-16. */
const UNITS = 65_536;
const NO_BYTE = -1;

export interface Encoder {
  /** Bytes of one UTF-16 code unit of the text. */
  readonly unitBytes: number;
  /** The bytes of `text` up to the first uncertain character. */
  encode(text: string): Buffer;
}

/** Text that a byte-order mark made the server decode as UTF-16 (docs/servers.md 1.4). */
export class Utf16 implements Encoder {
  readonly unitBytes = 2;
  readonly #bigEndian: boolean;

  constructor({ bigEndian }: { readonly bigEndian: boolean }) {
    this.#bigEndian = bigEndian;
  }

  encode(text: string): Buffer {
    const end = text.indexOf(REPLACEMENT_CHARACTER);
    const bytes = Buffer.from(end < 0 ? text : text.slice(0, end), 'utf16le');
    return this.#bigEndian ? bytes.swap16() : bytes;
  }

  /** The text of `bytes`, as UTF-8, without a character that their end cuts. */
  decode(bytes: Buffer): Buffer {
    const decoder = new TextDecoder(this.#bigEndian ? 'utf-16be' : 'utf-16le', { ignoreBOM: true });
    return Buffer.from(decoder.decode(bytes, { stream: true }));
  }
}

/** A byte-order mark that a server may strip from a text (docs/servers.md 1.4). */
export interface Mark {
  readonly bytes: Buffer;
  /** Encodes the text after it; undefined for UTF-8. */
  readonly encoder?: Utf16;
}

export const MARKS: readonly Mark[] = [
  { bytes: BYTE_ORDER_MARK },
  { bytes: Buffer.from([0xff, 0xfe]), encoder: new Utf16({ bigEndian: false }) },
  { bytes: Buffer.from([0xfe, 0xff]), encoder: new Utf16({ bigEndian: true }) },
];

/** A text with the byte-order mark that the server stripped. */
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

  /** The caller that received the text releases it. */
  async release(): Promise<void> {}
}

/** The possible code pages: one, or several as long as the text does not distinguish them. */
export class CodePage implements Encoder {
  readonly names: readonly string[];
  readonly unitBytes = 1;
  /** The byte of each character on which all code pages agree. */
  readonly #byteOf = new Int16Array(UNITS).fill(NO_BYTE);

  /** @throws RangeError if one of `names` is no single-byte encoding */
  constructor(names: readonly string[]) {
    this.names = names;
    for (let byte = 0; byte < ASCII_BYTES; byte++) this.#byteOf[byte] = byte;
    const [first, ...others] = names.map(tableOf);
    for (const [unit, byte] of first ?? [])
      if (others.every((other) => other.get(unit) === byte)) this.#byteOf[unit] = byte;
  }

  encode(text: string): Buffer {
    const bytes = Buffer.allocUnsafe(text.length);
    for (let index = 0; index < text.length; index++) {
      const byte = this.#byteOf[text.charCodeAt(index)] ?? NO_BYTE;
      if (byte === NO_BYTE) return bytes.subarray(0, index);
      bytes[index] = byte;
    }
    return bytes;
  }
}

/** The code pages among `names` that have all characters of `text`. */
export function codePagesWith(text: string, names: readonly string[]): string[] {
  const units = new Set<number>();
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit >= ASCII_BYTES) units.add(unit);
  }
  return names.filter((name) => {
    const table = tableOf(name);
    return [...units].every((unit) => table.has(unit));
  });
}

/** Whether the code page decodes `bytes` to `text`, compared over the shorter length. */
export function showsAs(name: string, bytes: Buffer, text: string): boolean {
  const table = tableOf(name);
  const length = Math.min(bytes.length, text.length);
  for (let index = 0; index < length; index++) {
    const unit = text.charCodeAt(index);
    if ((unit < ASCII_BYTES ? unit : table.get(unit)) !== bytes[index]) return false;
  }
  return true;
}

const tables = new Map<string, ReadonlyMap<number, number>>();

/** The byte of each non-ASCII character. */
function tableOf(name: string): ReadonlyMap<number, number> {
  const known = tables.get(name);
  if (known !== undefined) return known;
  const bytes = Buffer.from(Array.from({ length: BYTES }, (_, byte) => byte));
  const characters = iconv.encodingExists(name) ? iconv.decode(bytes, name) : '';
  const isAsciiFirst = characters.startsWith(bytes.toString('latin1', 0, ASCII_BYTES));
  if (characters.length !== BYTES || !isAsciiFirst) throw new RangeError(`${name} is no single-byte code page`);
  const table = new Map<number, number>();
  for (let byte = ASCII_BYTES; byte < BYTES; byte++) {
    const unit = characters.charCodeAt(byte);
    // As in .NET, a byte that the code page leaves undefined is the control character of the same number.
    table.set(unit === 0xfffd ? byte : unit, byte);
  }
  tables.set(name, table);
  return table;
}
