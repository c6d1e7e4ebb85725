/**
 * The capabilities of a REST server, detected by its responses: no operation returns its release (docs/dev/rest.md). They
 * are stored across restarts, and detected again when they stop being true: a server may be upgraded at any time.
 */
import type { CapabilityStore } from '../../agent/ports/server.ts';
import type { Operation } from '../../operations.ts';
import type { Address } from './contract.ts';
import { addressesOf, type PathForm, ROWS, valuesOf } from './releases.ts';

const PATH_FORMS: readonly PathForm[] = [...new Set(valuesOf(ROWS.pathForms).flat())];
const PATH_FORM = 'rest-path';
const addressCapability = (operation: Operation) => `rest-address-${operation}`;

/** Every release accepts paths of the smaller length, and none longer ones than the larger. */
const SHORT_PATH = Math.min(...valuesOf(ROWS.maxNameLength));
const MAX_PATH_CHARACTERS = Math.max(...valuesOf(ROWS.maxNameLength));
/** After this time, names that were refused are tried again: nothing else shows that they are accepted. */
const BELIEVED_MS = 24 * 60 * 60_000;

interface CapabilitiesOptions {
  readonly kept: CapabilityStore;
  readonly onChange: (what: string) => void;
  readonly now: () => number;
}

export class RestCapabilities {
  readonly #options: CapabilitiesOptions;
  /** When names were refused, for their length or for a character. */
  #longRefusedAt = Number.NEGATIVE_INFINITY;
  #oddRefusedAt = Number.NEGATIVE_INFINITY;

  constructor(options: CapabilitiesOptions) {
    this.#options = options;
  }

  /** The last one that worked comes first, else that of the latest releases. */
  addressesOf(operation: Operation): readonly Address[] {
    const known = this.#options.kept.get(addressCapability(operation));
    return addressesOf(operation).sort((a, b) => Number(textOf(b) === known) - Number(textOf(a) === known));
  }

  foundAt(operation: Operation, address: Address): void {
    if (addressesOf(operation).length > 1) this.#learn(addressCapability(operation), textOf(address), operation);
  }

  get pathForms(): readonly PathForm[] {
    const known = this.#options.kept.get(PATH_FORM);
    return PATH_FORMS.toSorted((a, b) => Number(b === known) - Number(a === known));
  }

  worksBy(form: PathForm): void {
    this.#learn(PATH_FORM, form, 'the path of a file');
  }

  /** Why no file of this path is requested: this server refused such a path, or each release does. */
  reasonAgainst(path: string): string | undefined {
    const character = oddCharacterIn(path);
    if (character !== undefined && this.#isBelieved(this.#oddRefusedAt))
      return `the service hands out no file with the character ${character} in its name`;
    const maxCharacters = this.#isBelieved(this.#longRefusedAt) ? SHORT_PATH : MAX_PATH_CHARACTERS;
    if (path.length <= maxCharacters) return undefined;
    return `the service hands out no file with a path of more than ${maxCharacters} characters`;
  }

  /** Records a refused path: some releases accept only short ones, and do not report that. */
  pathRefused(path: string, isTooLong: boolean): void {
    if (oddCharacterIn(path) !== undefined && !isTooLong) this.#oddRefusedAt = this.#options.now();
    else if (path.length > SHORT_PATH) this.#longRefusedAt = this.#options.now();
  }

  #isBelieved(refusedAt: number): boolean {
    return this.#options.now() - refusedAt <= BELIEVED_MS;
  }

  #learn(capability: string, value: string, what: string): void {
    const { kept, onChange } = this.#options;
    const before = kept.get(capability);
    if (before === value) return;
    kept.set(capability, value);
    if (before !== undefined) onChange(`${what}: ${value}, and no longer ${before}`);
  }
}

/** The first character that not every release accepts in a path. */
function oddCharacterIn(path: string): string | undefined {
  return [...path].find((character) => valuesOf(ROWS.nameCharacters).some((accepted) => !accepted.test(character)));
}

const textOf = ({ verb, path }: Address) => `${verb} ${path}`;
