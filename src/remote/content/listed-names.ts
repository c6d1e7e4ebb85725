/** The names of a listing, in the forms of both protocols (docs/dev/rest.md 3.3), with the dates of the latest one. */
import type { Listing } from '../../agent/ports/server.ts';
import { JobtailError } from '../../errors.ts';
import { fieldsOf, textOf, type Value } from './values.ts';

/** Overhead of each name in memory. */
const BYTES_PER_NAME = 32;
/** A longer date is ignored. */
const MAX_STAMP_CHARACTERS = 64;

export class ListedNames {
  readonly #maxBytes: number;
  readonly #names: string[] = [];
  readonly #stamps = new Map<string, string>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get listing(): Listing {
    return this.#stamps.size === 0 ? this.#names : Object.assign(this.#names, { stamps: this.#stamps });
  }

  /** @throws JobtailError answer-too-large, malformed */
  add(item: Value): void {
    const file = typeof item === 'string' ? null : fieldsOf(item);
    const name = typeof item === 'string' ? item : textOf(file?.get('filename'));
    if (name === null) return;
    this.#bytes += BYTES_PER_NAME + name.length;
    if (this.#bytes > this.#maxBytes) {
      throw new JobtailError('answer-too-large', `the listing is larger than the ${this.#maxBytes} bytes allowed`, {
        hint: 'the job has too many files to be synced one by one: pack them on the cluster, or watch it with --no-results',
      });
    }
    this.#names.push(name);
    const stamp = textOf(file?.get('lastmodifieddate'));
    if (stamp !== null && stamp !== '' && stamp.length <= MAX_STAMP_CHARACTERS) this.#stamps.set(name, stamp);
  }
}
