/** Pauses on a clock, and bytes that are limited by time. */
import { getEventListeners } from 'node:events';
import { expect, it } from 'vitest';
import { sleep, systemClock, Throttle } from '../../src/system/clock.ts';
import { HeldClock } from '../support/held-clock.ts';

it('a pause ends after its time, or with its signal, and leaves neither a timer nor a listener', async () => {
  const clock = new HeldClock();
  const stop = new AbortController();
  const left = () => [clock.timers, getEventListeners(stop.signal, 'abort').length];
  const ended: string[] = [];
  const pause = (name: string) =>
    sleep(clock, 1_000, stop.signal).then(
      () => ended.push(`${name} passed`),
      ({ code }) => ended.push(`${name} ${code}`),
    );
  const first = pause('first');
  await clock.pass(999);
  expect([ended, left()]).toEqual([[], [1, 1]]);
  await clock.pass(1);
  await first;
  expect([ended, left()]).toEqual([['first passed'], [0, 0]]);
  const second = pause('second');
  stop.abort();
  await Promise.all([second, pause('third')]);
  expect([ended.slice(1), left()]).toEqual([
    ['second aborted', 'third aborted'],
    [0, 0],
  ]);
});

it('a timer of the machine that is taken back does not call', async () => {
  const called: string[] = [];
  const cancel = systemClock.timer(0, () => called.push('first'));
  await new Promise<void>((resolve) => {
    systemClock.timer(1, () => resolve(void called.push('second')));
    cancel();
  });
  expect(called).toEqual(['second']);
});

it('bytes are paid for by time, from when they come', async () => {
  const clock = new HeldClock();
  const throttle = new Throttle(1_000, clock);
  const { signal } = new AbortController();
  const times: number[] = [];
  const pay = async (bytes: number) => {
    await throttle.pay(bytes, signal);
    times.push(clock.monotonic());
  };
  await clock.pass(500);
  await clock.passWhile(Promise.all([pay(2_000), pay(500)]));
  await clock.pass(10_000);
  await clock.passWhile(pay(250));
  await pay(0);
  expect(times).toEqual([2_500, 3_000, 13_250, 13_250]);
  await expect(new Throttle(1, clock).pay(1, AbortSignal.abort())).rejects.toMatchObject({ code: 'aborted' });
  await new Throttle(null, clock).pay(1e12, signal);
});
