/** One call that hangs: the others find out whether the account is blocked, and make the server open a connection. */
import { setMaxListeners } from 'node:events';
import { expect, it } from 'vitest';
import { CallSlot, Calls } from '../../src/agent/calls.ts';
import { HangingCalls } from '../../src/agent/hanging-calls.ts';
import { ServerShare } from '../../src/agent/server-share.ts';
import { JobtailError } from '../../src/errors.ts';
import { sleep } from '../../src/system/clock.ts';
import { HeldClock } from '../support/held-clock.ts';

const { signal } = new AbortController();
setMaxListeners(0, signal);

/** A server whose first connection of an account is blocked; it opens another after so many calls, in `openMs`. */
function startServer(callsOfConnection: number, openMs = 0, limitMs = 60_000, concurrency = 1) {
  const clock = new HeldClock();
  const session = { signedInAt: 0 };
  const { monotonic } = clock;
  const share = new ServerShare({ requestsPerMinute: null, monotonic, signedInAt: () => session.signedInAt });
  const calls = new Calls({ concurrency, share, clock });
  const server = { hanging: 0, answered: 0, shortCalls: 0, maxBeside: 0 };
  const serve = async (limitMs: number, stop: AbortSignal) => {
    if (server.hanging < callsOfConnection) {
      server.hanging += 1;
      await sleep(clock, limitMs, stop);
      throw new JobtailError('timeout', 'the service did not start to respond in time');
    }
    if (server.answered === 0) await sleep(clock, openMs, stop);
    server.answered += 1;
    share.responded({ status: 200, firstByteMs: 10, workMs: 1, retryAfterMs: undefined });
  };
  const kinds: string[] = [];
  const ends: [number, boolean][] = [];
  calls.watchHanging(
    async (kind, stop) => {
      kinds.push(kind);
      server.shortCalls += 1;
      await serve(60_000, stop).finally(() => {
        server.shortCalls -= 1;
      });
    },
    (...end) => void ends.push(end),
  );
  const call = (lane: 'live' | 'patient') =>
    calls.run(lane, signal, () => {
      server.maxBeside = Math.max(server.maxBeside, server.shortCalls);
      return serve(limitMs, signal);
    });
  return { clock, share, session, calls, server, kinds, ends, call };
}

it.each([
  ['is not blocked', 1, 0, 10_000],
  ['is blocked until eight calls hang', 8, 0, 25_000],
  ['is blocked until eight calls hang, and the server is slow', 8, 5_000, 45_000],
])('when a download hangs and the account %s, polls go on in time', async (_, callsOfConnection, openMs, limitMs) => {
  const { clock, server, kinds, ends, call } = startServer(callsOfConnection, openMs);
  const download = call('patient').catch((error: JobtailError) => error.code);
  const polls = [call('live'), call('live'), call('live')];
  await clock.passWhile(Promise.all(polls));
  expect(clock.monotonic()).toBeLessThan(limitMs);
  expect(server.answered).toBeGreaterThanOrEqual(polls.length);
  expect(kinds).toEqual(Array.from({ length: callsOfConnection }, () => 'parts'));
  expect(ends).toEqual([[callsOfConnection, true]]);
  await clock.passWhile(download);
  expect(await download).toBe('timeout');
});

it('a call that hangs counts for nothing while others are answered slowly', async () => {
  const { clock, share, call } = startServer(1);
  const download = call('patient').catch((error: JobtailError) => error.code);
  await clock.passWhile(call('live'));
  share.responded({ status: 200, firstByteMs: 2_000, workMs: 2_000, retryAfterMs: undefined });
  expect(share.opensAt - clock.monotonic()).toBeLessThan(3_000);
  await clock.passWhile(download);
});

/** Calls beside which another one is always wanted. */
function watched(shortCall = async (_: string, _stop: AbortSignal) => {}) {
  const clock = new HeldClock();
  const kinds: string[] = [];
  const noted = (kind: string, stop: AbortSignal) => {
    kinds.push(kind);
    return shortCall(kind, stop);
  };
  const [isWanted, openSince] = [() => true, () => 0];
  const hanging = new HangingCalls({ clock, shortCall: noted, isWanted, openSince, onChange() {}, onEnd() {} });
  return { clock, hanging, kinds };
}

it('a call that hangs is found out although the answer of an earlier call came after it began', async () => {
  const { clock, hanging, kinds } = watched();
  const ended = hanging.begun(true);
  await clock.pass(1_000);
  hanging.responded(10);
  await clock.pass(3_000);
  expect(kinds).toEqual([]);
  await clock.pass(2_000);
  expect(kinds).not.toEqual([]);
  ended();
  expect(clock.timers).toBe(0);
});

it('a short call goes on until none of the calls is under way for which it was made', async () => {
  let signal: AbortSignal | undefined;
  const { clock, hanging } = watched((_, stop) => {
    signal = stop;
    return new Promise<void>((resolve) => stop.addEventListener('abort', () => resolve()));
  });
  const [first, second] = [hanging.begun(true), hanging.begun(true)];
  await clock.pass(6_000);
  first();
  expect(signal?.aborted).toBe(false);
  second();
  expect(signal?.aborted).toBe(true);
});

it.each([
  [60_000, 1],
  [10_000, 1],
  [10_000, 2],
])(
  'a server that is silent for %s ms gets ten short calls, and no further ones for five minutes',
  async (ms, places) => {
    const { clock, server, kinds, ends, call } = startServer(Number.POSITIVE_INFINITY, 0, ms, places);
    const first = call('live');
    await clock.pass(5_000);
    // Enough to hang for all of that time.
    const all = Promise.allSettled([first, ...Array.from({ length: (300_000 / ms) * places }, () => call('live'))]);
    await clock.pass(4 * 60_000);
    // A short call ends with the last call that it is for.
    expect(server.maxBeside).toBe(0);
    expect(kinds).toHaveLength(10);
    expect(ends).toEqual([[10, false]]);
    await clock.passWhile(all);
  },
);

it.each([
  ['a sign-in', 0],
  ['a sign-in, and for the end of a pause', 20_000],
])('a call that waits for %s does not hang, and only counts from then on', async (_, retryAfterMs) => {
  const { clock, share, session, kinds, call } = startServer(1);
  session.signedInAt = Number.POSITIVE_INFINITY;
  const calls = Promise.allSettled([call('live'), call('live')]);
  share.responded({ status: 503, firstByteMs: 10, workMs: 1, retryAfterMs });
  await clock.pass(14_000);
  session.signedInAt = clock.monotonic();
  await clock.pass(Math.max(0, retryAfterMs - 14_000) + 3_000);
  expect(kinds).toEqual([]);
  await clock.pass(3_000);
  expect(kinds).toEqual(['listing']);
  await clock.passWhile(calls);
});

it('a poll that still opens its mirrors does not hang, and only counts from its call on', async () => {
  const { clock, calls, kinds, call } = startServer(0);
  const slot = new CallSlot(calls, 'live', signal);
  await slot.take();
  const waiting = call('live');
  await clock.pass(14_000);
  expect(kinds).toEqual([]);
  const sent = slot.run('begun', signal, () => sleep(clock, 14_000, signal));
  await clock.pass(6_000);
  expect(kinds).toEqual(['listing']);
  await clock.passWhile(Promise.all([waiting, sent]));
});

it('a call that hangs while no other call waits is left alone', async () => {
  const { clock, kinds, call } = startServer(1);
  await clock.passWhile(call('patient').catch(() => undefined));
  expect(kinds).toEqual([]);
});

it('a server whose answers take six seconds gets no short calls, and a call that is silent for eighteen does', async () => {
  const { clock, hanging, kinds } = watched();
  hanging.responded(6_000);
  for (let calls = 0; calls < 10; calls += 1) {
    const ended = hanging.begun(false);
    await clock.pass(6_000);
    hanging.responded(6_000);
    ended();
  }
  expect(kinds).toEqual([]);
  const ended = hanging.begun(false);
  await clock.pass(16_000);
  expect(kinds).toEqual([]);
  await clock.pass(4_000);
  expect(kinds).not.toEqual([]);
  ended();
});

it('a server gets ten short calls in all while its answers are slow, and ten more once one was quick', async () => {
  const { clock, hanging, kinds } = watched((_, stop) => sleep(clock, 60_000, stop));
  /** A call that is answered a little after a short one was given up. */
  const slowCall = async (answerMs: number) => {
    const ended = hanging.begun(false);
    const before = kinds.length;
    await clock.passUntil('a short call', () => kinds.length > before, 60_000);
    await clock.pass(500);
    hanging.responded(answerMs);
    ended();
  };
  // Its answers are reported as barely slow, so each call that takes longer looks as if it hung.
  for (const most of [10, 20]) {
    for (let calls = 0; calls < 10; calls += 1) await slowCall(4_001);
    expect(kinds).toHaveLength(most);
    if (most === 10) hanging.responded(10);
  }
  const ended = hanging.begun(false);
  await clock.pass(4 * 60_000);
  ended();
  expect(kinds).toHaveLength(20);
});

it('a call that hangs for longer than five minutes gets ten more short calls then', async () => {
  const { clock, hanging, kinds } = watched((_, stop) => sleep(clock, 60_000, stop));
  const ended = hanging.begun(false);
  await clock.pass(4 * 60_000);
  expect(kinds).toHaveLength(10);
  await clock.pass(5 * 60_000);
  expect(kinds).toHaveLength(20);
  ended();
});
