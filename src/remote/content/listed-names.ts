/** The names of a listing. */
import { JobtailError } from '../../errors.ts';
import { GrowingBuffer } from '../../growing-buffer.ts';
import type { Lifted } from './lifted.ts';

/** Each name costs some memory besides its bytes. */
const BYTES_PER_NAME = 32;

export class ListedNames implements Lifted {
  readonly names: string[] = [];
  readonly #maxBytes: number;
  readonly #name = new GrowingBuffer();
  #length = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  begin(): void {
    this.#name.clear();
    this.#count(BYTES_PER_NAME);
  }

  bytes(bytes: Buffer): void {
    this.#count(bytes.length);
    this.#name.append(bytes);
  }

  end(): void {
    this.names.push(this.#name.view().toString());
  }

  async flush(): Promise<void> {}

  #count(bytes: number): void {
    this.#length += bytes;
    if (this.#length <= this.#maxBytes) return;
    throw new JobtailError('answer-too-large', `the listing is larger than the ${this.#maxBytes} bytes allowed`, {
      hint: 'the job has too many files to be synced one by one: pack them on the cluster, or watch it with --no-results',
    });
  }
}
