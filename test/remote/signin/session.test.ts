/** One sign-in for all, a session that is lost, and the pause after a refusal. */

import { getEventListeners } from 'node:events';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Grant } from '../../../src/agent/ports/server.ts';
import type { AuthSettings } from '../../../src/auth.ts';
import { JobtailError } from '../../../src/errors.ts';
import { expectCases } from '../../support/errors.ts';
import { until } from '../../support/wire-server.ts';
import { secretDirectory } from './files.ts';
import { type Answer, CODE, expectNoSecret, failureOf, NEVER, passwordSettings, signInService } from './server.ts';

const { path, write } = secretDirectory();
const { service, signIn } = signInService();
const SECRET = 'correct-horse-battery-staple';
const settings = async () => passwordSettings(await write('password', SECRET));

/** Lets the service wait with its answers until `go` is called. */
function heldAnswers(answer: Answer = { body: `"${CODE}"` }) {
  const held: (() => void)[] = [];
  service.answer = () => new Promise((resolve) => held.push(() => resolve(answer)));
  return { held, go: () => held.splice(0).forEach((release) => void release()) };
}

describe('the session', () => {
  it('is got once for all who ask at the same time', async () => {
    const { held, go } = heldAnswers();
    const { session, events } = signIn(await settings());
    const { signal } = new AbortController();
    const all = Promise.all(Array.from({ length: 5 }, () => session.current(signal)));
    await until(() => held.length > 0);
    const late = session.current(NEVER);
    go();
    expect(new Set([...(await all), await late]).size).toBe(1);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    expect(service.received).toHaveLength(1);
    expect(events).toHaveLength(1);
  });

  it('is opened after a failure of any kind', async () => {
    await write('cluster', SECRET);
    const env: Record<string, string> = {};
    const auth: AuthSettings = { ...(await settings()), secret: { kind: 'credential', name: 'cluster' } };
    const { session, clock } = signIn(auth, { env });
    for (let time = 0; time < 2; time += 1)
      expect((await failureOf(session.current(NEVER), [SECRET])).code).toBe('secret-unavailable');
    env['CREDENTIALS_DIRECTORY'] = path('');
    clock.nowMs += 3_600_000;
    expect(await session.current(NEVER)).toEqual({ kind: 'session', code: CODE });
  });

  it('comes to the others when one who waits goes', async () => {
    const { held, go } = heldAnswers();
    const { session } = signIn(await settings());
    const leaving = new AbortController();
    const first = failureOf(session.current(leaving.signal), [SECRET]);
    const second = session.current(NEVER);
    await until(() => held.length > 0);
    leaving.abort();
    expect((await first).code).toBe('aborted');
    go();
    expect(await second).toEqual({ kind: 'session', code: CODE });
    expect(service.givenUp).toBe(0);
  });

  it('is given up when all who wait have gone, without a pause for the next', async () => {
    const { held } = heldAnswers();
    const { session, events } = signIn(await settings());
    const leaving = new AbortController();
    const both = [session.current(leaving.signal), session.current(leaving.signal)].map((one) => failureOf(one, []));
    await until(() => held.length > 0);
    leaving.abort();
    expect((await Promise.all(both)).map((error) => error.code)).toEqual(['aborted', 'aborted']);
    await until(() => service.givenUp === 1);
    service.answer = () => ({ body: `"${CODE}"` });
    expect(await session.current(NEVER)).toEqual({ kind: 'session', code: CODE });
    expect(events).toHaveLength(1);
  });

  it('is got once after a sign-in that was given up, however late that one ends', async () => {
    const { held, go } = heldAnswers();
    const { session } = signIn(await settings());
    const leaving = new AbortController();
    const first = failureOf(session.current(leaving.signal), []);
    await until(() => held.length > 0);
    leaving.abort();
    const second = session.current(NEVER);
    await first;
    await until(() => service.givenUp === 1 && held.length === 2);
    const third = session.current(NEVER);
    go();
    expect(await third).toBe(await second);
    expect(service.received).toHaveLength(2);
  });

  it('is not asked for by who has gone already', async () => {
    const { session } = signIn(await settings());
    expect((await failureOf(session.current(AbortSignal.abort()), [])).code).toBe('aborted');
    expect(service.received).toHaveLength(0);
  });

  it('is renewed when it is lost, also if the same code comes again', async () => {
    const { session, clock } = signIn(await settings());
    const first = await session.current(NEVER);
    session.lost(first);
    expect(session.signedInAt).toBe(Number.POSITIVE_INFINITY);
    const second = await session.current(NEVER);
    expect(second).toEqual(first);
    session.lost(first);
    expect(session.signedInAt).toBe(clock.nowMs);
    expect(await session.current(NEVER)).toBe(second);
    session.lost(second);
    session.lost(second);
    await session.current(NEVER);
    expect(service.received).toHaveLength(3);
  });

  it('is not lost by word of a grant it never had, nor while it is renewed', async () => {
    const { held, go } = heldAnswers();
    const { session } = signIn(await settings());
    const waiting = session.current(NEVER);
    await until(() => held.length > 0);
    session.lost({ kind: 'session', code: CODE });
    go();
    const grant = await waiting;
    session.lost({ kind: 'session', code: CODE });
    expect(await session.current(NEVER)).toBe(grant);
  });
});

it('each failure of a sign-in is followed by the pause that is written', async () => {
  await expectCases(join(import.meta.dirname, 'pauses.txt'), async (written) => {
    const { session, clock } = signIn(await settings(), written.startsWith('least') ? { random: () => 0 } : {});
    service.received = [];
    const result: string[] = [];
    for (const step of written.split('; ')) {
      const [word = '', first = '', ...rest] = step.split(' ');
      if (word === 'answer' || word === 'refuse') {
        const [retryAfter, body] = first === 'after' ? [rest[0], ''] : [undefined, rest.join(' ')];
        const status = Number(first === 'after' ? rest[1] : first);
        const answer = { status, body, ...(retryAfter && { headers: { 'Retry-After': retryAfter } }) };
        // A refused secret, or all.
        service.answer = (request) =>
          word === 'answer' || request.body.includes(SECRET) ? answer : { body: `"${CODE}"` };
      } else if (word === 'secret') await write('password', first);
      else if (word === 'none') await rm(path('password'));
      else if (word.startsWith('+')) clock.nowMs += Math.round(Number(word) * 1_000);
      else if (word === 'ask' || word === 'lose') {
        const outcome = await session
          .current(NEVER)
          .catch((thrown: unknown) => failureOf(Promise.reject(thrown), [SECRET]));
        if (word === 'lose') session.lost(outcome as Grant);
        const { code, message = 'signed in', hint, retryAfterMs } = outcome as Partial<JobtailError>;
        const wish = retryAfterMs === undefined ? '' : `, retry after ${retryAfterMs} ms`;
        const error = message === 'signed in' ? '' : `${code}: `;
        result.push(
          `at ${(clock.nowMs - 1_000) / 1_000}, request ${service.received.length}: ${error}${message}${wish}`,
        );
        if (error !== '') result.push(`  (${hint})`);
      }
    }
    return result.map((line) => line.replaceAll(service.baseUrl, 'BASE').replaceAll(path(''), 'DIR'));
  });
});

it('a key that a call finds refused is sent again after a pause that doubles, or once its file has changed', async () => {
  const secret = { kind: 'file', path: await write('password', SECRET) } as const;
  const { session, clock, events } = signIn({ ...passwordSettings(''), method: 'api-key', username: 'alice', secret });
  /** Asks each second until there is a key, which the next call carries. */
  const refusedAt = async () => {
    for (;;) {
      const grant = await session.current(NEVER).catch(() => undefined);
      if (grant === undefined) clock.nowMs += 1_000;
      else {
        const { message } = session.refused(grant, new JobtailError('sign-in-refused', 'It was refused.'));
        return `at ${(clock.nowMs - 1_000) / 1_000}: ${message}`;
      }
    }
  };
  const refused = 'It was refused; next sign-in within';
  expect(await refusedAt()).toBe(`at 0: ${refused} 300 s, or when the secret changes`);
  expect(await refusedAt()).toContain(`at 300: ${refused} 600 s`);
  await write('password', 'another one');
  expect(await refusedAt()).toContain(`at 300: ${refused} 300 s`);
  await write('password', 'the right one');
  await session.current(NEVER);
  // It was accepted until the user changed it.
  clock.nowMs += 3_601_000;
  expect(await refusedAt()).toContain(`at 3901: ${refused} 300 s`);
  expect(events.filter(({ kind }) => kind === 'failed')).toHaveLength(4);
});

it('secrets are not in what can be printed of the session', async () => {
  const { session, events } = signIn(await settings());
  await session.current(NEVER);
  service.answer = () => ({ status: 401, body: SECRET });
  expectNoSecret([session, events], [SECRET, CODE]);
});
