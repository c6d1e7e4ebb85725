import { expect, it } from 'vitest';
import { oncePerMinute } from '../../src/daemon/once-per-minute.ts';

it('what happens all the time is logged at once, then once a minute with its number, each key for itself', () => {
  let now = 0;
  const countOf = oncePerMinute(() => now);
  const logged: [second: number, key: string, count: number][] = [];
  for (let second = 0; second < 150; second += 1) {
    now = second * 1_000;
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
