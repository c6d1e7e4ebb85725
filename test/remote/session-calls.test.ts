/** When a call that lost its session signs in again. */
import { expect, it } from 'vitest';
import { type ErrorCode, JobtailError } from '../../src/errors.ts';
import { Secrets } from '../../src/redact.ts';
import type { CallEvent } from '../../src/remote/session-calls.ts';
import { SessionCalls } from '../../src/remote/session-calls.ts';
import { GivenSession, SESSION_CODE } from '../support/wire-remote.ts';

const signal = new AbortController().signal;
const MINUTE_MS = 60_000;

function place() {
  const session = new GivenSession();
  const time = { nowMs: 0 };
  const calls = new SessionCalls({
    ...{ session, secrets: new Secrets(), onCall: () => {}, untilAllowed: async () => {} },
    nowMs: () => time.nowMs,
  });
  const refused = new Set<string>();
  const failures: ErrorCode[] = [];
  const words = { text: 'once' };
  const call = (jobId: string, operation = 'ListChangedFilesForJob') =>
    calls.call(
      operation,
      jobId,
      async () => {
        const failure = failures.shift();
        if (failure !== undefined) throw new JobtailError(failure, words.text);
        if (refused.has(jobId) || refused.has(operation)) throw new JobtailError('session-lost', 'status 401');
        return jobId;
      },
      signal,
    );
  return { session, time, refused, failures, words, call };
}

it('of a job that the service refuses with every session, ever more seldom, and of another job at once', async () => {
  const { session, time, refused, call } = place();
  refused.add('999');
  let signIns = 0;
  const signInsOf = async (jobId: string) => {
    await call(jobId).catch(() => {});
    const count = session.lostGrants.length - signIns;
    signIns += count;
    return count;
  };
  expect(await signInsOf('999')).toBe(1);
  for (let seconds = 0; seconds < 40; seconds += 5) {
    time.nowMs += 5_000;
    expect(await signInsOf('999')).toBe(0);
  }
  // A session that is lost meanwhile is found by the calls of other jobs.
  refused.add('501');
  expect(await signInsOf('501')).toBe(1);
  refused.delete('501');
  expect(await signInsOf('501')).toBe(0);
  let perHour = 0;
  for (let minutes = 0; minutes < 60; minutes++) {
    time.nowMs += MINUTE_MS;
    perHour += await signInsOf('999');
  }
  expect(perHour).toBeGreaterThan(3);
  expect(perHour).toBeLessThan(10);
});

it('of many jobs, all of which are refused with every session, as of one', async () => {
  const { session, time, refused, call } = place();
  const jobs = Array.from({ length: 100 }, (_, job) => String(1_000 + job));
  refused.add('ListChangedFilesForJob');
  const callAll = async () => {
    for (const job of jobs) await call(job).catch(() => {});
  };
  for (let seconds = 0; seconds < 600; seconds += 10, time.nowMs += 10_000) await callAll();
  expect(session.lostGrants.length).toBeLessThan(20);
  // As soon as one is answered, the session of another one may be lost.
  refused.clear();
  await callAll();
  const before = session.lostGrants.length;
  refused.add('1050');
  await callAll();
  expect(session.lostGrants).toHaveLength(before + 1);
});

it('that quotes its session is reported without it, also the first one', async () => {
  const { call, failures, words } = place();
  failures.push('fault');
  words.text = `no session ${SESSION_CODE}`;
  await expect(call('501')).rejects.toThrow(/^no session \*\*\*$/);
});

it('of an operation that is refused with every session, and of another one of the same job at once', async () => {
  const { session, refused, call } = place();
  const other = 'GetCurrentInfoForJob';
  for (let times = 1; times <= 3; times++) {
    refused.add('ListChangedFilesForJob');
    await expect(call('501')).rejects.toMatchObject({ code: 'session-lost' });
    // The first attempt alone: what another one receives neither begins nor ends the pause of this one.
    expect(session.lostGrants).toHaveLength(times);
    refused.add(other);
    await expect(call('501', other)).rejects.toMatchObject({ code: 'session-lost' });
    expect(session.lostGrants).toHaveLength(times + 1);
    refused.delete(other);
    expect(await call('501', other)).toBe('501');
  }
});

it('of a job that was refused, and is not any more, at once', async () => {
  const { session, refused, call } = place();
  refused.add('501');
  await expect(call('501')).rejects.toMatchObject({ code: 'session-lost' });
  refused.delete('501');
  expect(await call('501')).toBe('501');
  refused.add('501');
  await expect(call('501')).rejects.toMatchObject({ code: 'session-lost' });
  expect(session.lostGrants).toHaveLength(2);
});

it('of a job that is refused again is made with another session if there is another secret', async () => {
  const { session, refused, call } = place();
  refused.add('501');
  for (const hasOther of [false, false, true]) {
    session.hasOtherSecret = async () => hasOther;
    await expect(call('501')).rejects.toMatchObject({ code: 'session-lost' });
  }
  expect(session.lostGrants).toHaveLength(2);
});

it('that failed otherwise with the next session is made with another one the next time', async () => {
  const { session, call, failures } = place();
  for (const code of ['session-lost', 'fault', 'session-lost', 'fault'] as const) failures.push(code);
  for (let times = 1; times <= 2; times += 1) {
    await expect(call('501')).rejects.toMatchObject({ code: 'fault' });
    expect(session.lostGrants).toHaveLength(times);
  }
});

it('waits until the service allows it, and is reported with its time and its bytes', async () => {
  const beganMs = performance.now();
  const events: CallEvent[] = [];
  const order: unknown[] = [];
  const secrets = new Secrets();
  const session = new GivenSession({ kind: 'session', code: 'a-code-of-a-session' });
  const untilAllowed = async (stop: AbortSignal) => {
    await new Promise((resolve) => setImmediate(resolve));
    order.push(stop);
  };
  const calls = new SessionCalls({ session, secrets, onCall: (event) => void events.push(event), untilAllowed });
  const called = (fails: boolean) =>
    calls.call(
      'GetCurrentInfoForJob',
      '501',
      async (_, count) => {
        order.push('begun');
        count.bytes = 7;
        await new Promise((resolve) => setTimeout(resolve, 5));
        if (fails) throw new JobtailError('fault', 'it names a-code-of-a-session');
        return 'done';
      },
      signal,
    );
  expect(await called(false)).toBe('done');
  await expect(called(true)).rejects.toMatchObject({ code: 'fault', message: 'it names ***' });
  expect(order).toEqual([signal, 'begun', signal, 'begun']);
  const event = { operation: 'GetCurrentInfoForJob', bytes: 7, durationMs: expect.any(Number) };
  expect(events).toEqual(['ok', 'fault'].map((outcome) => ({ ...event, outcome })));
  for (const { durationMs } of events) expect(durationMs > 2 && durationMs <= performance.now() - beganMs).toBe(true);
});
