/** What ends runs of a job that are due or under way, and what makes them due again. */
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
  expect([due.has('results'), due.has('poll'), due.areIdle, idle()]).toEqual([true, false, false, 1]);
  await clock.pass(3 * RUN_MS);
  expect(steps).toEqual([`results at ${from}`, `results at ${from + RUN_MS}`]);
  expect([due.has('results'), due.areIdle, idle()]).toEqual([false, true, 2]);
});

it('cancelled runs do not begin, and those under way go on, but not again', async () => {
  const { clock, steps, due } = setUp();
  due.plan('poll');
  due.plan('search', RUN_MS / 2);
  await clock.pass(10);
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
  due.plan('search', 1_000);
  await clock.pass(2_000);
  expect(steps).toEqual(['poll at 1088', 'search at 1100']);
});
