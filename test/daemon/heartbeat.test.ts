/** What feeds the watchdog also ends when calls wait and none is made; its turns: test/agent/schedule/schedule.test.ts. */
import { expect, it, vi } from 'vitest';
import { Calls } from '../../src/agent/calls.ts';
import { ServerShare } from '../../src/agent/server-share.ts';
import { HeldClock } from '../support/held-clock.ts';

const { signal } = new AbortController();

it('calls that get no turn are a stall when none runs for long, unless the rate asks for the pause', async () => {
  const clock = new HeldClock();
  const share = new ServerShare({ requestsPerMinute: 0.5, monotonic: () => clock.monotonic() });
  const calls = new Calls({ concurrency: 1, share, clock });
  const call = (work = async () => {}) => calls.run('live', signal, work);
  const all = Promise.all([call(), call(), call()]);
  for (let second = 0; second < 400; second++) {
    expect(calls.stalled).toBe(false);
    await clock.pass(1_000);
  }
  await all;
  let end = () => {};
  const running = call(() => new Promise<void>((resolve) => (end = resolve)));
  const waiting = call();
  await clock.pass(600_000);
  expect(calls.stalled, 'a long call has limits of its own').toBe(false);
  end();
  await clock.pass(60_000);
  await Promise.all([running, waiting]);
  // The timer of the next one is lost, until the test calls it.
  await clock.pass(600_000);
  const timer = vi.spyOn(clock, 'timer').mockReturnValue(() => {});
  const last = [call(), call()];
  await last[0];
  await clock.pass(3_600_000);
  expect([calls.waiting, calls.stalled]).toEqual([1, true]);
  timer.mock.calls.at(-1)?.[1]();
  await last[1];
  expect(calls.stalled).toBe(false);
});
