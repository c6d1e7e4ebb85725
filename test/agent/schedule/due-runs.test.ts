/** What ends runs of a job that are due or under way, what makes them due again, and which begin beside others. */
import { getEventListeners } from 'node:events';
import { expect, it } from 'vitest';
import { DUE_RUNS, type DueRun, DueRuns } from '../../../src/agent/schedule/due-runs.ts';
import { Scheduler } from '../../../src/agent/schedule/scheduler.ts';
import { HeldClock } from '../../support/held-clock.ts';

const RUN_MS = 3_000;

/** Each run takes so long, unless it is stopped. */
function setUp() {
  const clock = new HeldClock();
  const stop = new AbortController();
  const steps: string[] = [];
  let idle = 0;
  const run = async (kind: DueRun, signal: AbortSignal) => {
    steps.push(`${kind} at ${clock.monotonic()}`);
    await new Promise<void>((resolve) => {
      const cancel = clock.timer(RUN_MS, resolve);
      signal.addEventListener('abort', () => {
        cancel();
        steps.push(`${kind} is stopped`);
        resolve();
      });
    });
  };
  const scheduler = new Scheduler(clock);
  const due = new DueRuns({ clock, scheduler, run, onIdle: () => idle++, signal: stop.signal });
  return { clock, stop, steps, due, idle: () => idle };
}

function dueRunsBy(clock: HeldClock, run: (kind: DueRun) => Promise<void>): DueRuns {
  const { signal } = new AbortController();
  return new DueRuns({ clock, scheduler: new Scheduler(clock), run, onIdle: () => {}, signal });
}

it('a run that becomes due while it is under way runs again, once, and one that waits for another does not', async () => {
  const { clock, steps, due, idle } = setUp();
  due.plan('poll');
  due.plan('results');
  await clock.pass(RUN_MS / 2);
  for (let times = 0; times < 3; times++) {
    due.plan('results');
    await clock.pass(10);
  }
  await clock.pass(3 * RUN_MS);
  expect([steps.splice(0), idle()]).toEqual([['poll at 0', `results at ${RUN_MS}`], 1]);
  const from = clock.monotonic();
  for (let times = 0; times < 3; times++) {
    due.plan('results');
    await clock.pass(10);
  }
  expect([due.areIdle, idle()]).toEqual([false, 1]);
  await clock.pass(3 * RUN_MS);
  expect(steps).toEqual([`results at ${from}`, `results at ${from + RUN_MS}`]);
  expect([due.areIdle, idle()]).toEqual([true, 2]);
});

it('cancelled runs do not begin, and those under way go on, but not again', async () => {
  const { clock, steps, due } = setUp();
  due.plan('poll');
  due.plan('search', RUN_MS / 2);
  await clock.pass(10);
  expect(due.areIdle, 'one runs, and one is due').toBe(false);
  due.plan('poll');
  await clock.pass(10);
  due.cancel();
  await clock.pass(3 * RUN_MS);
  expect(steps).toEqual(['poll at 0']);
  due.plan('search', 10);
  due.plan('poll', 10);
  due.cancel(['search']);
  await clock.pass(3 * RUN_MS);
  expect(steps.slice(1)).toEqual([`poll at ${3 * RUN_MS + 30}`]);
  due.plan('results', 10);
  due.endAll();
  await clock.pass(3 * RUN_MS);
  expect(steps).toHaveLength(2);
});

it.each(['by the runs', 'by the job'])('runs under way are stopped %s, and their end is waited for', async (by) => {
  const { clock, stop, steps, due, idle } = setUp();
  for (const kind of ['poll', 'search'] as const) due.plan(kind);
  due.plan('results', RUN_MS);
  await clock.pass(10);
  let hasEnded = false;
  const ended = due.end().then(() => (hasEnded = true));
  await clock.pass(10);
  expect([hasEnded, due.nextDue]).toEqual([false, Number.POSITIVE_INFINITY]);
  if (by === 'by the runs') due.endAll();
  else stop.abort();
  await ended;
  for (const kind of DUE_RUNS) due.plan(kind);
  await clock.pass(3 * RUN_MS);
  expect(steps).toEqual(['poll at 0', 'search at 0', 'poll is stopped', 'search is stopped']);
  expect([idle(), due.areIdle, getEventListeners(stop.signal, 'abort')]).toEqual([1, true, []]);
});

it('a recurring run begins together with others of about the same delay, any other when it is wanted', async () => {
  const { clock, steps, due } = setUp();
  await clock.pass(100);
  due.planAgain('poll', 1_000);
  // The earliest time counts.
  for (const delayMs of [5_000, 1_000, 5_000]) due.plan('search', delayMs);
  await clock.pass(2_000);
  expect(steps).toEqual(['poll at 1088', 'search at 1100']);
});

it('the first poll that a pass admits comes after the given time, even if one was due before', async () => {
  const clock = new HeldClock();
  const begun: string[] = [];
  const run = async (kind: DueRun) => {
    begun.push(`${kind} at ${clock.monotonic()}`);
    if (kind === 'poll') return;
    due.plan('poll', RUN_MS);
    due.admitPolls(3 * RUN_MS);
    await new Promise<void>((resolve) => void clock.timer(9 * RUN_MS, resolve));
  };
  const due = dueRunsBy(clock, run);
  due.plan('pass');
  const from = clock.monotonic();
  await clock.pass(10 * RUN_MS);
  expect(begun).toEqual([`pass at ${from}`, `poll at ${from + 3 * RUN_MS}`]);
});

it.each(['results', 'search'] as const)(
  'polls begin beside a pass while it waits for %s, and once it admits them; nothing else does',
  async (first) => {
    const clock = new HeldClock();
    const steps: string[] = [];
    const other = first === 'results' ? 'search' : 'results';
    const times: Readonly<Record<string, number>> = {
      poll: RUN_MS,
      [first]: 10 * RUN_MS,
      [other]: 0,
      pass: 10 * RUN_MS,
    };
    const run = async (kind: DueRun) => {
      steps.push(`${kind} begins`);
      if (kind === 'pass')
        clock.timer(5 * RUN_MS, () => {
          steps.push('pass admits polls');
          due.admitPolls(0);
        });
      await new Promise<void>((resolve) => void clock.timer(times[kind] ?? 0, resolve));
      steps.push(`${kind} ends`);
      if (kind === 'poll') due.plan('poll', RUN_MS);
    };
    const due = dueRunsBy(clock, run);
    due.plan(first, 0);
    await clock.pass(1);
    due.plan('pass', 0);
    for (let ms = 0; ms < 25 * RUN_MS; ms += RUN_MS / 2) {
      due.plan('poll');
      due.plan(other, 0);
      await clock.pass(RUN_MS / 2);
    }
    const between = (from: string, to: string) => steps.slice(steps.indexOf(from) + 1, steps.indexOf(to));
    const polls = (of: readonly string[]) => of.filter((step) => step === 'poll begins').length;
    const waiting = between(`${first} begins`, 'pass begins');
    expect(polls(waiting)).toBeGreaterThanOrEqual(3);
    // It begins with none under way, whatever ended last.
    expect(waiting).toContain(`${first} ends`);
    expect(waiting.filter((step) => step === 'poll ends').length).toBe(polls(waiting));
    expect(between('pass begins', 'pass admits polls')).toEqual([]);
    const admitted = between('pass admits polls', 'pass ends');
    expect(polls(admitted)).toBeGreaterThanOrEqual(1);
    expect([...waiting, ...admitted].filter((step) => step.startsWith(other))).toEqual([]);
  },
);
