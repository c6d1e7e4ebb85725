/** What servers answer to a sign-in, and what is made of it. */
import path from 'node:path';
import { expect, it } from 'vitest';
import type { AuthSettings } from '../../../src/auth.ts';
import { expiryOf, tokenOf } from '../../../src/remote/signin/sign-in.ts';
import { expectCases, writtenBytes } from '../../support/errors.ts';
import { CODE, expectNoSecret, failureOf, NEVER, passwordSettings, secretDirectory, signInService } from './server.ts';

const { path: at, write } = secretDirectory();
const { service, signIn } = signInService();
const SECRETS = {
  CODE,
  SECRET: 'correct-horse-battery-staple',
  PART: 'rect-horse-b',
  CAPITALS: 'CORRECT-HORSE-BATTERY-STAPLE',
  JWT: 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJl',
  ODD: 'tökén with blanks',
  ESCAPED: '"Bearer p\\ä€😀</>&"',
};
const HIDDEN = [...Object.values(SECRETS), 'Tajné'];

const settings = async (): Promise<AuthSettings> => passwordSettings(await write('password', SECRETS.SECRET));

/** The bytes of a written body, in which names stand for secrets. */
const bodyOf = (written: string) =>
  writtenBytes(written.replaceAll(/CODE|SECRET|PART|CAPITALS|JWT/g, (name) => SECRETS[name as keyof typeof SECRETS]));

async function authOf(word: string): Promise<AuthSettings> {
  const [, name, field, method, at, operation = null] =
    /^(?:by (\w+)|field (\S+)|as ([\w-]+)(?: at (\S+) (\S+))?)?$/.exec(word) ?? [];
  if (field !== undefined) return { ...(await settings()), sessionCodeField: field };
  if (name === undefined && method === undefined) return await settings();
  if (name === undefined) {
    const odd = passwordSettings(await write('odd', `${method === 'session-code' ? SECRETS.CODE : SECRETS.ESCAPED}\n`));
    const ofMethod = { ...odd, method: method as 'openid', username: 'ä "b"', projectId: '9223372036854775807' };
    return at === undefined ? ofMethod : { ...ofMethod, path: at, operation };
  }
  const secret = await write('token', SECRETS[name as keyof typeof SECRETS]);
  return { ...passwordSettings(secret), method: 'openid', username: 'alice' };
}

/** What is sent, where a case is about that. */
function sent(): string[] {
  return service.received.flatMap(({ method, url, rawHeaders, body }) => {
    const headers = rawHeaders.flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${rawHeaders[at + 1]}`] : []));
    const own = headers.filter((line) => !/^(?:host|connection|content-length):/i.test(line));
    return [`${method} ${url} ${body}`, own.join(', ')];
  });
}

const named = (text: string) => {
  const name = Object.entries(SECRETS).find(([, secret]) => secret === text)?.[0];
  return name ?? text;
};
const jwt = (claims: string) => `a.${Buffer.from(claims).toString('base64url')}.c2ln`;

it('a token is read as issuers print it, and its end is known, as is written in tokens.txt', async () => {
  await expectCases(path.join(import.meta.dirname, 'tokens.txt'), (written) => {
    const [what, ...texts] = written.split(' | ');
    const read = (text: string) =>
      what === 'token'
        ? named(tokenOf(`${bodyOf(text)}`))
        : expiryOf(/^\W/.test(text) ? jwt(text) : text, 1_795_824_000_000);
    return [...new Set(texts.map((text) => read(text) || 'nothing'))];
  });
});

it('each answer is read as a grant, or shown without a secret, as is written', async () => {
  let hint: string | undefined;
  await expectCases(path.join(import.meta.dirname, 'answers.txt'), async (written) => {
    const [, auth = '', type = 'application/json', status, body = ''] =
      /^(?:(by \w+|field \S+|as [^:]+): )?(?:(text\/\S+) )?(\d{3})(?: (.*))?$/.exec(written) ?? [];
    const headers = { 'content-type': type, location: 'http://127.0.0.1:1/elsewhere' };
    service.received = [];
    service.answer = () => ({ status: Number(status), headers, body: bodyOf(body) });
    const { session, events } = signIn(await authOf(auth));
    const result = await session.current(NEVER).catch((thrown: unknown) => thrown);
    expectNoSecret([session, events], HIDDEN);
    expect(service.received.length, written).toBe(auth === 'as session-code' ? 0 : 1);
    const requests = auth.startsWith('as ') ? sent() : [];
    const [event] = events;
    if (event?.kind === 'signed-in') {
      const [kind, value] = Object.values(result as object);
      expect(event).toEqual({ kind: 'signed-in', grant: kind, tookMs: 0 });
      return [...requests, `${kind} ${named(value)}`];
    }
    const error = await failureOf(Promise.reject(result), HIDDEN);
    expect(event).toMatchObject({ kind: 'failed', error: { code: error.code } });
    expect(error.message.length).toBeLessThan(600);
    const isSame = error.hint === hint;
    hint = error.hint;
    const shown = `${error.code}: ${error.message}${isSame ? '' : `\n(${hint})`}`;
    return shown.replaceAll(service.baseUrl, 'BASE').replaceAll(at(''), 'DIR').split('\n');
  });
});

it('a failure of the program itself holds nothing of the request', async () => {
  const request = async ({ body }: { readonly body?: string | Buffer }) => {
    throw Object.assign(new TypeError(`cannot send ${body}`), { body });
  };
  const { session } = signIn(await settings(), { http: { request } });
  const error = await failureOf(session.current(NEVER), [SECRETS.SECRET]);
  expect(error).toMatchObject({ code: 'internal', message: expect.stringContaining('"Password":"***"') });
});

it('a refusal whose body breaks is a refusal, so it is not repeated at once', async () => {
  const headers = { 'Content-Type': 'text/html', 'Content-Length': '100', Connection: 'close' };
  service.answer = () => ({ status: 401, headers, body: '<html>' });
  const { session } = signIn(await settings());
  for (let times = 0; times < 2; times += 1)
    await expect(session.current(NEVER)).rejects.toMatchObject({ code: 'sign-in-refused' });
  expect(service.received).toHaveLength(1);
});
