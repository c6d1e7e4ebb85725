/**
 * Single-byte code pages, as older services decode them: every byte is one character (field notes 1). Which of several
 * a service uses cannot always be told from the text that came so far; as long as they agree on it, they do as one.
 */
import iconv from 'iconv-lite';

const BYTES = 256;
/** Code units of UTF-16. */
const UNITS = 65_536;
const NO_BYTE = -1;

/** One code page, or several of which it is not known yet which it is. */
export class CodePage {
  readonly names: readonly string[];
  /** The byte of each character, where all of them have it and agree. */
  readonly #byteOf: Int16Array;

  /** Throws RangeError if one of `names` is not that of a single-byte encoding. */
  constructor(names: readonly string[]) {
    this.names = names;
    const [first, ...others] = names.map(byteTable);
    this.#byteOf = first ?? new Int16Array(UNITS).fill(NO_BYTE);
    for (const other of others)
      this.#byteOf.forEach((byte, unit) => {
        if (byte !== other[unit]) this.#byteOf[unit] = NO_BYTE;
      });
  }

  /** The bytes of `text` up to the first character of which it is not certain. */
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

/** As in .NET, a byte that the code page leaves undefined is the control character of the same number. */
function byteTable(name: string): Int16Array {
  const bytes = Buffer.from(Array.from({ length: BYTES }, (_, byte) => byte));
  const characters = iconv.encodingExists(name) ? iconv.decode(bytes, name) : '';
  if (characters.length !== BYTES) throw new RangeError(`${name} is no single-byte code page`);
  const table = new Int16Array(UNITS).fill(NO_BYTE);
  for (const byte of bytes) {
    const unit = characters.charCodeAt(byte);
    table[unit === 0xfffd ? byte : unit] = byte;
  }
  return table;
}
