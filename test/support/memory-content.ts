import type { Content } from '../../src/agent/ports.ts';

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

  /** In `space` if that is given, like a text that is not in memory; what stood there before is gone. */
  async read(start: number, end: number, space?: Buffer): Promise<Buffer> {
    if (this.#released) throw new Error('read after release');
    const bytes = this.#bytes.subarray(start, end);
    if (space === undefined || space.length < bytes.length) return bytes;
    return space.fill(0xff).subarray(0, bytes.copy(space));
  }

  async release(): Promise<void> {
    if (this.#released) throw new Error('released twice');
    this.#released = true;
    this.#holder.held--;
  }
}
