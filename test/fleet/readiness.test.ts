/** What an agent lacks, and how many jobs it may own by it. */
import { expect, it } from 'vitest';
import { JobtailError } from '../../src/errors.ts';
import { Readiness } from '../../src/fleet/agents/readiness.ts';
import type { JobId } from '../../src/job.ts';
import { Store } from '../../src/store/store.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

const MOST = 100;

function setUp() {
  const world = { now: 0, unready: undefined as string | undefined };
  const store = new Store({ directory: temporaryDirectory(), service: '', owner: true, now: Date.now });
  const lines: string[] = [];
  const say = (_: unknown, message: string) => void lines.push(message);
  const log = { debug: say, info: say, warn: say, error: say };
  const clock = { monotonic: () => world.now, now: () => world.now };
  const readiness = new Readiness({ ...clock, store, log, unready: () => world.unready });
  const after = (seconds: number, jobs: number) => {
    world.now += seconds * 1_000;
    return readiness.capacity(MOST, jobs);
  };
  return { world, store, readiness, lines, after };
}

it('what is over within ten seconds moves no jobs', () => {
  const { world, after, lines } = setUp();
  world.unready = 'the service cannot be reached';
  expect([after(0, 5), after(9, 5)]).toEqual([MOST, MOST]);
  world.unready = undefined;
  expect([after(1, 5), after(60, 5)]).toEqual([MOST, MOST]);
  expect(lines).toEqual([]);
});

it('a trouble that stays is tried with one job, after pauses that grow, and logged once', () => {
  const { world, readiness, after, lines } = setUp();
  world.unready = 'the service cannot be reached';
  expect([after(0, 5), after(10, 5)]).toEqual([MOST, 0]);
  expect(readiness.lacks).toBe(world.unready);
  expect([after(29, 0), after(1, 0), after(29, 1)]).toEqual([0, 1, 1]);
  // The trial failed: the next one comes after a minute.
  expect([after(1, 1), after(59, 0), after(1, 0)]).toEqual([0, 0, 1]);
  world.unready = undefined;
  expect(after(1, 1)).toBe(MOST);
  expect(readiness.lacks).toBeNull();
  expect(lines).toEqual(['agent not ready', 'agent takes jobs again']);
  // Trouble that returns soon is one that was there before; after ten minutes without it, it is a new one.
  world.unready = 'the service cannot be reached';
  expect([after(0, 5), after(10, 5), after(119, 0), after(1, 0)]).toEqual([MOST, 0, 0, 1]);
  world.unready = undefined;
  expect([after(1, 1), after(601, 5)]).toEqual([MOST, MOST]);
  world.unready = 'the service cannot be reached';
  expect([after(0, 5), after(10, 5), after(29, 0), after(1, 0)]).toEqual([MOST, 0, 0, 1]);
});

it.each(['disk-full', 'store', 'permission', 'local-io'] as const)(
  'a state that cannot be written counts at once, until it can: %s',
  (code) => {
    const { readiness, after } = setUp();
    expect(readiness.failed(new JobtailError('fault', 'of the service'))).toBe(false);
    expect(after(0, 5)).toBe(MOST);
    expect(readiness.failed(new JobtailError(code, 'no room left'))).toBe(true);
    expect([after(0, 5), readiness.lacks]).toEqual([0, 'no room left']);
    readiness.stored();
    expect([after(29, 5), after(1, 5)]).toEqual([0, MOST]);
  },
);

it('an agent whose jobs all fail by the service is not ready', () => {
  const { store, readiness, after } = setUp();
  const [one, two, over] = ['1', '2', '3'] as JobId[] as [JobId, JobId, JobId];
  const fail = (jobId: JobId, code: 'unreachable' | 'fault') => {
    const error = { code, message: 'connection refused', hint: null, since: 0 };
    store.jobs.endRun(jobId, { polledAt: 0, grownAt: null, refused: 0, failures: 1, error });
  };
  const order = { tasks: [], files: [], results: false, settleAfterMs: null, source: 'command' } as const;
  for (const jobId of [one, two, over]) store.jobs.watch({ ...order, jobId }, 0);
  store.jobs.setState(two, 'ending');
  store.jobs.setState(over, 'ended');
  expect([after(0, 2), after(20, 2)]).toEqual([MOST, MOST]);
  fail(one, 'unreachable');
  expect([after(0, 2), after(20, 2)]).toEqual([MOST, MOST]);
  fail(two, 'fault');
  expect([after(0, 2), after(20, 2)]).toEqual([MOST, MOST]);
  fail(two, 'unreachable');
  expect([after(0, 2), after(10, 2), readiness.lacks]).toEqual([MOST, 0, 'connection refused (for 70 s)']);
});

it('ten sound minutes make the next pause a short one again, fewer do not', () => {
  const { world, after } = setUp();
  const fail = (trials: number) => {
    world.unready = 'the service cannot be reached';
    after(0, 5);
    after(10, 5);
    for (let trial = 0; trial < trials; trial++) after(1_000, 1);
    after(1_000, 1);
    world.unready = undefined;
    after(1_000, 1);
  };
  fail(3);
  expect(after(599, 5)).toBe(MOST);
  world.unready = 'the service cannot be reached';
  expect([after(0, 5), after(10, 5), after(59, 0)]).toEqual([MOST, 0, 0]);
  world.unready = undefined;
  expect([after(1_000, 1), after(601, 5)]).toEqual([MOST, MOST]);
  world.unready = 'the service cannot be reached';
  expect([after(0, 5), after(10, 5), after(29, 0), after(1, 0)]).toEqual([MOST, 0, 0, 1]);
});
