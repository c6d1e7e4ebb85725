/** The names of a listing, in either of its forms (docs/dev/rest.md 3.3), with the dates of the later one. */
import type { Listing } from '../../agent/ports.ts';
import { type Lifted, ListedNames } from '../content/lifted.ts';
import { LISTED_FILE } from './contract.ts';

const NAME = LISTED_FILE.name.toLowerCase();
const MODIFIED = LISTED_FILE.modified.toLowerCase();
/** A longer date is ignored. */
const MAX_STAMP_CHARACTERS = 64;

export class ListedFiles implements Lifted {
  readonly #names: ListedNames;
  readonly #stamps = new Map<string, string>();
  readonly #path: string[] = [];
  #isRecord = false;
  #hasName = false;
  #stamp = '';

  constructor(maxBytes: number) {
    this.#names = new ListedNames(maxBytes);
  }

  get listing(): Listing {
    const { names } = this.#names;
    return this.#stamps.size === 0 ? names : Object.assign(names, { stamps: this.#stamps });
  }

  begin(): void {
    this.#isRecord = false;
    this.#hasName = false;
    this.#stamp = '';
    this.#names.begin();
  }

  readonly element = {
    open: (name: string): void => {
      this.#isRecord = true;
      this.#path.push(name);
      this.#hasName ||= this.#isAt(NAME);
    },
    close: (): void => {
      this.#path.pop();
    },
  };

  bytes(bytes: Buffer): void {
    if (!this.#isRecord || this.#isAt(NAME)) this.#names.bytes(bytes);
    else if (this.#isAt(MODIFIED) && this.#stamp.length <= MAX_STAMP_CHARACTERS) this.#stamp += bytes.toString();
  }

  end(): void {
    if (this.#isRecord && !this.#hasName) return;
    this.#names.end();
    const name = this.#names.names.at(-1);
    const isStamp = this.#stamp !== '' && this.#stamp.length <= MAX_STAMP_CHARACTERS;
    if (isStamp && name !== undefined) this.#stamps.set(name, this.#stamp);
  }

  async flush(): Promise<void> {}

  #isAt(name: string): boolean {
    return this.#path.length === 1 && this.#path[0] === name;
  }
}
