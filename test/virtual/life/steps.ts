/** What can happen to jobs and to the agent that follows them, as data: generated, shrunk and printed. */
import fc from 'fast-check';
import type { ResultKind, Spelling } from '../cluster.ts';
import type { FaultOf } from '../faults.ts';

type Made<Of> = Of extends fc.Arbitrary<infer Value> ? Value : never;

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** A job, by its number. */
const job = fc.nat(7);
const spelling = fc.constantFrom<Spelling[]>('milliseconds', 'seconds', 'ticks', 'another zone', 'no zone');
const kind = fc.oneof(
  { weight: 5, arbitrary: fc.constant<ResultKind>('file') },
  { weight: 2, arbitrary: fc.constantFrom<ResultKind[]>('link to a directory', 'dead link') },
  { weight: 1, arbitrary: fc.constantFrom<ResultKind[]>('unreadable', 'bad name') },
);
/** How a call fails. `silent`: after its time limit. */
const code = fc.constantFrom(
  ...([
    'http-status',
    'http-status',
    'unavailable',
    'unreachable',
    'silent',
    'fault',
    'malformed',
    'session-lost',
    'cut',
    'slow',
  ] as const),
);
/** Of one job for ever: an outage is of all, and ends. */
const lasting = fc.record({
  of: fc.constantFrom<FaultOf[]>('report', 'parts', 'listing', 'raw', 'result', 'revoke'),
  code: fc.constantFrom('http-status', 'http-status', 'fault', 'malformed', 'silent'),
});
/** The calls that fail, by what they are for, and by their job; `all` is an outage. */
const fault = fc.oneof(
  fc.record({ of: lasting.map(({ of }) => of), job, code }),
  fc.record({ of: fc.constantFrom<FaultOf[]>('all', 'all', 'list'), job: fc.constant(null), code }),
);
export type FaultPlan = Readonly<Made<typeof fault>>;

/** A job at the beginning of a history. */
const plan = fc.record({
  state: fc.constantFrom('running', 'running', 'running', 'queued', 'over', 'long over', 'configuring', 'none'),
  isListed: fc.constantFrom(true, true, true, false),
  namesTasks: fc.constantFrom(...Array.from({ length: 24 }, () => true), false),
  listsLiveFiles: fc.constantFrom(true, true, true, true, true, false),
  lines: fc.nat(4),
  results: fc.array(kind, { maxLength: 3 }),
  /** Whether it has so many results that their downloads take a while. */
  hasMany: fc.constantFrom(false, false, false, false, false, true),
  followed: fc.constantFrom('command', 'command', 'config', 'no'),
  /** What fails until the end. */
  fault: fc.oneof({ weight: 5, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: lasting }),
});
export type JobPlan = Readonly<Made<typeof plan>>;

export const setting = fc.record({
  jobs: fc.oneof(
    { weight: 4, arbitrary: fc.array(plan, { minLength: 3, maxLength: 4 }) },
    { weight: 1, arbitrary: fc.array(plan, { minLength: 5, maxLength: 8, size: 'max' }) },
  ),
  spelling,
  /** How far the clock of the cluster is ahead, in milliseconds. */
  clockMs: fc.constantFrom(0, 0, -MINUTE_MS, MINUTE_MS, -10 * MINUTE_MS, 10 * MINUTE_MS),
  /** How long the service works on a call. */
  workMs: fc.constantFrom(5, 50, 500),
  concurrency: fc.constantFrom(1, 2, 4),
  transfer: fc.constantFrom('service', 'service', 'direct'),
  hasDates: fc.boolean(),
  mine: fc.oneof({ weight: 2, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.integer({ min: 1, max: 3 }) }),
  retention: fc.constantFrom(false, false, true),
  /** In the end, a minute of outage comes each few minutes. */
  isFlaky: fc.constantFrom(false, false, true),
  chance: fc.nat(),
});
export type Setting = Readonly<Made<typeof setting>>;

const places = fc.option(fc.integer({ min: 1, max: 3 }));
/** How often each of them happens, and with what. */
const HAPPENINGS = {
  start: [3, { job }],
  queue: [1, { job }],
  delete: [1, { job }],
  'add-task': [1, { job }],
  'stop-showing': [2, { job }],
  end: [
    5,
    {
      job,
      state: fc.constantFrom('Finished', 'Failed', 'Canceled'),
      /** It is deleted so long after its end. */
      deletedAfterMs: fc.constantFrom(null, null, null, null, 30_000, 2.5 * MINUTE_MS),
    },
  ],
  write: [6, { job, file: fc.constantFrom('stdout', 'stderr'), lines: fc.constantFrom(1, 2, 3, 4, 300) }],
  rewrite: [2, { job, lines: fc.nat(4) }],
  result: [3, { job, name: fc.nat(3), kind }],
  delay: [1, { of: fc.constantFrom('list', 'report'), ms: fc.constantFrom(0, 20_000, 3 * MINUTE_MS) }],
  'forget-job': [1, { of: fc.constantFrom('list', 'report', 'both'), job }],
  spell: [1, { spelling }],
  fail: [3, { fault }],
  heal: [1, {}],
  /** The service answers with an error, and with how long nothing may be sent to it. */
  pause: [
    1,
    { code: fc.constantFrom('rate-limited', 'unavailable', 'http-status'), ms: fc.constantFrom(5_000, MINUTE_MS) },
  ],
  sessions: [1, { areRefused: fc.constantFrom(false, false, true), withCalls: fc.nat(2) }],
  release: [1, {}],
  receiver: [1, { state: fc.constantFrom('takes', 'refuses', 'silent') }],
  disk: [2, { calls: fc.nat(60), code: fc.constantFrom('EIO', 'ENOSPC', 'EACCES') }],
  'full-disk': [1, { full: fc.constantFrom('all', 'of mirrors'), ms: fc.constantFrom(30_000, 5 * MINUTE_MS) }],
  'slow-disk': [1, { ms: fc.constantFrom(100, 5_000) }],
  standstill: [1, { ms: fc.constantFrom(30_000, 10 * MINUTE_MS) }],
  verify: [1, { job }],
  watch: [4, { job, results: fc.boolean() }],
  unwatch: [1, { job, isNow: fc.boolean() }],
  sync: [3, { job }],
  wait: [1, { job }],
  forget: [1, { job }],
  mine: [1, { max: places }],
  configure: [1, { jobs: fc.uniqueArray(job, { maxLength: 3 }), mine: places }],
  restart: [2, {}],
  'set-clock': [1, { ms: fc.constantFrom(-HOUR_MS, HOUR_MS, 48 * HOUR_MS) }],
  kill: [2, { calls: fc.nat(60), hasPower: fc.boolean() }],
  foreground: [1, { job, ms: fc.constantFrom(3_000, 2 * MINUTE_MS) }],
  nothing: [1, {}],
} as const;
type Happenings = typeof HAPPENINGS;
type Details<Of> = { readonly [Name in keyof Of]: Made<Of[Name]> };

/** What happens, so long after the step before it. */
export type Step = { readonly afterMs: number } & {
  readonly [Name in keyof Happenings]: { readonly do: Name } & Details<Happenings[Name][1]>;
}[keyof Happenings];

const afterMs = fc.oneof(
  { weight: 15, arbitrary: fc.constantFrom(0, 0, 1_000, 10_000, 35_000, 35_000, 90_000) },
  { weight: 1, arbitrary: fc.constant(10 * MINUTE_MS) },
);
const step = fc.oneof(
  ...Object.entries(HAPPENINGS).map(([name, [weight, details]]) => ({
    ...{ weight, arbitrary: fc.record({ do: fc.constant(name), ...details, afterMs }) },
  })),
) as fc.Arbitrary<Step>;

export const steps: fc.Arbitrary<readonly Step[]> = fc.array(step, { minLength: 1, maxLength: 14, size: 'max' });

/** A step as a line for people. */
export function lineOf({ afterMs, do: what, ...details }: Step): string {
  const values = Object.entries(details).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  return [`after ${afterMs / 1_000} s: ${what}`, ...values].join(', ').replaceAll('"', '');
}
