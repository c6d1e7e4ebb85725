/**
 * The capabilities of a REST server, detected by its responses: no operation returns its release (docs/dev/rest.md). They
 * are stored across restarts, and detected again when they stop being true: a server may be upgraded at any time.
 */
import type { CapabilityStore } from '../../agent/ports/server.ts';
import type { Operation } from '../../operations.ts';
import { ADDRESSES, type Address } from './contract.ts';

/** The path of a file in a request: its listed name, or that name below the job id (docs/dev/rest.md 3.4). */
const PATH_FORMS = ['listed', 'below the job'] as const;
export type PathForm = (typeof PATH_FORMS)[number];

const PATH_FORM = 'rest-path';
const OPERATIONS = Object.keys(ADDRESSES) as Operation[];
const addressCapability = (operation: Operation) => `rest-address-${operation}`;

/** Every release accepts such paths, none longer ones than `MAX_PATH_CHARACTERS` (docs/dev/rest.md 3.4). */
const SHORT_PATH = 50;
const MAX_PATH_CHARACTERS = 255;
/** After this time, long paths are tried again: nothing else shows that they are accepted. */
const BELIEVED_MS = 24 * 60 * 60_000;
/** The smallest limit of a release (docs/dev/rest.md 2.1): no request for parts is longer. */
const SMALLEST_PARTS_BYTES = 452;
/** For so long, requests for parts are shorter after one was too long: a proxy between may refuse one for a moment. */
const SHORTER_MS = 10 * 60_000;

interface CapabilitiesOptions {
  readonly kept: CapabilityStore;
  readonly onChange: (what: string) => void;
  readonly now: () => number;
}

export class RestCapabilities {
  readonly #options: CapabilitiesOptions;
  #longRefusedAt: number | undefined;
  #shorter: { readonly bytes: number; readonly since: number } | undefined;

  constructor(options: CapabilitiesOptions) {
    this.#options = options;
  }

  /** The last one that worked comes first, else that of the latest releases. */
  addressesOf(operation: Operation): readonly Address[] {
    const known = this.#options.kept.get(addressCapability(operation));
    const addresses: readonly Address[] = ADDRESSES[operation];
    return addresses.toReversed().sort((a, b) => Number(textOf(b) === known) - Number(textOf(a) === known));
  }

  foundAt(operation: Operation, address: Address): void {
    if (ADDRESSES[operation].length > 1) this.#learn(addressCapability(operation), textOf(address), operation);
  }

  get pathForms(): readonly PathForm[] {
    const known = this.#options.kept.get(PATH_FORM);
    return PATH_FORMS.toSorted((a, b) => Number(b === known) - Number(a === known));
  }

  /** The detected capabilities, for people. */
  get known(): { addresses: string[]; pathForm: PathForm | undefined } {
    const { kept } = this.#options;
    const addresses = OPERATIONS.flatMap((operation) => kept.get(addressCapability(operation)) ?? []);
    const form = kept.get(PATH_FORM);
    return { addresses, pathForm: PATH_FORMS.find((known) => known === form) };
  }

  worksBy(form: PathForm): void {
    this.#learn(PATH_FORM, form, 'the path of a file');
  }

  get maxPathCharacters(): number {
    const { now } = this.#options;
    return this.#longRefusedAt === undefined || now() - this.#longRefusedAt > BELIEVED_MS
      ? MAX_PATH_CHARACTERS
      : SHORT_PATH;
  }

  /** Records a refused path length: some releases accept only short paths, and do not report that. */
  pathRefused(length: number): void {
    if (length > SHORT_PATH) this.#longRefusedAt = this.#options.now();
  }

  get partsBytes(): number {
    const shorter = this.#shorter;
    const isOver = shorter === undefined || this.#options.now() - shorter.since >= SHORTER_MS;
    return isOver ? SMALLEST_PARTS_BYTES : shorter.bytes;
  }

  partsTooLong(bytes: number): void {
    const half = Math.floor(bytes / 2);
    if (half < this.partsBytes) this.#shorter = { bytes: half, since: this.#options.now() };
  }

  #learn(capability: string, value: string, what: string): void {
    const { kept, onChange } = this.#options;
    const before = kept.get(capability);
    if (before === value) return;
    kept.set(capability, value);
    if (before !== undefined) onChange(`${what}: ${value}, and no longer ${before}`);
  }
}

const textOf = ({ verb, path }: Address) => `${verb} ${path}`;
