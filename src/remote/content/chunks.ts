/**
 * A document that arrives in chunks, for a tokenizer that takes it piece by piece: what a chunk cut of a piece is held
 * until the rest of it comes. A byte-order mark at its beginning is passed over.
 */
import { BYTE_ORDER_MARK } from '../../bytes.ts';
import { GrowingBuffer } from '../../growing-buffer.ts';

export class Chunks {
  readonly #held = new GrowingBuffer();
  #begun = false;

  /** Bytes of a piece that has not come whole. */
  get heldBytes(): number {
    return this.#held.length;
  }

  /** `take` takes one piece from `at` on and returns where the next one begins; `at` if more bytes are needed for it. */
  push(chunk: Buffer, take: (bytes: Buffer, at: number) => number): void {
    const isHeld = this.#held.length > 0;
    if (isHeld) this.#held.append(chunk);
    const bytes = isHeld ? this.#held.view() : chunk;
    let at = this.#begin(bytes);
    while (this.#begun && at < bytes.length) {
      const next = take(bytes, at);
      if (next === at) break;
      at = next;
    }
    if (isHeld && at === 0) return;
    this.#held.clear();
    this.#held.append(bytes.subarray(at));
  }

  /** Where the document begins; not before it is clear whether there is a mark. */
  #begin(bytes: Buffer): number {
    if (this.#begun) return 0;
    const start = bytes.subarray(0, BYTE_ORDER_MARK.length);
    const marked = start.equals(BYTE_ORDER_MARK.subarray(0, start.length));
    this.#begun = !marked || start.length === BYTE_ORDER_MARK.length;
    return marked && this.#begun ? BYTE_ORDER_MARK.length : 0;
  }
}
