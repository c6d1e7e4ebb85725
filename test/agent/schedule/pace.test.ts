/** When the next poll is due. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { gathered, Pace, restOf, withJitter } from '../../../src/agent/schedule/pace.ts';

it('a poll is never later than the interval says, and little before it', () => {
  fc.assert(
    fc.property(
      fc.nat(2 ** 40),
      fc.integer({ min: 1, max: 3_600_000 }),
      fc.double({ min: 0, max: 0.999, noNaN: true }),
      (...args) => {
        const [now, intervalMs, random] = args;
        const delayMs = withJitter(intervalMs, random);
        const dueAt = gathered(now + delayMs, delayMs);
        expect(dueAt).toBeLessThanOrEqual(now + intervalMs);
        expect(dueAt).toBeGreaterThanOrEqual(now + intervalMs * 0.8);
      },
    ),
  );
});

it.each([
  // Half of a sixteenth at least, and a quarter of a second at most.
  [1_000_063, 1_000, 1_000_032],
  [1_000_447, 3_600_000, 1_000_192],
  [1_000_000.9, 16, 1_000_000],
  [1_000_000.9, 15, 1_000_000.9],
])('a run that is due at %f after a delay of %i is gathered at %f', (dueAt, delayMs, at) => {
  expect(gathered(dueAt, delayMs)).toBe(at);
});

it('the interval counts the time of the poll, but leaves a slow service alone for half of it', () => {
  expect(restOf(1_000, 30)).toBe(970);
  expect(restOf(1_000, 5_000)).toBe(500);
  expect([0, 1].map((random) => withJitter(1_000, random))).toEqual([1_000, 900]);
});

it('a job whose poll was slow leaves the low-priority queue after a quick one', () => {
  const pace = new Pace({ minIntervalMs: 1_000, maxIntervalMs: 10_000 });
  pace.polled(true, 6_000);
  expect(pace.isSlow).toBe(true);
  pace.polled(true, 5_000);
  expect(pace.isSlow).toBe(false);
});

it('the interval grows with each quiet poll up to its maximum, and is short again after news', () => {
  const pace = new Pace({ minIntervalMs: 1_000, maxIntervalMs: 2_000 });
  expect([false, false, false, true].map((hasNews) => pace.polled(hasNews, 30))).toEqual([1_500, 2_000, 2_000, 1_000]);
});
