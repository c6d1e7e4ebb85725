/** What feeds the watchdog also ends when calls wait and none is made; its turns: test/agent/schedule/scheduler.test.ts. */
import { expect, it } from 'vitest';
import { Calls } from '../../src/agent/calls.ts';
import { ServerShare } from '../../src/agent/server-share.ts';
import type { Clock } from '../../src/system/clock.ts';
import { HeldClock } from '../support/held-clock.ts';

const { signal } = new AbortController();

function callsOf(requestsPerMinute: number, clock: Clock): Calls {
  const share = new ServerShare({ requestsPerMinute, monotonic: clock.monotonic });
  return new Calls({ concurrency: 1, share, clock });
}

it('calls that get no turn are no stall while the rate asks for the pause, or while one runs', async () => {
  const clock = new HeldClock();
  const calls = callsOf(0.5, clock);
  let done = 0;
  const all = [1, 2, 3].map(() => calls.run('live', signal, async () => void done++));
  for (let second = 0; second < 400; second++) {
    expect(calls.stalled).toBe(false);
    await clock.pass(1_000);
  }
  await Promise.all(all);
  expect(done).toBe(3);
  let end = () => {};
  const running = calls.run('live', signal, () => new Promise<void>((resolve) => (end = resolve)));
  const waiting = calls.run('live', signal, async () => {});
  await clock.pass(600_000);
  expect(calls.stalled, 'a long call has limits of its own').toBe(false);
  end();
  await clock.pass(60_000);
  await Promise.all([running, waiting]);
});

it('calls that get no turn are a stall when none runs for long', async () => {
  let [now, timer] = [0, () => {}];
  const clock: Clock = {
    now: () => now,
    monotonic: () => now,
    // It is lost, until the test calls it.
    timer: (_, callback) => {
      timer = callback;
      return () => {};
    },
  };
  const calls = callsOf(1, clock);
  const all = [1, 2].map(() => calls.run('live', signal, async () => {}));
  await all[0];
  now = 3_600_000;
  expect([calls.waiting, calls.stalled]).toEqual([1, true]);
  timer();
  await all[1];
  expect(calls.stalled).toBe(false);
});
