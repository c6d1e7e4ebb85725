/**
 * The releases of the REST interface as one table, to be read beside docs/dev/rest.md: a row for each difference, with the
 * release from which on it is so. Where docs/dev/rest.md leaves that open, the table has what the sandbox does.
 */
import { JobtailError } from '../../src/errors.ts';
import type { KeyFormat } from '../cluster/key-pair.ts';

/** The releases that differ, each with the version that it begins with. */
const BEGINNINGS = {
  '2.0': '2.0.0',
  '2.1': '2.1.0',
  '2.2': '2.2.0',
  '3.0': '3.0.0',
  '3.1': '3.1.0',
  '4.0': '4.0.0',
  '4.1': '4.1.0',
  '4.2.0': '4.2.0',
  '4.2': '4.2.1',
  '4.3': '4.3.0',
  '5.0': '5.0.0',
  '6.0': '6.0.0',
  '6.1': '6.1.0',
  '6.2': '6.2.0',
  '6.3': '6.2.9',
  '6.4': '6.4.0',
  '6.5': '6.4.1',
} as const;
export type ReleaseName = keyof typeof BEGINNINGS;

/** In their order. */
const RELEASE_NAMES = Object.keys(BEGINNINGS) as ReleaseName[];

/** Beyond it, nothing is known. */
const END = '6.6.0';

/** What a release does. */
export interface Release {
  readonly name: ReleaseName;

  /** Of contract.ts, which addresses the key and its end have: the first ones, the second ones, or both (1.2). */
  readonly keyAddresses: 'first' | 'second' | 'both';
  /** The same of the listing, the job, and the jobs of the user (1.2). */
  readonly readAddresses: 'first' | 'second' | 'both';

  /** Bytes of a body (2.1). */
  readonly maxPasswordBytes: number;
  readonly maxTokenBytes: number;
  readonly maxPartsBytes: number;
  /** Of a listing, a job, a key. */
  readonly maxReadBytes: number;
  /** Of the jobs of the user. */
  readonly maxJobsBytes: number;
  readonly maxFileBytes: number;
  readonly maxEndBytes: number;
  /** The answer to a longer one: a status page (400), a status with a problem, or 413 without a body (2.3). */
  readonly tooLong: 'page' | 413 | 400 | 'empty';
  /** The answer to an unknown path and to a wrong verb: a status page (404, 405), or 500 without a body (1.1). */
  readonly unknownPath: 'page' | 'empty';
  /** Which arguments are validated before anything is looked up (4.3). */
  readonly validates: 'none' | 'bodies' | 'all';

  /** How the text of live files is made (3.2). */
  readonly decoder: 'blocks' | 'stream';
  /** `{spec}/{sub}//{path}`, `/{spec}/{path}`, `/{spec}/{sub}/{path}` (3.4). */
  readonly names: 'slashes' | 'no-subdirectory' | 'whole';
  /** Whether the name of a whole file begins with a slash (3.4). */
  readonly slash: 'needed' | 'optional';
  /**
   * What the name of a whole file begins with: the specification; the job; the job unless the specification has the id
   * of a task (3.4).
   */
  readonly asked: 'specification' | 'job' | 'job-unless-task';
  /** Characters of such a name; a longer one is refused. */
  readonly maxNameLength: number;

  /** Of private keys (3.7). */
  readonly keyFormat: KeyFormat;
  /** The keys that count towards the number of a job (3.7). */
  readonly keysCount: 'open' | 'ever';

  /** `Health` is there (4.1). */
  readonly health: boolean;
  /** AuthenticateLexisToken is there (4.1). */
  readonly lexisToken: boolean;
  /** `Authorization: Bearer` and `X-API-Key` in place of a session code (4.1). */
  readonly headers: boolean;
  /** The body of a failure: a string, a problem with the text in its title, or with a detail (4.2). */
  readonly problem: 'string' | 'title' | 'detail';
}

/** Values by the release from which on they are so. */
export type Row<Value> = Readonly<Partial<Record<ReleaseName, Value>> & Record<'2.0', Value>>;

const TABLE: { readonly [Name in keyof Omit<Release, 'name'>]: Row<Release[Name]> } = {
  // docs/dev/rest.md 1
  keyAddresses: { '2.0': 'first', '4.0': 'second', '4.1': 'both', '4.2.0': 'second' },
  readAddresses: { '2.0': 'first', '4.0': 'both', '4.2.0': 'second' },
  // docs/dev/rest.md 2
  maxPasswordBytes: { '2.0': 220, '2.1': 148 },
  maxTokenBytes: { '2.0': 15_000, '2.1': 2048, '4.2.0': 4096 },
  maxPartsBytes: { '2.0': 452, '2.1': 480 },
  maxReadBytes: { '2.0': 80, '2.1': 98 },
  maxJobsBytes: { '2.0': 54, '2.1': 60 },
  maxFileBytes: { '2.0': 372, '2.1': 378, '4.3': 700 },
  maxEndBytes: { '2.0': 4600, '3.1': 4700 },
  tooLong: { '2.0': 'page', '4.0': 413, '4.3': 400, '6.2': 'empty' },
  unknownPath: { '2.0': 'page', '6.2': 'empty' },
  validates: { '2.0': 'none', '2.1': 'bodies', '5.0': 'all' },
  // docs/dev/rest.md 3
  decoder: { '2.0': 'blocks', '6.4': 'stream' },
  names: { '2.0': 'slashes', '2.2': 'no-subdirectory', '4.3': 'whole' },
  slash: { '2.0': 'needed', '4.3': 'optional' },
  asked: {
    '2.0': 'specification',
    '4.0': 'job',
    '4.1': 'specification',
    '4.3': 'job-unless-task',
    '6.2': 'specification',
  },
  maxNameLength: { '2.0': 255, '2.1': 50, '4.3': 255 },
  keyFormat: { '2.0': 'rsa-pem', '6.0': 'ed25519-openssh' },
  keysCount: { '2.0': 'open', '5.0': 'ever', '6.4': 'open' },
  // docs/dev/rest.md 4
  health: { '2.0': false, '6.0': true },
  lexisToken: { '2.0': false, '4.2.0': true },
  headers: { '2.0': false, '6.2': true },
  problem: { '2.0': 'string', '4.0': 'title', '4.2.0': 'detail' },
};

/**
 * The release that a version is of: a name of the table, or two or three numbers, as `6.2.4`. One that is not known is
 * a `usage` error.
 */
export function releaseNamed(version: string): ReleaseName {
  if (Object.hasOwn(BEGINNINGS, version)) return version as ReleaseName;
  const isVersion = /^\d{1,3}\.\d{1,3}(\.\d{1,3})?$/.test(version);
  const begun = RELEASE_NAMES.filter((name) => isVersion && !isBefore(version, BEGINNINGS[name]));
  const last = begun.at(-1);
  if (last !== undefined && isBefore(version, END)) return last;
  throw new JobtailError('usage', `no release "${version}" is known`, {
    hint: `name one of ${RELEASE_NAMES.join(', ')}, or a version between them`,
  });
}

/** All that a release does. */
export function releaseOf(name: ReleaseName): Release {
  const values = Object.entries(TABLE).map(([column, row]: [string, Row<unknown>]) => [column, valueAt(row, name)]);
  return { ...(Object.fromEntries(values) as Release), name };
}

/** What a release has in a row. */
export function valueAt<Value>(row: Row<Value>, name: ReleaseName): Value {
  const until = RELEASE_NAMES.slice(0, RELEASE_NAMES.indexOf(name) + 1);
  const from = until.findLast((one) => one in row) ?? '2.0';
  return row[from] as Value;
}

/** A name that is none of the table is a `usage` error. */
export function checkRelease(name: string): void {
  if (!Object.hasOwn(BEGINNINGS, name)) throw new JobtailError('usage', `the sandbox has no release "${name}"`);
}

function isBefore(a: string, b: string): boolean {
  const [left, right] = [a, b].map((version) => version.split('.').map(Number)) as [number[], number[]];
  const at = [0, 1, 2].find((index) => (left[index] ?? 0) !== (right[index] ?? 0));
  return at !== undefined && (left[at] ?? 0) < (right[at] ?? 0);
}
