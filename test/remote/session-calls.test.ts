/** When a call that lost its session signs in again, and how each is reported. */
import path from 'node:path';
import { expect, it } from 'vitest';
import { asJobtailError, type ErrorCode, JobtailError } from '../../src/errors.ts';
import { Secrets } from '../../src/redact.ts';
import { type Attempt, type CallEvent, SessionCalls } from '../../src/remote/session-calls.ts';
import { expectCases } from '../support/errors.ts';
import { GivenSession, SESSION_CODE } from '../support/wire-remote.ts';

const signal = new AbortController().signal;

/** The calls of a service that refuses some jobs and operations with the words of a lost session. */
function place() {
  const session = new GivenSession();
  const time = { nowMs: 0 };
  const calls = new SessionCalls({
    ...{ session, secrets: new Secrets(), onCall: () => {}, untilAllowed: async () => {} },
    nowMs: () => time.nowMs,
  });
  const refused = new Set<string>();
  const failures: string[] = [];
  const call = async (jobId: string, operation = 'ListChangedFilesForJob') => {
    const before = session.lostGrants.length;
    const outcome = await calls
      .call(
        operation,
        jobId,
        async () => {
          const failure = failures.shift();
          if (failure !== undefined) throw new JobtailError(failure as ErrorCode, 'once');
          if (refused.has(jobId) || refused.has(operation)) throw new JobtailError('session-lost', 'status 401');
        },
        signal,
      )
      .then(
        () => 'ok',
        (thrown: unknown) => asJobtailError(thrown).code,
      );
    return `${outcome}${session.lostGrants.length > before ? ' after a sign-in' : ''}`;
  };
  return { session, time, refused, failures, call };
}

it('each call signs in again, or not, as is written in session-calls.txt', async () => {
  await expectCases(path.join(import.meta.dirname, 'session-calls.txt'), async (written) => {
    const { session, time, refused, failures, call } = place();
    const lines: string[] = [];
    for (const step of written.split('; ')) {
      const [word = '', first = '', ...words] = step.split(' ');
      if (word === 'refuse') refused.add(first);
      else if (word === 'accept') refused.delete(first);
      else if (word === 'fail') failures.push(first, ...words);
      else if (word === 'secret') session.hasOtherSecret = async () => first === 'another';
      else if (word === 'pass') time.nowMs += Number(first) * 1_000;
      else if (word === 'call') lines.push(`at ${time.nowMs / 1_000}, ${step}: ${await call(first, ...words)}`);
      else if (word === 'all') {
        // Of a hundred jobs, each ten seconds, for so long.
        const before = session.lostGrants.length;
        for (let seconds = 0; seconds < Number(first); seconds += 10, time.nowMs += 10_000)
          for (let job = 1_000; job < 1_100; job++) await call(`${job}`);
        lines.push(`${step}: at most ${Math.ceil((session.lostGrants.length - before) / 5) * 5} sign-ins`);
      } else expect.fail(step);
    }
    return lines;
  });
});

it('a call waits until the service allows it, its time is that of its attempt, and its error has no secret', async () => {
  let nowMs = 0;
  const [order, events] = [[] as unknown[], [] as CallEvent[]];
  const untilAllowed = async (stop: AbortSignal) => {
    await new Promise((resolve) => setImmediate(resolve));
    nowMs += 1_000;
    order.push(stop);
  };
  const parts = { session: new GivenSession(), secrets: new Secrets(), untilAllowed, nowMs: () => nowMs };
  const calls = new SessionCalls({ ...parts, onCall: (event) => void events.push(event) });
  const attempt: Attempt<never> = async (_, count) => {
    order.push('begun');
    nowMs += 5;
    count.bytes = 7;
    throw new JobtailError('fault', `it names ${SESSION_CODE}`);
  };
  const called = calls.call('GetCurrentInfoForJob', '501', attempt, signal);
  await expect(called).rejects.toMatchObject({ code: 'fault', message: 'it names ***' });
  expect(order).toEqual([signal, 'begun']);
  expect(events).toEqual([{ operation: 'GetCurrentInfoForJob', bytes: 7, outcome: 'fault', durationMs: 5 }]);
});
