/**
 * The capabilities of a REST server, detected by its responses: no operation returns its release (docs/dev/rest.md). They
 * are stored across restarts, and detected again when they stop being true: a server may be upgraded at any time.
 */
import type { Operation } from '../../operations.ts';
import { ADDRESSES, type Address } from './contract.ts';

export interface KeptCapabilities {
  get(name: string): string | undefined;
  set(name: string, value: string): void;
}

/** The path of a file in a request: its listed name, or that name below the job id (docs/dev/rest.md 3.4). */
const PATH_FORMS = ['listed', 'below the job'] as const;
export type PathForm = (typeof PATH_FORMS)[number];

const PATH_FORM = 'rest-path';
const PARTS_BYTES = 'rest-parts-bytes';
const OPERATIONS = Object.keys(ADDRESSES) as Operation[];
const addressCapability = (operation: Operation) => `rest-address-${operation}`;

/**
 * Every release accepts paths of this length, and none accepts longer ones than `MAX_PATH_CHARACTERS` (docs/dev/rest.md
 * 3.4).
 */
const SHORT_PATH = 50;
const MAX_PATH_CHARACTERS = 255;
/** After this time, long paths are tried again: nothing else shows that they are accepted. */
const BELIEVED_MS = 24 * 60 * 60_000;
/** The smallest limit of a release (docs/dev/rest.md 2.1): no request for parts is longer. */
const SMALLEST_PARTS_BYTES = 452;

interface CapabilitiesOptions {
  readonly kept: KeptCapabilities;
  readonly onChange: (what: string) => void;
  readonly now: () => number;
}

export class RestCapabilities {
  readonly #options: CapabilitiesOptions;
  #longRefusedAt: number | undefined;

  constructor(options: CapabilitiesOptions) {
    this.#options = options;
  }

  /**
   * The possible addresses of an operation: the last one that worked, else that of the latest releases, comes first.
   */
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
  get known(): { addresses: string[]; pathForm: PathForm | undefined; partsBytes: number } {
    const { kept } = this.#options;
    const addresses = OPERATIONS.flatMap((operation) => kept.get(addressCapability(operation)) ?? []);
    const form = kept.get(PATH_FORM);
    return { addresses, pathForm: PATH_FORMS.find((known) => known === form), partsBytes: this.partsBytes };
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
    return Number(this.#options.kept.get(PARTS_BYTES) ?? SMALLEST_PARTS_BYTES);
  }

  partsTooLong(bytes: number): void {
    const half = Math.floor(bytes / 2);
    if (half < this.partsBytes) this.#learn(PARTS_BYTES, String(half), 'the longest request for parts');
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

/** The first release of each series with the same capabilities. */
const RELEASES: readonly string[] = [
  ...['2.0', '2.1', '2.2', '3.0', '3.1', '4.0', '4.1', '4.2', '4.3'],
  ...['5.0', '6.0', '6.1', '6.2', '6.3', '6.4', '6.5'],
];

type Span = readonly [from: string, to: string];

/** The releases with an address, a path form, or a form of listed names. Missing entries prove nothing. */
const SPANS: Readonly<Record<string, readonly Span[]>> = {
  // docs/dev/rest.md 1.2
  'POST FileTransfer/ListChangedFilesForJob': [['2.0', '4.1']],
  'GET FileTransfer/ListChangedFilesForJob': [['4.0', '6.5']],
  'POST FileTransfer/GetFileTransferMethod': [
    ['2.0', '3.1'],
    ['4.1', '4.1'],
  ],
  'POST FileTransfer/RequestFileTransfer': [['4.0', '6.5']],
  'POST FileTransfer/EndFileTransfer': [
    ['2.0', '3.1'],
    ['4.1', '4.1'],
  ],
  'POST FileTransfer/CloseFileTransfer': [['4.0', '6.5']],
  'POST JobManagement/GetCurrentInfoForJob': [['2.0', '4.1']],
  'GET JobManagement/CurrentInfoForJob': [['4.0', '6.5']],
  'POST JobManagement/ListJobsForCurrentUser': [['2.0', '4.1']],
  'GET JobManagement/ListJobsForCurrentUser': [['4.0', '6.5']],
  // docs/dev/rest.md 3.4
  listed: [
    ['2.0', '3.1'],
    ['4.1', '6.5'],
  ],
  'below the job': [
    ['4.0', '4.0'],
    ['4.3', '6.1'],
  ],
  'without a leading slash': [['2.0', '2.1']],
  'with a leading slash': [['2.2', '6.5']],
};

export function releasesFitting(capabilities: readonly string[]): string[] {
  const spans = capabilities.flatMap((capability) => (SPANS[capability] === undefined ? [] : [SPANS[capability]]));
  return RELEASES.filter((release) =>
    spans.every((alternatives) =>
      alternatives.some(([from, to]) => rank(from) <= rank(release) && rank(release) <= rank(to)),
    ),
  );
}

/** For people: `V2.0 to V3.1, V4.1`. */
export function spansOf(releases: readonly string[]): string {
  const runs: string[][] = [];
  for (const release of releases) {
    const last = runs.at(-1);
    if (last !== undefined && rank(last.at(-1) ?? '') + 1 === rank(release)) last.push(release);
    else runs.push([release]);
  }
  return runs.map((run) => (run.length === 1 ? `V${run[0]}` : `V${run[0]} to V${run.at(-1)}`)).join(', ');
}

export function formOfNames(names: readonly string[]): string | undefined {
  // Absolute paths of a scratch directory do not begin with a number.
  if (names.some((name) => /^\/\d+\/[^/]/.test(name))) return 'with a leading slash';
  return names.some((name) => /^\d+\//.test(name)) ? 'without a leading slash' : undefined;
}

const rank = (release: string) => RELEASES.indexOf(release);
