/** What the simulated cluster is to serve in a test of the contract: one job, in one dialect. */
import type { SandboxHabits } from '../../simulator/habits.ts';
import type { LiveFileName } from '../../src/job.ts';

export const VERSIONS = ['1.1', '1.2'] as const;
export type Version = (typeof VERSIONS)[number];

/** The releases of the REST interface that are held against the contract (docs/dev/rest.md). */
export const RELEASES = ['2.0', '2.2', '3.1', '4.0', '4.1', '4.2', '4.3', '5.0', '6.0', '6.2', '6.3', '6.4'] as const;

/** The oldest, one that lists all but the task's own directory, the newest; the others are held against it in long/rest.test.ts. */
export const MAIN_RELEASES: readonly (typeof RELEASES)[number][] = ['2.0', '4.2', '6.4'];

/** A protocol with its version or release: what a scenario may ask of it. */
export interface Dialect {
  /** `SOAP 1.2`, `REST 6.3` */
  readonly name: string;
  readonly protocol: 'soap' | 'rest';
  readonly version: Version | (typeof RELEASES)[number];
  /** A token may stand in the place of a session code. */
  readonly tokens: boolean;
  /** Job ids may have 64 bits in every request. */
  readonly longIds: boolean;
  /** A byte-order mark at the offset is swallowed. */
  readonly swallowsMarks: boolean;
}

export const soapDialect = (version: Version): Dialect => ({
  ...{ name: `SOAP ${version}`, protocol: 'soap', version },
  ...{ tokens: true, longIds: true, swallowsMarks: false },
});

export const restDialect = (version: (typeof RELEASES)[number]): Dialect => ({
  ...{ name: `REST ${version}`, protocol: 'rest', version },
  tokens: Number(version) >= 6.2,
  // Of 80 bytes, a session code leaves room for four digits.
  longIds: version !== '2.0',
  swallowsMarks: Number(version) >= 6.4,
});

const LONG_MAX = '9223372036854775807';

/** The ends of what the id of a job may be. */
export const JOB_ENDS = [LONG_MAX, '1'];

export interface ServedTask {
  readonly taskId: string;
  /** Live files that exist; their texts are UTF-8 whose characters do not cross a multiple of 1,024 bytes. */
  readonly live: Partial<Readonly<Record<LiveFileName, string>>>;
}

/** What the service knows. */
export interface ServedJob {
  readonly jobId: string;
  readonly tasks?: readonly ServedTask[];
  /** Whole files by the names under which they are listed. Those below `/701/` may hold any bytes, others only text. */
  readonly files?: ReadonlyMap<string, Buffer>;
  /** It is not submitted yet: its listing is nil. */
  readonly held?: boolean;
  readonly habits?: Partial<SandboxHabits>;
}

/** The names of live files as they are told. */
export const RELATIVE_PATHS: Readonly<Record<LiveFileName, string>> = {
  stdout: '/stdout.txt',
  stderr: '/stderr.txt',
  log: '/task.log',
  progress: '/progress.txt',
};
