/** base64 that arrives in pieces of any size, decoded strictly (xs:base64Binary: padded, XML white space allowed). */
import { malformed } from './malformed.ts';

const WHITE_SPACE = /[\t\n\r ]+/g;

/**
 * `Buffer.from(text, 'base64')` is fast but forgiving: it skips what is not base64, stops at a `=` and takes the
 * URL-safe alphabet. All of that shows in the number of bytes that come out, except the two URL-safe characters.
 */
export class Base64Decoder {
  /** Characters of a group of four that has not arrived completely. */
  #carry = '';
  #padded = false;
  #wrapped = false;

  /**
   * The bytes of the groups that are complete now.
   * @throws JobtailError malformed
   */
  push(piece: Buffer): Buffer {
    let text = this.#carry + piece.toString('latin1');
    if (this.#wrapped) text = text.replace(WHITE_SPACE, '');
    const bytes = this.#decode(text);
    if (bytes !== undefined) return bytes;
    // Only now, because most servers send no white space and looking for it costs as much as decoding.
    const dense = text.replace(WHITE_SPACE, '');
    const decoded = dense.length < text.length ? this.#decode(dense) : undefined;
    if (decoded === undefined) throw malformed('characters that are not base64');
    this.#wrapped = true;
    return decoded;
  }

  /** @throws JobtailError malformed if the last group is not complete */
  finish(): void {
    if (this.#carry.replace(WHITE_SPACE, '') !== '') throw malformed('base64 of a wrong length');
  }

  /** The bytes of the whole groups in `text`, the rest carried; undefined if it is not base64. */
  #decode(text: string): Buffer | undefined {
    if (this.#padded) return text === '' ? Buffer.alloc(0) : undefined;
    const end = text.length - (text.length % 4);
    const groups = end === text.length ? text : text.slice(0, end);
    const padding = groups.endsWith('==') ? 2 : groups.endsWith('=') ? 1 : 0;
    const bytes = Buffer.from(groups, 'base64');
    if (bytes.length !== (end / 4) * 3 - padding || groups.includes('-') || groups.includes('_')) return undefined;
    const carry = text.slice(end);
    if (padding > 0 && carry !== '') return undefined;
    this.#padded = padding > 0;
    this.#carry = carry;
    return bytes;
  }
}
