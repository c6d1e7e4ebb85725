/** The names of a listing. */
import { JobtailError } from '../errors.ts';
import type { Lifted } from './lifted.ts';

/** Each name costs some memory besides its bytes. */
const BYTES_PER_NAME = 32;

export class ListedNames implements Lifted {
  readonly names: string[] = [];
  readonly #maxBytes: number;
  #pieces: Buffer[] = [];
  #length = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  begin(): void {
    this.#pieces = [];
    this.#count(BYTES_PER_NAME);
  }

  bytes(bytes: Buffer): void {
    this.#count(bytes.length);
    this.#pieces.push(bytes);
  }

  end(): void {
    this.names.push(Buffer.concat(this.#pieces).toString());
    this.#pieces = [];
  }

  async flush(): Promise<void> {}

  #count(bytes: number): void {
    this.#length += bytes;
    if (this.#length <= this.#maxBytes) return;
    throw new JobtailError('answer-too-large', `the listing is larger than the ${this.#maxBytes} bytes allowed`);
  }
}
