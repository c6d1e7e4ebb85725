/**
 * The capabilities of a REST server, detected by its responses: no operation returns its release (docs/rest.md). They
 * are stored across restarts, and detected again when they stop being true: a server may be upgraded at any time.
 */
import type { Operation } from '../../operations.ts';
import { ADDRESSES, type Address } from './contract.ts';

/** Where it is stored; implemented by the store. */
export interface KeptCapabilities {
  get(name: string): string | undefined;
  set(name: string, value: string): void;
}

/** The path of a file in a request: its listed name, or that below the id of its job (docs/rest.md 3.4). */
const PATH_FORMS = ['listed', 'below the job'] as const;
export type PathForm = (typeof PATH_FORMS)[number];

const PATH_FORM = 'rest-path';
const PARTS_BYTES = 'rest-parts-bytes';
const OPERATIONS = Object.keys(ADDRESSES) as Operation[];
const addressCapability = (operation: Operation) => `rest-address-${operation}`;

/** Characters of a path that every release takes, and that none takes more than (docs/rest.md 3.4). */
const SHORT_PATH = 50;
const MAX_PATH_CHARACTERS = 255;
/** Nothing else shows that long paths are taken by now. */
const BELIEVED_MS = 24 * 60 * 60_000;
/** The smallest limit of a release (docs/rest.md 2.1): no request for parts is ever longer. */
const SMALLEST_PARTS_BYTES = 452;

interface CapabilitiesOptions {
  readonly kept: KeptCapabilities;
  /** Called when a capability changed: with a description without secrets. */
  readonly onChange: (what: string) => void;
  /** A clock that never jumps, in milliseconds. */
  readonly now: () => number;
}

export class RestCapabilities {
  readonly #options: CapabilitiesOptions;
  #longRefusedAt: number | undefined;

  constructor(options: CapabilitiesOptions) {
    this.#options = options;
  }

  /** Where an operation may be: where it was last, else where it is on the latest releases, comes first. */
  addressesOf(operation: Operation): readonly Address[] {
    const known = this.#options.kept.get(addressCapability(operation));
    const addresses: readonly Address[] = ADDRESSES[operation];
    return addresses.toReversed().sort((a, b) => Number(textOf(b) === known) - Number(textOf(a) === known));
  }

  /** The operation is there. */
  foundAt(operation: Operation, address: Address): void {
    if (ADDRESSES[operation].length > 1) this.#learn(addressCapability(operation), textOf(address), operation);
  }

  /** In the order in which they are to be tried. */
  get pathForms(): readonly PathForm[] {
    const known = this.#options.kept.get(PATH_FORM);
    return PATH_FORMS.toSorted((a, b) => Number(b === known) - Number(a === known));
  }

  /** The capabilities for people: addresses of operations that have had several, and the form of requests for files. */
  get known(): { addresses: string[]; pathForm: PathForm | undefined; partsBytes: number } {
    const { kept } = this.#options;
    const addresses = OPERATIONS.flatMap((operation) => kept.get(addressCapability(operation)) ?? []);
    const form = kept.get(PATH_FORM);
    return { addresses, pathForm: PATH_FORMS.find((known) => known === form), partsBytes: this.partsBytes };
  }

  worksBy(form: PathForm): void {
    this.#learn(PATH_FORM, form, 'the path of a file');
  }

  /** Characters of the longest path that is worth asking for. */
  get maxPathCharacters(): number {
    const { now } = this.#options;
    return this.#longRefusedAt === undefined || now() - this.#longRefusedAt > BELIEVED_MS
      ? MAX_PATH_CHARACTERS
      : SHORT_PATH;
  }

  /** A path of this length was refused: some releases accept only short ones, and do not report that. */
  pathRefused(length: number): void {
    if (length > SHORT_PATH) this.#longRefusedAt = this.#options.now();
  }

  /** Bytes of the longest request for parts. */
  get partsBytes(): number {
    return Number(this.#options.kept.get(PARTS_BYTES) ?? SMALLEST_PARTS_BYTES);
  }

  /** A request for parts of so many bytes was refused for its length. */
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

/** The first of each row of releases that are alike. */
const RELEASES: readonly string[] = [
  ...['2.0', '2.1', '2.2', '3.0', '3.1', '4.0', '4.1', '4.2', '4.3'],
  ...['5.0', '6.0', '6.1', '6.2', '6.3', '6.4', '6.5'],
];

/** The first and the last release with this capability. */
type Span = readonly [from: string, to: string];

/** By the text of an address, a path form, or the form of listed names. Missing ones prove nothing. */
const SPANS: Readonly<Record<string, readonly Span[]>> = {
  // docs/rest.md 1.2
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
  // docs/rest.md 3.4
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

export type Decoder = 'blocks' | 'stream';

/** The last release that decodes text in blocks (docs/rest.md 3.2). */
const LAST_WITH_BLOCKS = '6.3';

/** The releases, in order, that have all of these capabilities. */
export function releasesFitting(capabilities: readonly string[]): string[] {
  const spans = capabilities.flatMap((capability) => (SPANS[capability] === undefined ? [] : [SPANS[capability]]));
  return RELEASES.filter((release) =>
    spans.every((alternatives) =>
      alternatives.some(([from, to]) => rank(from) <= rank(release) && isUpTo(release, to)),
    ),
  );
}

/** In words: `V2.0 to V3.1, V4.1`. */
export function spansOf(releases: readonly string[]): string {
  const runs: string[][] = [];
  for (const release of releases) {
    const last = runs.at(-1);
    if (last !== undefined && rank(last.at(-1) ?? '') + 1 === rank(release)) last.push(release);
    else runs.push([release]);
  }
  return runs.map((run) => (run.length === 1 ? `V${run[0]}` : `V${run[0]} to V${run.at(-1)}`)).join(', ');
}

/** The form of the names in a listing; undefined if they do not show it. */
export function formOfNames(names: readonly string[]): string | undefined {
  // Absolute paths, of a scratch directory that is a link, do not begin with a number.
  if (names.some((name) => /^\/\d+\/[^/]/.test(name))) return 'with a leading slash';
  return names.some((name) => /^\d+\//.test(name)) ? 'without a leading slash' : undefined;
}

/** The releases by how they decode live files; a decoder that none of them has is left out. */
export function byDecoder(releases: readonly string[]): [decoder: Decoder, releases: readonly string[]][] {
  const decoders: [Decoder, string[]][] = [
    ['blocks', releases.filter((release) => isUpTo(release, LAST_WITH_BLOCKS))],
    ['stream', releases.filter((release) => !isUpTo(release, LAST_WITH_BLOCKS))],
  ];
  return decoders.filter(([, those]) => those.length > 0);
}

const rank = (release: string) => RELEASES.indexOf(release);
const isUpTo = (release: string, last: string) => rank(release) <= rank(last);
