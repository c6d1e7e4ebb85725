import type { Content } from '../../src/agent/ports/server.ts';

/** Counts the contents that were not given back. */
export interface Holder {
  held: number;
}

/** A content in memory. */
export class MemoryContent implements Content {
  readonly length: number;
  readonly #bytes: Buffer;
  readonly #holder: Holder;
  #released = false;

  constructor(bytes: Buffer, holder: Holder = { held: 0 }) {
    this.#bytes = bytes;
    this.length = bytes.length;
    this.#holder = holder;
    holder.held++;
  }

  async read(start: number, end: number): Promise<Buffer> {
    if (this.#released) throw new Error('read after release');
    return this.#bytes.subarray(start, end);
  }

  async release(): Promise<void> {
    if (this.#released) throw new Error('released twice');
    this.#released = true;
    this.#holder.held--;
  }
}
