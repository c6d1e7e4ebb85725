/** Documents and base64 that arrive in chunks of any size. */
import { BYTE_ORDER_MARK, GrowingBuffer } from '../../bytes.ts';
import { malformed } from '../wrong-responses.ts';

export class Chunks {
  readonly #rest = new GrowingBuffer();
  #begun = false;

  get restBytes(): number {
    return this.#rest.length;
  }

  /** `take` takes one piece from `at` on and returns where the next one begins; `at` if it needs more bytes. */
  push(chunk: Buffer, take: (bytes: Buffer, at: number) => number): void {
    const hasRest = this.#rest.length > 0;
    if (hasRest) this.#rest.append(chunk);
    const bytes = hasRest ? this.#rest.view() : chunk;
    let at = this.#begin(bytes);
    while (this.#begun && at < bytes.length) {
      const next = take(bytes, at);
      if (next === at) break;
      at = next;
    }
    if (hasRest && at === 0) return;
    this.#rest.clear();
    this.#rest.append(bytes.subarray(at));
  }

  /** Where the document begins: after a byte-order mark. */
  #begin(bytes: Buffer): number {
    if (this.#begun) return 0;
    const start = bytes.subarray(0, BYTE_ORDER_MARK.length);
    const marked = start.equals(BYTE_ORDER_MARK.subarray(0, start.length));
    this.#begun = !marked || start.length === BYTE_ORDER_MARK.length;
    return marked && this.#begun ? BYTE_ORDER_MARK.length : 0;
  }
}

export function isWhiteSpace(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09);
}

const WHITE_SPACE = ['\t', '\n', '\r', ' '];

/** Strings of this size stay in the processor's cache; ones above 128 KiB get their own pages. */
const SLICE_BYTES = 32 * 1024;

/** For all of them: what is decoded is valid until the next call. */
let space = Buffer.alloc(0);

/**
 * `write(text, 'base64')` is fast but lenient: it skips invalid characters, stops at a `=`, and accepts the URL-safe
 * alphabet. The number of decoded bytes shows all of that, except the two URL-safe characters.
 */
export class Base64Decoder {
  /** Characters of an incomplete group of four, without white space. */
  #carry = '';
  #padded = false;

  /** The bytes of the complete groups; valid until the next call, of any decoder. @throws JobtailError malformed */
  push(piece: Buffer): Buffer {
    const max = Math.ceil((this.#carry.length + piece.length) / 4) * 3;
    if (space.length < max) space = Buffer.allocUnsafeSlow(max);
    const bytes = space;
    let length = 0;
    for (let at = 0; at < piece.length; at += SLICE_BYTES) {
      const text = this.#carry + piece.toString('latin1', at, at + SLICE_BYTES);
      length += this.#decode(text, bytes.subarray(length));
    }
    return bytes.subarray(0, length);
  }

  finish(): void {
    if (this.#carry !== '') throw malformed('base64 of a wrong length');
  }

  #decode(text: string, into: Buffer): number {
    const characters = text.length - countOfSpaces(text);
    const { end, carry } = cutAtGroup(text, characters);
    const groups = end === text.length ? text : text.slice(0, end);
    const padding = paddingOf(groups);
    const expected = ((characters - carry.length) / 4) * 3 - padding;
    const length = into.write(groups, 'base64');
    // Characters after a padding in the same piece are refused with the next one, or at the end.
    if ((this.#padded && characters > 0) || length !== expected || groups.includes('-') || groups.includes('_'))
      throw malformed('characters that are not base64');
    this.#padded ||= padding > 0;
    this.#carry = carry;
    return length;
  }
}

/** Counting is cheaper than removing. */
function countOfSpaces(text: string): number {
  let count = 0;
  for (const space of WHITE_SPACE)
    for (let at = text.indexOf(space); at >= 0; at = text.indexOf(space, at + 1)) count++;
  return count;
}

function cutAtGroup(text: string, characters: number): { readonly end: number; readonly carry: string } {
  let carry = '';
  let end = text.length;
  while (carry.length < characters % 4) {
    const character = text.charAt(--end);
    if (!WHITE_SPACE.includes(character)) carry = character + carry;
  }
  return { end, carry };
}

function paddingOf(groups: string): number {
  let padding = 0;
  for (let at = groups.length - 1; at >= 0 && padding < 2; at--) {
    const character = groups.charAt(at);
    if (character === '=') padding++;
    else if (!WHITE_SPACE.includes(character)) break;
  }
  return padding;
}
