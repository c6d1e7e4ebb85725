/** Functions on bytes and UTF-8. */

export const NEWLINE = 0x0a;
export const RETURN = 0x0d;

export const REPLACEMENT: Buffer = Buffer.from([0xef, 0xbf, 0xbd]);

export const BYTE_ORDER_MARK: Buffer = Buffer.from([0xef, 0xbb, 0xbf]);

export function standsAt(bytes: Buffer, index: number, mark: Buffer): boolean {
  for (let at = 0; at < mark.length; at++) if (bytes[index + at] !== mark[at]) return false;
  return true;
}

/** The index at which the UTF-8 character that covers `index` begins; `index` itself if no character covers it. */
export function characterStart(bytes: Buffer, index: number): number {
  for (let start = index; start > index - 4; start--) {
    const byte = bytes[start];
    if (byte === undefined || byte < 0x80) return index;
    if (byte >= 0xc0) return start + widthOfLead(byte) > index ? start : index;
  }
  return index;
}

/** The first index that is not inside a UTF-8 character whose first bytes are missing. */
export function firstCharacter(bytes: Buffer): number {
  let at = 0;
  while (at < Math.min(3, bytes.length - 1) && ((bytes[at] ?? 0) & 0xc0) === 0x80) at++;
  return at;
}

/** Bytes of a UTF-8 character with this first byte (1 for an invalid one). */
export function widthOfLead(byte: number): number {
  if (byte >= 0xf0) return byte < 0xf8 ? 4 : 1;
  if (byte >= 0xe0) return 3;
  return byte >= 0xc2 ? 2 : 1;
}

/** Where `bytes` can be cut after `start`: before an incomplete UTF-8 character. */
export function endOfWholeUtf8(bytes: Buffer, start: number): number {
  const last = characterStart(bytes, bytes.length - 1);
  const isCut = last >= start && last + widthOfLead(bytes[last] ?? 0) > bytes.length;
  return isCut ? last : bytes.length;
}

/** The index of the first different byte, or the length of the shorter buffer. */
export function commonLength(a: Buffer, b: Buffer): number {
  const length = Math.min(a.length, b.length);
  if (a.compare(b, 0, length, 0, length) === 0) return length;
  let low = 0;
  // Bisection: comparing is native, a loop over bytes is not.
  for (let high = length; high - low > 1; ) {
    const middle = (low + high) >> 1;
    if (a.compare(b, low, middle, low, middle) === 0) low = middle;
    else high = middle;
  }
  return a[low] === b[low] ? low + 1 : low;
}

export function startsAlike(a: Buffer, b: Buffer): boolean {
  return commonLength(a, b) === Math.min(a.length, b.length);
}

const NOTHING = Buffer.alloc(0);

/** Collects bytes in reused memory. */
export class GrowingBuffer {
  #bytes = NOTHING;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  append(piece: Buffer): void {
    const needed = this.#length + piece.length;
    if (needed > this.#bytes.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(needed, this.#bytes.length * 2));
      this.#bytes.copy(grown, 0, 0, this.#length);
      this.#bytes = grown;
    }
    piece.copy(this.#bytes, this.#length);
    this.#length = needed;
  }

  /** Valid until the next call of any method. */
  view(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  clear(): void {
    this.#length = 0;
  }

  /** Empties it, and gives its memory back. */
  free(): void {
    this.clear();
    this.#bytes = NOTHING;
  }

  /** A copy; the buffer is empty afterwards. */
  take(): Buffer {
    const taken = Buffer.from(this.view());
    this.clear();
    return taken;
  }
}
