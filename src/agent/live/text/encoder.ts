/** Turns text back into the bytes that a decoder made it of, as far as these are certain. */
import { REPLACEMENT_CHARACTER } from '../../../bytes.ts';

export interface Encoder {
  /** Bytes of one UTF-16 code unit of the text. */
  readonly unitBytes: number;
  /** The bytes of `text` up to the first character of which it is not certain. */
  encode(text: string): Buffer;
}

/** The text of a decoder that was switched to UTF-16 by a byte-order mark (docs/servers.md 1.4). */
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

  /** The text of `bytes`, as UTF-8; without what is cut at their end. */
  decode(bytes: Buffer): Buffer {
    const decoder = new TextDecoder(this.#bigEndian ? 'utf-16be' : 'utf-16le', { ignoreBOM: true });
    return Buffer.from(decoder.decode(bytes, { stream: true }));
  }
}
