/** Bytes of a file as text that still tells which bytes were none. */

/**
 * An undecodable byte stands in the text as this and its value: half a surrogate pair, which no UTF-8 holds. So U+FFFD is
 * one that the file holds.
 */
const ESCAPED = 0xdc00;

const DECODER = new TextDecoder('utf-8', { ignoreBOM: true });

/** Each byte that is no part of a character of UTF-8 becomes U+DC80 to U+DCFF. */
export function decode(bytes: Uint8Array): string {
  const text = DECODER.decode(bytes);
  return text.includes('\ufffd') ? decodeAround(bytes) : text;
}

/** The value of a byte that `decode` could not decode; undefined for any other character. */
export function undecodableByte(character: string): number | undefined {
  const unit = character.charCodeAt(0);
  return character.length === 1 && unit >= ESCAPED + 0x80 && unit <= ESCAPED + 0xff ? unit - ESCAPED : undefined;
}

function decodeAround(bytes: Uint8Array): string {
  let text = '';
  let begin = 0;
  for (let at = 0; at < bytes.length; ) {
    const length = characterLength(bytes, at);
    if (length === 0) {
      text += DECODER.decode(bytes.subarray(begin, at)) + String.fromCharCode(ESCAPED + (bytes[at] ?? 0));
      begin = at + 1;
    }
    at += Math.max(1, length);
  }
  return text + DECODER.decode(bytes.subarray(begin));
}

/** Of the character that begins there; 0 if none does. By table 3-7 of the Unicode standard. */
function characterLength(bytes: Uint8Array, at: number): number {
  const [first = 0, second = 0, third = 0, fourth = 0] = bytes.subarray(at, at + 4);
  const follows = (byte: number) => byte >= 0x80 && byte <= 0xbf;
  if (first <= 0x7f) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(second) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const [from, to] = first === 0xe0 ? [0xa0, 0xbf] : first === 0xed ? [0x80, 0x9f] : [0x80, 0xbf];
    return second >= from && second <= to && follows(third) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const [from, to] = first === 0xf0 ? [0x90, 0xbf] : first === 0xf4 ? [0x80, 0x8f] : [0x80, 0xbf];
    return second >= from && second <= to && follows(third) && follows(fourth) ? 4 : 0;
  }
  return 0;
}
