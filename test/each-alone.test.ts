import { expect, it } from 'vitest';
import { BackOffs, eachAlone } from '../src/each-alone.ts';
import { JobtailError } from '../src/errors.ts';

const refused = new JobtailError('fault', 'it is refused');

it('works on each thing in its order, and returns those that failed', async () => {
  const seen: number[] = [];
  const failed = await eachAlone([1, 2, 3, 4], async (thing) => {
    seen.push(thing);
    if (thing % 2 === 1) throw thing === 1 ? refused : new Error('odd');
  });
  expect(seen).toEqual([1, 2, 3, 4]);
  expect(failed.map(({ thing, error }) => [thing, error.code])).toEqual([
    [1, 'fault'],
    [3, 'internal'],
  ]);
});

it('ends when its signal fires, during the work on a thing or between two', async () => {
  const stop = new AbortController();
  const seen: number[] = [];
  const work = (thing: number) => {
    seen.push(thing);
    if (thing === 2) stop.abort();
  };
  await expect(eachAlone([1, 2, 3], work, stop.signal)).rejects.toMatchObject({ code: 'aborted' });
  await expect(eachAlone([4], work, stop.signal)).rejects.toMatchObject({ code: 'aborted' });
  expect(seen).toEqual([1, 2]);
});

it('keeps a pause for each key that fails, which ends when it works', () => {
  let now = 0;
  const pauses = new BackOffs<string>({ firstMs: 100, maxMs: 400, nowMs: () => now, random: () => 1 });
  expect(pauses.failed('a', refused)).toBe(1);
  expect([pauses.isDue('a'), pauses.isDue('b')]).toEqual([false, true]);
  now = 100;
  expect(pauses.isDue('a')).toBe(true);
  expect(pauses.failed('a', new JobtailError('unavailable', 'a pause', { retryAfterMs: 1_000 }))).toBe(2);
  now = 1_099;
  expect(pauses.isDue('a')).toBe(false);
  pauses.worked('a');
  expect(pauses.isDue('a')).toBe(true);
  expect(pauses.failed('a', refused)).toBe(1);
});
