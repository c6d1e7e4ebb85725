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
import { CODE, failureOf, NEVER, passwordSettings, secretDirectory, signInService } from './server.ts';

const { path, write } = secretDirectory();
const { service, signIn } = signInService();
const SECRET = 'correct-horse-battery-staple';
const settings = async () => passwordSettings(await write('password', SECRET));

/** Callers ask (A), leave (-A) and report a lost grant (!A, or ! one that never was); `wait`: for a request; `go`: all are answered. */
it.each([
  ['is got once for all who ask at the same time', 'A B C wait D go', 'A1 B1 C1 D1, 1 requests, 0 given up, 1 events'],
  ['comes to the others when one who waits goes', 'A B wait -A go', 'Aaborted B1, 1 requests, 0 given up, 1 events'],
  [
    'is given up when all who wait have gone, without a pause for the next',
    'A B wait -A -B C wait go',
    'Aaborted Baborted C1, 2 requests, 1 given up, 1 events',
  ],
  [
    'is got once after a sign-in that was given up, however late that one ends',
    'A wait -A B wait C go',
    'Aaborted B1 C1, 2 requests, 1 given up, 1 events',
  ],
  ['is not asked for by who has gone already', '-A A', 'Aaborted, 0 requests, 0 given up, 0 events, no session'],
  [
    'is renewed when it is lost, also if the same code comes again',
    'A !A B !A C !B !B D',
    'A1 B2 C2 D3, 3 requests, 0 given up, 3 events',
  ],
  ['is none when it is lost', 'A !A', 'A1, 1 requests, 0 given up, 1 events, no session'],
  [
    'is not lost by word of a grant it never had, nor while it is renewed',
    'A wait ! go ! B',
    'A1 B1, 1 requests, 0 given up, 1 events',
  ],
])('the session %s', async (_, story, outcome) => {
  const { session, events, clock } = signIn(await settings());
  const held: (() => void)[] = [];
  let waits = 0;
  let isHeld = story.includes('go');
  service.answer = () =>
    new Promise(
      (resolve) => void (isHeld ? held : { push: (go: () => void) => go() }).push(() => resolve({ body: `"${CODE}"` })),
    );
  const stops: Record<string, AbortController> = {};
  const results: Record<string, Promise<Grant | string>> = {};
  const grants: (Grant | string)[] = [];
  for (const step of story.split(' ')) {
    const name = step.slice(-1);
    stops[name] ??= new AbortController();
    if (step === 'wait') {
      waits += 1;
      await until(() => held.length === waits && service.givenUp === waits - 1);
    } else if (step === 'go') {
      isHeld = false;
      for (const answer of held) answer();
      await Promise.all(Object.values(results));
    } else if (step.startsWith('-')) stops[name].abort();
    else if (step.startsWith('!')) session.lost(((await results[name]) as Grant) ?? { kind: 'session', code: CODE });
    else {
      results[name] = session.current(stops[name].signal).catch((thrown: unknown) => asJobtailError(thrown).code);
      if (!isHeld) await results[name];
    }
  }
  const numbers = Object.entries(results).map(async ([name, result]) => {
    const grant = await result;
    if (typeof grant === 'string') return `${name}${grant}`;
    expect(grant).toEqual({ kind: 'session', code: CODE });
    if (!grants.includes(grant)) grants.push(grant);
    return `${name}${grants.indexOf(grant) + 1}`;
  });
  const had = [`${(await Promise.all(numbers)).join(' ')}, ${service.received.length} requests`];
  await until(() => service.givenUp === Number(/(\d) given/.exec(outcome)?.[1]));
  had.push(`${service.givenUp} given up, ${events.length} events`);
  if (session.signedInAt !== clock.nowMs) had.push('no session');
  expect(had.join(', ')).toBe(outcome);
  for (const stop of Object.values(stops)) expect(getEventListeners(stop.signal, 'abort')).toEqual([]);
});

it('the session is opened after a failure of any kind', async () => {
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
      else if (word === 'changed') result.push(`another secret: ${await session.hasOtherSecret()}`);
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
