/** What can happen to jobs and to the agent that follows them, as data: generated, shrunk and printed. */
import fc from 'fast-check';
import type { LiveFileName } from '../../../src/job.ts';
import type { ResultKind, Spelling } from '../cluster.ts';

/** How a call fails. `silent`: after its time limit. */
export type FaultCode =
  | 'http-status'
  | 'unavailable'
  | 'unreachable'
  | 'silent'
  | 'fault'
  | 'malformed'
  | 'session-lost';

/** The calls that a fault is for. `all`: an outage. */
export type FaultOf = 'list' | 'report' | 'parts' | 'listing' | 'raw' | 'result' | 'revoke' | 'all';

/** `job`: by number; null: of all jobs. */
export interface Fault {
  readonly of: FaultOf;
  readonly job: number | null;
  readonly code: FaultCode;
}

/** A job at the beginning of a history. */
export interface JobPlan {
  readonly state: 'none' | 'configuring' | 'queued' | 'running' | 'over' | 'long over';
  readonly isListed: boolean;
  readonly namesTasks: boolean;
  readonly listsLiveFiles: boolean;
  readonly lines: number;
  readonly results: readonly ResultKind[];
  /** Whether it has so many results that their downloads take a while. */
  readonly hasMany: boolean;
  readonly followed: 'no' | 'command' | 'config';
  /** What fails until the end. */
  readonly fault: Omit<Fault, 'job'> | null;
}

export interface Setting {
  readonly jobs: readonly JobPlan[];
  readonly spelling: Spelling;
  /** How far the clock of the cluster is ahead, in milliseconds. */
  readonly clockMs: number;
  /** How long the service works on a call. */
  readonly workMs: number;
  readonly concurrency: number;
  readonly transfer: 'service' | 'direct';
  readonly hasDates: boolean;
  readonly mine: number | null;
  readonly retention: boolean;
  /** In the end, a minute of outage comes each few minutes. */
  readonly isFlaky: boolean;
  readonly chance: number;
}

type Happening =
  | { readonly do: 'start' | 'queue' | 'delete' | 'add-task' | 'stop-showing'; readonly job: number }
  | {
      readonly do: 'end';
      readonly job: number;
      readonly state: 'Finished' | 'Failed' | 'Canceled';
      /** It is deleted so long after its end. */
      readonly deletedAfterMs: number | null;
    }
  | { readonly do: 'write'; readonly job: number; readonly file: LiveFileName; readonly lines: number }
  | { readonly do: 'result'; readonly job: number; readonly name: number; readonly kind: ResultKind }
  | { readonly do: 'delay'; readonly of: 'list' | 'report'; readonly ms: number }
  | { readonly do: 'forget-job'; readonly of: 'list' | 'report' | 'both'; readonly job: number }
  | { readonly do: 'spell'; readonly spelling: Spelling }
  | { readonly do: 'fail'; readonly fault: Fault }
  | { readonly do: 'heal' }
  | { readonly do: 'watch'; readonly job: number; readonly results: boolean }
  | { readonly do: 'unwatch'; readonly job: number; readonly isNow: boolean }
  | { readonly do: 'sync' | 'wait' | 'forget'; readonly job: number }
  | { readonly do: 'mine'; readonly max: number | null }
  | { readonly do: 'configure'; readonly jobs: readonly number[]; readonly mine: number | null }
  | { readonly do: 'restart' }
  | { readonly do: 'set-clock'; readonly ms: number }
  | { readonly do: 'kill'; readonly calls: number }
  | { readonly do: 'foreground'; readonly job: number; readonly ms: number }
  | { readonly do: 'nothing' };

/** What happens, so long after the step before it. */
export type Step = Happening & { readonly afterMs: number };

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const job = fc.nat(7);
const spelling = fc.constantFrom<Spelling[]>('milliseconds', 'seconds', 'ticks', 'another zone', 'no zone');
const kind = fc.oneof(
  { weight: 5, arbitrary: fc.constant<ResultKind>('file') },
  { weight: 2, arbitrary: fc.constantFrom<ResultKind[]>('link to a directory', 'dead link') },
  { weight: 1, arbitrary: fc.constantFrom<ResultKind[]>('unreadable', 'bad name') },
);
const code = fc.constantFrom<FaultCode[]>(
  'http-status',
  'http-status',
  'unavailable',
  'unreachable',
  'silent',
  'fault',
  'malformed',
  'session-lost',
);
/** Of one job for ever: an outage is of all, and ends. */
const lasting: fc.Arbitrary<Omit<Fault, 'job'>> = fc.record({
  of: fc.constantFrom<FaultOf[]>('report', 'parts', 'listing', 'raw', 'result', 'revoke'),
  code: fc.constantFrom<FaultCode[]>('http-status', 'http-status', 'fault', 'malformed', 'silent'),
});
const fault: fc.Arbitrary<Fault> = fc.oneof(
  fc.record({ of: lasting.map(({ of }) => of), job, code }),
  fc.record({ of: fc.constantFrom<FaultOf[]>('all', 'all', 'list'), job: fc.constant(null), code }),
);

const plan: fc.Arbitrary<JobPlan> = fc.record({
  state: fc.constantFrom<JobPlan['state'][]>(
    ...(['running', 'running', 'running', 'queued', 'over', 'long over', 'configuring', 'none'] as const),
  ),
  isListed: fc.constantFrom(true, true, true, false),
  namesTasks: fc.constantFrom(...Array.from({ length: 24 }, () => true), false),
  listsLiveFiles: fc.constantFrom(true, true, true, true, true, false),
  lines: fc.nat(4),
  results: fc.array(kind, { maxLength: 3 }),
  hasMany: fc.constantFrom(false, false, false, false, false, true),
  followed: fc.constantFrom<JobPlan['followed'][]>('command', 'command', 'config', 'no'),
  fault: fc.oneof({ weight: 5, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: lasting }),
});

export const setting: fc.Arbitrary<Setting> = fc.record({
  jobs: fc.oneof(
    { weight: 4, arbitrary: fc.array(plan, { minLength: 3, maxLength: 4 }) },
    { weight: 1, arbitrary: fc.array(plan, { minLength: 5, maxLength: 8, size: 'max' }) },
  ),
  spelling,
  clockMs: fc.constantFrom(0, 0, -MINUTE_MS, MINUTE_MS, -10 * MINUTE_MS, 10 * MINUTE_MS),
  workMs: fc.constantFrom(5, 50, 500),
  concurrency: fc.constantFrom(1, 2, 4),
  transfer: fc.constantFrom('service', 'service', 'direct'),
  hasDates: fc.boolean(),
  mine: fc.oneof({ weight: 2, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.integer({ min: 1, max: 3 }) }),
  retention: fc.constantFrom(false, false, true),
  isFlaky: fc.constantFrom(false, false, true),
  chance: fc.nat(),
});

const of = <Name extends Happening['do']>(name: Name) => fc.constant(name);
const happening: fc.Arbitrary<Happening> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: of('start'), job }) },
  { weight: 1, arbitrary: fc.record({ do: of('queue'), job }) },
  { weight: 1, arbitrary: fc.record({ do: of('delete'), job }) },
  { weight: 1, arbitrary: fc.record({ do: of('add-task'), job }) },
  { weight: 2, arbitrary: fc.record({ do: of('stop-showing'), job }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: of('end'),
      job,
      state: fc.constantFrom('Finished', 'Failed', 'Canceled'),
      deletedAfterMs: fc.constantFrom(null, null, null, null, 30_000, 2.5 * MINUTE_MS),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: of('write'),
      job,
      file: fc.constantFrom<LiveFileName[]>('stdout', 'stderr'),
      lines: fc.integer({ min: 1, max: 4 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: of('result'), job, name: fc.nat(3), kind }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: of('delay'),
      of: fc.constantFrom('list', 'report'),
      ms: fc.constantFrom(0, 20_000, 3 * MINUTE_MS),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: of('forget-job'), of: fc.constantFrom('list', 'report', 'both'), job }) },
  { weight: 1, arbitrary: fc.record({ do: of('spell'), spelling }) },
  { weight: 3, arbitrary: fc.record({ do: of('fail'), fault }) },
  { weight: 1, arbitrary: fc.record({ do: of('heal') }) },
  { weight: 4, arbitrary: fc.record({ do: of('watch'), job, results: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: of('unwatch'), job, isNow: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ do: of('sync'), job }) },
  { weight: 1, arbitrary: fc.record({ do: of('wait'), job }) },
  { weight: 1, arbitrary: fc.record({ do: of('forget'), job }) },
  { weight: 1, arbitrary: fc.record({ do: of('mine'), max: fc.option(fc.integer({ min: 1, max: 3 })) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: of('configure'),
      jobs: fc.uniqueArray(job, { maxLength: 3 }),
      mine: fc.option(fc.integer({ min: 1, max: 3 })),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: of('restart') }) },
  { weight: 1, arbitrary: fc.record({ do: of('set-clock'), ms: fc.constantFrom(-HOUR_MS, HOUR_MS, 48 * HOUR_MS) }) },
  { weight: 2, arbitrary: fc.record({ do: of('kill'), calls: fc.nat(60) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: of('foreground'), job, ms: fc.constantFrom(3_000, 2 * MINUTE_MS) }),
  },
  { weight: 1, arbitrary: fc.record({ do: of('nothing') }) },
);

const afterMs = fc.oneof(
  { weight: 15, arbitrary: fc.constantFrom(0, 0, 1_000, 10_000, 35_000, 35_000, 90_000) },
  { weight: 1, arbitrary: fc.constant(10 * MINUTE_MS) },
);
const step: fc.Arbitrary<Step> = fc.tuple(happening, afterMs).map(([what, ms]) => ({ ...what, afterMs: ms }));

export const steps: fc.Arbitrary<readonly Step[]> = fc.array(step, { minLength: 1, maxLength: 14, size: 'max' });

/** A step as a line for people. */
export function lineOf({ afterMs, do: what, ...details }: Step): string {
  const values = Object.entries(details).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  return [`after ${afterMs / 1_000} s: ${what}`, ...values].join(', ').replaceAll('"', '');
}
