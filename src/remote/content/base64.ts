/** base64 that arrives in pieces of any size, decoded strictly (xs:base64Binary: padded, XML white space allowed). */
import { malformed } from '../wrong-answers.ts';

const WHITE_SPACE = /[\t\n\r ]+/g;

/** Strings of this size are made and dropped in the processor's cache; ones above 128 KiB get pages of their own. */
const SLICE_BYTES = 32 * 1024;

/**
 * `write(text, 'base64')` is fast but forgiving: it skips what is not base64, stops at a `=` and takes the
 * URL-safe alphabet. All of that shows in the number of bytes that come out, except the two URL-safe characters.
 */
export class Base64Decoder {
  /** Characters of a group of four that has not arrived completely. */
  #carry = '';
  #space = Buffer.alloc(0);
  #padded = false;
  #wrapped = false;

  /**
   * The bytes of the groups that are complete now; only good until the next call.
   * @throws JobtailError malformed
   */
  push(piece: Buffer): Buffer {
    const most = Math.ceil((this.#carry.length + piece.length) / 4) * 3;
    if (this.#space.length < most) this.#space = Buffer.allocUnsafeSlow(most);
    const bytes = this.#space;
    let length = 0;
    for (let at = 0; at < piece.length; at += SLICE_BYTES) {
      const text = this.#carry + piece.toString('latin1', at, at + SLICE_BYTES);
      length += this.#decodeSlice(text, bytes.subarray(length));
    }
    return bytes.subarray(0, length);
  }

  /** @throws JobtailError malformed if the last group is not complete */
  finish(): void {
    if (this.#carry.replace(WHITE_SPACE, '') !== '') throw malformed('base64 of a wrong length');
  }

  #decodeSlice(text: string, into: Buffer): number {
    const length = this.#decode(this.#wrapped ? text.replace(WHITE_SPACE, '') : text, into);
    if (length !== undefined) return length;
    // Only now, because most servers send no white space and looking for it costs as much as decoding.
    const dense = text.replace(WHITE_SPACE, '');
    const decoded = dense.length < text.length ? this.#decode(dense, into) : undefined;
    if (decoded === undefined) throw malformed('characters that are not base64');
    this.#wrapped = true;
    return decoded;
  }

  /** Decodes the whole groups in `text` and carries the rest; the number of bytes, or undefined if it is not base64. */
  #decode(text: string, into: Buffer): number | undefined {
    if (this.#padded) return text === '' ? 0 : undefined;
    const end = text.length - (text.length % 4);
    const groups = end === text.length ? text : text.slice(0, end);
    const padding = groups.endsWith('==') ? 2 : groups.endsWith('=') ? 1 : 0;
    const length = into.write(groups, 'base64');
    if (length !== (end / 4) * 3 - padding || groups.includes('-') || groups.includes('_')) return undefined;
    const carry = text.slice(end);
    if (padding > 0 && carry !== '') return undefined;
    this.#padded = padding > 0;
    this.#carry = carry;
    return length;
  }
}
