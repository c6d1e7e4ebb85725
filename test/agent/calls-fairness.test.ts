/** The queue of calls serves every lane within a bound, whatever the other lanes do. */
import { expect, it } from 'vitest';
import { Calls } from '../../src/agent/calls.ts';
import { ServerShare } from '../../src/agent/server-share.ts';
import { HeldClock } from '../support/held-clock.ts';

const LANES = ['asked', 'begun', 'live', 'raw', 'wanted', 'ending', 'patient'] as const;
const CALL_MS = 100;
const MAX_CALLS_BEFORE = 60;

it.each(LANES)('a call of lane %s begins while calls of every other lane never cease to wait', async (lane) => {
  const clock = new HeldClock();
  const { signal } = new AbortController();
  const share = new ServerShare({ requestsPerMinute: 1_000_000, monotonic: clock.monotonic });
  const calls = new Calls({ concurrency: 1, share, clock });
  let begun = 0;
  let isServed = false;
  const others = LANES.filter((other) => other !== lane);
  const keepUp = async (other: (typeof LANES)[number]) => {
    while (!isServed && begun < 10 * MAX_CALLS_BEFORE)
      await calls.run(other, signal, async () => {
        begun += 1;
        await new Promise<void>((ended) => clock.timer(CALL_MS, ended));
      });
  };
  const busy = others.flatMap((other) => [keepUp(other), keepUp(other), keepUp(other)]);
  await clock.pass(10 * CALL_MS);
  const before = begun;
  let after = Number.POSITIVE_INFINITY;
  const waiting = calls.run(lane, signal, async () => {
    isServed = true;
    after = begun - before;
  });
  await clock.passWhile(Promise.all([waiting, ...busy]));
  expect(after).toBeLessThanOrEqual(MAX_CALLS_BEFORE);
});
