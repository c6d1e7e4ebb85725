/** One sign-in for all, a session that is lost, and the pause after a refusal. */

import { getEventListeners } from 'node:events';
import { rm } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import type { AuthSettings } from '../../../src/auth.ts';
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

describe('after a refusal', () => {
  it('there is a pause that doubles from five minutes to an hour and ends with a success', async () => {
    const { session, clock, events } = signIn(await settings());
    service.answer = () => ({ status: 401, body: '"wrong"' });
    for (const [index, seconds] of [300, 600, 1200, 2400, 3600, 3600].entries()) {
      const refusal = await failureOf(session.current(NEVER), [SECRET]);
      expect(refusal).toMatchObject({ code: 'sign-in-refused', retryAfterMs: undefined });
      expect(refusal.message).toContain(`: wrong; next sign-in within ${seconds} s`);
      clock.nowMs += seconds * 1000 - 1;
      const again = await failureOf(session.current(NEVER), [SECRET]);
      expect(again).toMatchObject({ code: 'sign-in-refused', hint: refusal.hint });
      expect(again.message).toContain(': wrong; next sign-in within 1 s');
      expect(service.received).toHaveLength(index + 1);
      clock.nowMs += 1;
    }
    expect(events).toHaveLength(6);

    service.answer = () => ({ body: `"${CODE}"` });
    session.lost(await session.current(NEVER));
    service.answer = () => ({ status: 401 });
    expect((await failureOf(session.current(NEVER), [])).message).toContain('next sign-in within 300 s');
  });

  it('the pause has jitter, and is never longer than said', async () => {
    const { session, clock } = signIn(await settings(), { random: () => 0 });
    service.answer = () => ({ status: 401 });
    await failureOf(session.current(NEVER), []);
    clock.nowMs += 224_999;
    await failureOf(session.current(NEVER), []);
    expect(service.received).toHaveLength(1);
    clock.nowMs += 1;
    await failureOf(session.current(NEVER), []);
    expect(service.received).toHaveLength(2);
  });

  it('a changed secret ends the pause', async () => {
    const { session } = signIn(await settings());
    service.answer = ({ body }) => (body.includes(SECRET) ? { status: 403 } : { body: `"${CODE}"` });
    await failureOf(session.current(NEVER), [SECRET]);
    await failureOf(session.current(NEVER), [SECRET]);
    expect(service.received).toHaveLength(1);
    await write('password', 'the right one');
    expect(await session.current(NEVER)).toEqual({ kind: 'session', code: CODE });
  });

  it('a secret that appears ends the pause', async () => {
    const { session } = signIn(passwordSettings(path('later')));
    expect((await failureOf(session.current(NEVER), [])).code).toBe('secret-unavailable');
    expect((await failureOf(session.current(NEVER), [])).message).toContain('next sign-in within 5 s');
    await write('later', SECRET);
    expect(await session.current(NEVER)).toEqual({ kind: 'session', code: CODE });
    await rm(path('later'));
  });

  it.each([
    ['an answer that is not understood', { body: '{}' }],
    ['a failure of the server', { status: 500 }],
    ['a wrong address', { status: 404 }],
  ])('there is a pause, too: %s', async (_what, answer) => {
    const { session } = signIn(await settings());
    service.answer = () => answer;
    await failureOf(session.current(NEVER), [SECRET]);
    await failureOf(session.current(NEVER), [SECRET]);
    expect(service.received).toHaveLength(1);
  });
});

describe('after an answer to a fault or to an unknown user', () => {
  const unspecific = '{"title":"Problem","status":500,"detail":"Problem occured! Contact the administrators."}';

  it('pauses as after a refusal while the user has never been signed in, and says both', async () => {
    const { session, clock } = signIn(await settings());
    service.answer = () => ({ status: 500, body: unspecific });
    const error = await failureOf(session.current(NEVER), [SECRET]);
    expect(error).toMatchObject({ code: 'http-status', hint: expect.stringContaining('auth.username') });
    expect(error.message).toContain('failed on the server, or the user is unknown there');
    expect(error.message).toContain('next sign-in within 300 s');
    clock.nowMs += 300_000;
    service.answer = () => ({ body: `"${CODE}"` });
    expect(await session.current(NEVER)).toEqual({ kind: 'session', code: CODE });
  });

  it('pauses as after a fault once the user is known, from five seconds on after each success', async () => {
    const { session, clock } = signIn(await settings());
    for (let times = 0; times < 2; times++) {
      service.answer = () => ({ body: `"${CODE}"` });
      session.lost(await session.current(NEVER));
      service.answer = () => ({ status: 500, body: unspecific });
      for (const seconds of [5, 10]) {
        const { message } = await failureOf(session.current(NEVER), [SECRET]);
        expect(message).toContain(`next sign-in within ${seconds} s`);
        clock.nowMs += seconds * 1_000;
      }
    }
  });
});

describe('after a failure that passes by itself', () => {
  it('there is no pause of its own', async () => {
    const { session } = signIn(await settings());
    service.answer = () => ({ status: 503 });
    expect((await failureOf(session.current(NEVER), [])).message).not.toContain('no other sign-in');
    await failureOf(session.current(NEVER), []);
    expect(service.received).toHaveLength(2);
  });

  it.each([429, 503])('the wish of the server is respected: %i', async (status) => {
    const { session, clock } = signIn(await settings());
    service.answer = () => ({ status, headers: { 'Retry-After': '7' } });
    expect((await failureOf(session.current(NEVER), [])).retryAfterMs).toBe(7000);
    clock.nowMs += 3000;
    await write('password', 'changed');
    const again = await failureOf(session.current(NEVER), []);
    expect(again.retryAfterMs).toBe(4000);
    expect(again.message).toContain('next sign-in within 4 s');
    expect(service.received).toHaveLength(1);
    clock.nowMs += 4000;
    service.answer = () => ({ body: `"${CODE}"` });
    expect(await session.current(NEVER)).toEqual({ kind: 'session', code: CODE });
  });
});

it('secrets are not in what can be printed of the session', async () => {
  const { session, events } = signIn(await settings());
  await session.current(NEVER);
  service.answer = () => ({ status: 401, body: SECRET });
  expectNoSecret([session, events], [SECRET, CODE]);
});
