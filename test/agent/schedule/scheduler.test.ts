/** One timer for all jobs: which of them starts when, and how the timer is set. */
import { expect, it } from 'vitest';
import { Scheduler } from '../../../src/agent/schedule/scheduler.ts';
import type { Clock } from '../../../src/system/clock.ts';

const HOUR_MS = 3_600_000;

/** A clock with the timers that were set, and those of them that were cancelled. */
function setUp() {
  let now = 0;
  const set: number[] = [];
  let due: { readonly at: number; readonly callback: () => void } | undefined;
  const clock: Clock = {
    now: () => now,
    monotonic: () => now,
    timer(delayMs, callback) {
      expect(due, 'one timer at a time').toBeUndefined();
      set.push(delayMs);
      due = { at: now + delayMs, callback };
      return () => {
        due = undefined;
      };
    },
  };
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
      },
    };
    return one;
  };
  const fire = () => {
    const { at, callback } = due ?? { at: now, callback: () => {} };
    due = undefined;
    now = at;
    callback();
    return set.at(-1);
  };
  return { scheduler, job, started, set, fire, isSet: () => due !== undefined };
}

it('jobs that are due at the same time start in the order in which they were arranged, each once', () => {
  const { job, started, set, fire } = setUp();
  const early = job('early');
  const others = Array.from({ length: 9 }, (_, index) => job(`${index}`));
  for (const one of [...others, ...others]) one.by(100);
  // An earlier time counts, a later one does not before.
  early.by(90);
  early.by(50);
  expect(set).toEqual([100, 90, 50]);
  fire();
  expect(started.splice(0)).toEqual(['early at 50']);
  fire();
  expect(started.splice(0)).toEqual([]);
  fire();
  expect(started).toEqual(Array.from({ length: 9 }, (_, index) => `${index} at 100`));
});

it('a job that is cancelled does not start, and one that is due later starts then', () => {
  const { job, started, fire, isSet } = setUp();
  const [cancelled, later] = ['cancelled', 'later'].map(job);
  cancelled?.by(100);
  later?.by(100);
  if (cancelled) cancelled.nextDue = Number.POSITIVE_INFINITY;
  if (later) later.nextDue = 150;
  fire();
  expect(started).toEqual([]);
  fire();
  expect([started, isSet()]).toEqual([['later at 150'], false]);
});

it('the timer is set for an hour at most, or for a turn, and not after a stop', () => {
  const { scheduler, job, started, set, fire, isSet } = setUp();
  const one = job('one');
  one.by(2.5 * HOUR_MS);
  expect([set[0], fire(), fire()]).toEqual([HOUR_MS, HOUR_MS, HOUR_MS / 2]);
  let turns = 0;
  scheduler.onTurn(1_000, () => turns++);
  expect(set.at(-1)).toBe(1_000);
  for (let times = 0; times < 1_800; times++) fire();
  expect([turns, started]).toEqual([1_800, [`one at ${2.5 * HOUR_MS}`]]);
  // With nothing due, too; what is due already starts at once.
  expect(set.at(-1)).toBe(1_000);
  one.by(1);
  expect(set.at(-1)).toBe(0);
  scheduler.stop();
  expect(isSet()).toBe(false);
  one.by(0);
  expect(isSet()).toBe(false);
});
