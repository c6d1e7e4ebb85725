/** One timer for all jobs: which of them starts when, and how the timer is set. */
import { expect, it, vi } from 'vitest';
import { Scheduler } from '../../../src/agent/schedule/scheduler.ts';
import { HeldClock } from '../../support/held-clock.ts';

const HOUR_MS = 3_600_000;

/** With the times for which the timer was set. */
function setUp() {
  const clock = new HeldClock();
  const timer = vi.spyOn(clock, 'timer');
  const set = () => timer.mock.calls.map(([delayMs]) => delayMs);
  const scheduler = new Scheduler(clock);
  const started: string[] = [];
  const job = (name: string) => {
    const one = {
      nextDue: Number.POSITIVE_INFINITY,
      startDue: (at: number) => {
        started.push(`${name} at ${at}`);
        one.nextDue = Number.POSITIVE_INFINITY;
      },
      by: (at: number) => {
        one.nextDue = at;
        scheduler.arrange(one);
        expect(clock.timers, 'one timer at a time').toBeLessThanOrEqual(1);
      },
    };
    return one;
  };
  return { clock, scheduler, job, started, set };
}

it('jobs that are due at the same time start in the order in which they were arranged, each once', async () => {
  const { clock, job, started, set } = setUp();
  const early = job('early');
  const others = Array.from({ length: 9 }, (_, index) => job(`${index}`));
  for (const one of [...others, ...others]) one.by(100);
  // An earlier time counts, a later one does not before.
  early.by(90);
  early.by(50);
  expect(set()).toEqual([100, 90, 50]);
  await clock.pass(99);
  expect(started.splice(0)).toEqual(['early at 50']);
  await clock.pass(1);
  expect(started).toEqual(Array.from({ length: 9 }, (_, index) => `${index} at 100`));
});

it('a job that is cancelled does not start, and one that is due later starts then', async () => {
  const { clock, job, started } = setUp();
  const [cancelled, later] = [job('cancelled'), job('later')];
  for (const one of [cancelled, later]) one.by(100);
  cancelled.nextDue = Number.POSITIVE_INFINITY;
  later.nextDue = 150;
  await clock.pass(1_000);
  expect([started, clock.timers]).toEqual([['later at 150'], 0]);
});

it('the timer is set for an hour at most, or for a turn, and not after a stop', async () => {
  const { clock, scheduler, job, started, set } = setUp();
  const one = job('one');
  one.by(2.5 * HOUR_MS);
  await clock.pass(2 * HOUR_MS);
  expect(set()).toEqual([HOUR_MS, HOUR_MS, HOUR_MS / 2]);
  let turns = 0;
  scheduler.onTurn(1_000, () => turns++);
  expect(set().at(-1)).toBe(1_000);
  await clock.pass(HOUR_MS / 2);
  expect([turns, started]).toEqual([1_800, [`one at ${2.5 * HOUR_MS}`]]);
  // With nothing due, too; what is due already starts at once.
  expect(set().at(-1)).toBe(1_000);
  one.by(1);
  expect(set().at(-1)).toBe(0);
  scheduler.stop();
  one.by(0);
  expect(clock.timers).toBe(0);
});
