import type { Content, ContentWriter } from '../../src/agent/ports.ts';

/** A content in memory that counts what was not given back. */
export class MemoryContent implements Content {
  static held = 0;
  readonly length: number;
  readonly #bytes: Buffer;
  #released = false;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.length = bytes.length;
    MemoryContent.held++;
  }

  async read(start: number, end: number): Promise<Buffer> {
    if (this.#released) throw new Error('read after release');
    return this.#bytes.subarray(start, end);
  }

  async release(): Promise<void> {
    if (this.#released) throw new Error('released twice');
    this.#released = true;
    MemoryContent.held--;
  }
}

export function memoryWriter(): ContentWriter {
  const pieces: Buffer[] = [];
  return {
    async write(bytes) {
      pieces.push(Buffer.from(bytes));
    },
    async finish() {
      return new MemoryContent(Buffer.concat(pieces));
    },
    async discard() {},
  };
}
