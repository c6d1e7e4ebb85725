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

it('while calls of all lanes wait, each lane gets its share of them', async () => {
  const clock = new HeldClock();
  const stop = new AbortController();
  const share = new ServerShare({ requestsPerMinute: 1_000_000, monotonic: clock.monotonic });
  const calls = new Calls({ concurrency: 1, share, clock });
  const begun: Record<string, number> = Object.fromEntries(LANES.map((lane) => [lane, 0]));
  const keepUp = async (lane: (typeof LANES)[number]) => {
    while (!stop.signal.aborted)
      await calls.run(lane, stop.signal, async () => {
        begun[lane] = (begun[lane] ?? 0) + 1;
        await new Promise<void>((ended) => clock.timer(CALL_MS, ended));
      });
  };
  const busy = LANES.flatMap((lane) => Array.from({ length: 5 }, () => keepUp(lane)));
  const ROUNDS = 10;
  await clock.pass(ROUNDS * 37 * CALL_MS);
  const shares = { asked: 16, begun: 8, live: 4, raw: 4, wanted: 2, ending: 2, patient: 1 };
  for (const [lane, inRound] of Object.entries(shares)) expect(begun[lane], lane).toBeCloseTo(ROUNDS * inRound, -1);
  stop.abort();
  await clock.passWhile(Promise.allSettled(busy));
});
