/** What one release does, and the release that a person names. */
import { JobtailError } from '../../src/errors.ts';
import {
  BEGINNINGS,
  FAILURES,
  type FailureKind,
  RELEASE_NAMES,
  type Release,
  type ReleaseName,
  ROWS,
  type Row,
  type Wording,
} from '../../src/remote/rest/releases.ts';

/** Beyond it, nothing is known. */
const END = '6.6.0';

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
  const values = Object.entries(ROWS).map(([column, row]: [string, Row<unknown>]) => [column, valueAt(row, name)]);
  return { ...(Object.fromEntries(values) as Release), name };
}

/** What a release has in a row. */
export function valueAt<Value>({ from }: Row<Value>, name: ReleaseName): Value {
  const until = RELEASE_NAMES.slice(0, RELEASE_NAMES.indexOf(name) + 1);
  return from[until.findLast((one) => one in from) ?? '2.0'] as Value;
}

export const wordingOf = (kind: FailureKind, release: ReleaseName): Wording => valueAt(FAILURES[kind], release);

/** A name that is none of the table is a `usage` error. */
export function checkRelease(name: string): void {
  if (!Object.hasOwn(BEGINNINGS, name)) throw new JobtailError('usage', `the sandbox has no release "${name}"`);
}

function isBefore(a: string, b: string): boolean {
  const [left, right] = [a, b].map((version) => version.split('.').map(Number)) as [number[], number[]];
  const at = [0, 1, 2].find((index) => (left[index] ?? 0) !== (right[index] ?? 0));
  return at !== undefined && (left[at] ?? 0) < (right[at] ?? 0);
}
