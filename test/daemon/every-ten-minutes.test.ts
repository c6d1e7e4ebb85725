import { expect, it } from 'vitest';
import { everyTenMinutes } from '../../src/daemon/every-ten-minutes.ts';

it('what happens all the time is logged at once, then once in ten minutes with its number, each key for itself', () => {
  let now = 0;
  const countOf = everyTenMinutes(() => now);
  const logged: [tenSeconds: number, key: string, count: number][] = [];
  for (let second = 0; second < 150; second += 1) {
    now = second * 10_000;
    for (const key of second === 90 ? ['a', 'b'] : ['a']) {
      const count = countOf(key);
      if (count > 0) logged.push([second, key, count]);
    }
  }
  expect(logged).toEqual([
    [0, 'a', 1],
    [60, 'a', 60],
    [90, 'b', 1],
    [120, 'a', 60],
  ]);
});
