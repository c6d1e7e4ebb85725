/** One sign-in for all, a session that is lost, and the pause after a refusal. */

import { getEventListeners } from 'node:events';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { Grant } from '../../../src/agent/ports/server.ts';
import type { AuthSettings } from '../../../src/auth.ts';
import { asJobtailError, JobtailError } from '../../../src/errors.ts';
import { expectCases } from '../../support/errors.ts';
import { until } from '../../support/wire-server.ts';
import {
  type Answer,
  CODE,
  expectNoSecret,
  NEVER,
  passwordSettings,
  secretDirectory,
  signInService,
} from './server.ts';

const { path, write } = secretDirectory();
const { service, signIn } = signInService();
const SECRET = 'correct-horse-battery-staple';
/** By the first step. */
const METHODS: Readonly<Record<string, object>> = {
  key: { method: 'api-key' },
  credential: { secret: { kind: 'credential', name: 'password' } },
};

/** Callers by their letters, the service, and what becomes of them. */
async function place(first: string) {
  const env: Record<string, string> = {};
  const auth = { ...passwordSettings(await write('password', SECRET)), ...METHODS[first] } as AuthSettings;
  const { session, clock, events } = signIn(auth, { env, ...(first === 'least' && { random: () => 0 }) });
  service.received = [];
  service.givenUp = 0;
  const lines: string[] = [];
  let [hint, waits, isHeld]: [string | undefined, number, boolean] = [undefined, 0, false];
  let last: Grant | JobtailError | undefined;
  let reply: (body: string) => Answer = () => ({ body: `"${CODE}"` });
  const held: (() => void)[] = [];
  service.answer = ({ body }) =>
    isHeld ? new Promise((resolve) => void held.push(() => resolve(reply(body)))) : reply(body);
  const stops: Record<string, AbortController> = {};
  const asked: Record<string, Promise<Grant | JobtailError>> = {};
  const show = (error: JobtailError) => {
    expectNoSecret(error, [SECRET]);
    const { code, message, hint: now, retryAfterMs } = error;
    const wish = retryAfterMs === undefined ? '' : `, retry after ${retryAfterMs} ms`;
    const more = now === hint ? [] : [`  (${now})`];
    hint = now;
    return [`${code}: ${message}${wish}`, ...more];
  };
  const ask = async () => {
    last = await session.current(NEVER).catch((thrown: unknown) => asJobtailError(thrown));
    const [outcome, ...more] = last instanceof JobtailError ? show(last) : ['signed in'];
    lines.push(`at ${(clock.nowMs - 1_000) / 1_000}, request ${service.received.length}: ${outcome}`, ...more);
  };
  const answer = (status: string, ...body: string[]) => {
    const [retryAfter, own] = status === 'after' ? [body[0], body[1]] : [undefined, status];
    const headers = retryAfter && { headers: { 'Retry-After': retryAfter } };
    reply = () => ({ status: Number(own), body: retryAfter ? '' : body.join(' '), ...headers });
  };
  const steps: Readonly<Record<string, (...words: string[]) => unknown>> = {
    answer,
    // One secret is refused, any other one is not.
    refuse: (...of) => {
      answer(...(of as [string]));
      const refused = reply;
      reply = (body) => (body.includes(SECRET) ? refused(body) : { body: `"${CODE}"` });
    },
    secret: (text = '') => write('password', text),
    none: () => rm(path('password')),
    found: () => Object.assign(env, { CREDENTIALS_DIRECTORY: path('') }),
    changed: async () => lines.push(`another secret: ${await session.hasOtherSecret()}`),
    pass: (seconds) => {
      clock.nowMs += Math.round(Number(seconds) * 1_000);
    },
    ask,
    lose: async () => {
      await ask();
      session.lost(last as Grant);
    },
    refused: () => lines.push(...show(session.refused(last as Grant, new JobtailError('sign-in-refused', 'No.')))),
    hold: () => {
      isHeld = true;
    },
    wait: async () => {
      waits += 1;
      await until(() => held.length === waits && service.givenUp === waits - 1);
    },
    go: async () => {
      isHeld = false;
      for (const release of held) release();
      await Promise.all(Object.values(asked));
    },
    begin: async (name = '') => {
      stops[name] ??= new AbortController();
      asked[name] = session.current(stops[name].signal).catch((thrown: unknown) => asJobtailError(thrown));
      if (!isHeld) await asked[name];
    },
    leave: (name = '') => {
      stops[name] ??= new AbortController();
      stops[name].abort();
    },
    lost: async (name = '') => session.lost(((await asked[name]) as Grant) ?? { kind: 'session', code: CODE }),
    /** When so many requests were given up. */
    end: async (givenUp = '0') => {
      const grants: unknown[] = [];
      const outcomes: string[] = [];
      for (const [name, result] of Object.entries(asked)) {
        const grant = await result;
        if (!(grant instanceof JobtailError) && !grants.includes(grant)) grants.push(grant);
        outcomes.push(`${name}${grant instanceof JobtailError ? ` ${grant.code}` : grants.indexOf(grant) + 1}`);
      }
      await until(() => service.givenUp === Number(givenUp));
      const counts = `${service.received.length} requests, ${events.length} events`;
      lines.push([...outcomes, counts, ...(session.signedInAt === clock.nowMs ? [] : ['no session'])].join(', '));
      for (const stop of Object.values(stops)) expect(getEventListeners(stop.signal, 'abort')).toEqual([]);
    },
  };
  return { lines, steps };
}

/** A asks, -A leaves, and !A (or ! without a grant) reports a lost one; +5 is five seconds. */
const STEPS: Readonly<Record<string, string>> = { '+': 'pass', '-': 'leave', '!': 'lost' };

it('each caller gets a session, or the failure whose pause it is, as is written in session.txt', async () => {
  await expectCases(join(import.meta.dirname, 'session.txt'), async (written) => {
    const all = written.split('; ');
    const { lines, steps } = await place(all[0] ?? '');
    for (const step of all) {
      const [, sign = '', word = '', rest] = /^([-!+]?)([\w.]*)(?: (.*))?$/.exec(step) ?? [];
      if (sign !== '') await steps[STEPS[sign] ?? '']?.(word);
      else if (/^[A-Z]$/.test(word)) await steps['begin']?.(word);
      else if (steps[word] !== undefined) await steps[word](...(rest?.split(' ') ?? []));
      else expect(['least', ...Object.keys(METHODS)]).toContain(word);
    }
    const base = `${service.baseUrl}/service/UserAndLimitationManagement`;
    return lines.map((line) => line.replaceAll(base, 'BASE').replaceAll(path(''), 'DIR'));
  });
});
