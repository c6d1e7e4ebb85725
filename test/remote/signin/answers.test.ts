/** What servers answer to a sign-in, and what is made of it. */
import { describe, expect, it } from 'vitest';
import type { AuthSettings } from '../../../src/auth.ts';
import type { ErrorCode } from '../../../src/errors.ts';
import { Secrets } from '../../../src/redact.ts';
import { readGrant } from '../../../src/remote/signin/operation.ts';
import { secretDirectory } from './files.ts';
import { type Answer, CODE, failureOf, NEVER, passwordSettings, signInService } from './server.ts';

const { write } = secretDirectory();
const { service, signIn } = signInService();
const SECRET = 'correct-horse-battery-staple';
const JWT = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJl';

const settings = async (): Promise<AuthSettings> => passwordSettings(await write('password', SECRET));
const tokenSettings = async (token = JWT): Promise<AuthSettings> => ({
  ...passwordSettings(await write('token', token)),
  method: 'openid',
  username: 'alice',
});

describe('an answer of success', () => {
  it.each<[string, string, string?]>([
    ['a JSON string', `"${CODE}"`],
    ['a JSON string with blanks around it', `\r\n  "${CODE}"\n`],
    ['a JSON string with a byte-order mark', `\uFEFF"${CODE}"`],
    ['plain text', CODE, 'text/plain'],
    ['plain text that says it is JSON', CODE],
    ['an object', `{"SessionCode":"${CODE}"}`],
    ['an object in camel case', `{"sessionCode":"${CODE}"}`],
    ['a session', `{"session":"${CODE}"}`],
    ['a session id', `{"SessionId":"${CODE}"}`],
    ['an authentication token', `{"AuthToken":"${CODE}"}`],
    ['a session token', `{"session-token":"${CODE}"}`],
    ['an object with underscores', `{"session_code":"${CODE}"}`],
    ['a token', `{"access_token":"${CODE}","token_type":"x","expires_in":900}`],
    ['the likelier of two names', `{"Token":"no","User":{"SessionCode":"no"},"SessionCode":"${CODE}"}`],
    ['an object in an object', `{"Status":0,"Data":{"Token":"${CODE}"}}`],
    ['an object in an object, past a null', `{"SessionCode":null,"Data":{"SessionCode":"${CODE}"}}`],
  ])('is understood: %s', async (_what, body, type = 'application/json; charset=utf-8') => {
    service.answer = () => ({ body, headers: { 'Content-Type': type } });
    const { session, events } = signIn(await settings());
    expect(await session.current(NEVER)).toEqual({ kind: 'session', code: CODE });
    expect(events).toEqual([{ kind: 'signed-in', grant: 'session', tookMs: 0 }]);
  });

  it.each([
    ['weird', `{"Token":"no","weird":"${CODE}"}`],
    ['a.b.c', `{"Token":"no","a":{"b":{"c":"${CODE}"}}}`],
    ['a.b', `{"Token":"no","a.b":"${CODE}"}`],
  ])('is read where auth.sessionCodeField says: %s', async (sessionCodeField, body) => {
    service.answer = () => ({ body });
    const { session } = signIn({ ...(await settings()), sessionCodeField });
    expect(await session.current(NEVER)).toEqual({ kind: 'session', code: CODE });
  });

  it.each(['"HEADER-AUTH-NEEDED"', 'HEADER-AUTH-NEEDED', '{"SessionCode":"HEADER-AUTH-NEEDED"}'])(
    'turns to the token as a bearer: %s',
    async (body) => {
      service.answer = () => ({ body });
      const { session, events } = signIn(await tokenSettings());
      expect(await session.current(NEVER)).toEqual({ kind: 'bearer', token: JWT });
      expect(events).toMatchObject([{ kind: 'signed-in', grant: 'bearer' }]);
    },
  );

  it('that wants a bearer is refused where there is none to give', async () => {
    service.answer = () => ({ body: '"HEADER-AUTH-NEEDED"' });
    const withPassword = await failureOf(signIn(await settings()).session.current(NEVER), [SECRET]);
    expect(withPassword).toMatchObject({ code: 'unexpected-answer', hint: expect.stringContaining('auth.method') });
    const token = 'tökén with blanks';
    const withBadToken = await failureOf(signIn(await tokenSettings(token)).session.current(NEVER), [token]);
    expect(withBadToken).toMatchObject({ code: 'secret-unavailable' });
  });

  it.each<[string, Answer, ErrorCode, string]>([
    ['nothing', { body: '' }, 'unexpected-answer', 'nothing'],
    ['no content', { status: 204 }, 'unexpected-answer', 'nothing'],
    ['null', { body: 'null' }, 'unexpected-answer', 'null'],
    ['a number', { body: '12345' }, 'unexpected-answer', 'a number'],
    ['an empty string', { body: '""' }, 'unexpected-answer', 'an empty text'],
    ['a sentence', { body: '"Tajné heslo is wrong"' }, 'unexpected-answer', 'a text of 20 characters'],
    ['a list', { body: `["${CODE}"]` }, 'unexpected-answer', 'a list of 1'],
    ['an empty object', { body: '{}' }, 'unexpected-answer', 'an empty object'],
    [
      'an object without a code',
      { body: `{"User":{"Id":7,"Key":"${CODE}","Deep":{"x":1}},"ok":true,"none":null,"many":[1,2]}` },
      'unexpected-answer',
      'an object with "User" (an object with "Id" (a number), "Key" (a text of 36 characters), "Deep" (an object)), ' +
        '"ok" (a boolean), "none" (null), "many" (a list of 2)',
    ],
    [
      'an object with a code as its key',
      { body: `{"${CODE}":1}` },
      'unexpected-answer',
      'an object with a key of 36 characters (a number)',
    ],
    [
      'an object with the password as its key',
      { body: `{"${SECRET}":1}` },
      'unexpected-answer',
      'with "***" (a number)',
    ],
    [
      'a code that is no text',
      { body: '{"SessionCode":{"x":1}}' },
      'unexpected-answer',
      'with "SessionCode" (an object',
    ],
    ['HTML', { body: `<html>${SECRET}</html>` }, 'unexpected-answer', 'a page of HTML or XML'],
    [
      'text',
      { body: 'welcome', headers: { 'Content-Type': 'text/plain' } },
      'unexpected-answer',
      'text of 7 characters',
    ],
    ['broken JSON', { body: `{"SessionCode":"${CODE}` }, 'malformed', 'broken JSON'],
    ['brackets without end', { body: '['.repeat(60_000) }, 'malformed', 'broken JSON'],
    ['bytes that are no text', { body: Buffer.from([0xff, 0xfe, 0x22]) }, 'malformed', 'broken JSON'],
    ['too much', { body: `"${'x'.repeat(70_000)}"` }, 'answer-too-large', '65536'],
  ])('that is not understood shows its shape, never a value: %s', async (what, answer, code, said) => {
    service.answer = () => answer;
    const { session, events } = signIn(await settings());
    const error = await failureOf(session.current(NEVER), [SECRET, CODE, 'Tajné']);
    expect(error.code).toBe(code);
    expect(error.hint?.startsWith('check service.baseUrl')).toBe(what === 'HTML');
    expect(error.message).toContain(said);
    expect(error.hint).toBeTruthy();
    expect(events).toMatchObject([{ kind: 'failed', error: { code: error.code } }]);
  });

  it('with another shape than auth.sessionCodeField says is not understood', async () => {
    service.answer = () => ({ body: `{"SessionCode":"${CODE}"}` });
    const { session } = signIn({ ...(await settings()), sessionCodeField: 'data.code' });
    const error = await failureOf(session.current(NEVER), [SECRET, CODE]);
    expect(error.message).toContain('"SessionCode" (a text of 36 characters)');
    expect(error.hint).toContain('auth.sessionCodeField');
  });
});

describe('an answer of failure', () => {
  it.each<[number, ErrorCode, RegExp]>([
    [300, 'redirected', /service\.baseUrl/],
    [302, 'redirected', /service\.baseUrl/],
    [400, 'sign-in-refused', /auth\.username and the password in the file/],
    [401, 'sign-in-refused', /auth\.username/],
    [403, 'sign-in-refused', /auth\.username/],
    [404, 'http-status', /auth\.path or auth\.operation/],
    [405, 'http-status', /auth\.path or auth\.operation/],
    [413, 'request-too-long', /limit/],
    [418, 'http-status', /auth\.method/],
    [429, 'rate-limited', /requestsPerMinute/],
    [500, 'http-status', /log of the service/],
    [502, 'unavailable', /wait/],
    [503, 'unavailable', /wait/],
    [504, 'timeout', /wait/],
  ])('%i is %s, with what to do', async (status, code, hint) => {
    service.answer = () => ({ status, body: '"no"', headers: { Location: 'http://127.0.0.1:1/elsewhere' } });
    const error = await failureOf(signIn(await settings()).session.current(NEVER), [SECRET]);
    expect(error.code).toBe(code);
    expect(error.message).toContain(`status ${status} of ${service.baseUrl}/service/`);
    expect(error.hint).toMatch(hint);
    expect(service.received).toHaveLength(1);
  });

  it.each([
    ['a JSON string', '"Wrong user name"', 'Wrong user name'],
    ['text', 'Wrong\r\n\tuser\u0000 name\u001b[31m', 'Wrong user\\u{0000} name\\u{001B}[31m'],
    ['an object', '{"Message":"Wrong user name"}', 'Wrong user name'],
    ['problem details', '{"type":"about:blank","title":"Bad","detail":"Wrong user name"}', 'Wrong user name'],
    ['an unknown object', '{"reason":1}', '{"reason":1}'],
    ['HTML', '<html><body>Wrong</body></html>', '; next sign-in'],
    ['the secret', `password ${SECRET} is wrong`, 'password *** is wrong'],
    ['a part of the secret', `password ${SECRET.slice(3, 15)}...`, 'password ***...'],
    ['the secret in capitals', `${SECRET.toUpperCase()} is wrong`, '*** is wrong'],
    ['the request', `{"Credentials":{"Username":"alice","Password":"${SECRET}"}}`, '"Password":"***"'],
    ['a session code', `Session code ${CODE} is not valid`, 'Session code *** is not valid'],
    ['a token of somebody', `Authorization: Bearer abc, ${JWT}`, 'Authorization: Bearer ***, ***'],
    ['a long text', `begin ${'long '.repeat(20_000)} end`, 'long long long...;'],
  ])('quotes the words of the server, safely: %s', async (_what, body, said) => {
    service.answer = () => ({ status: 401, body });
    const error = await failureOf(signIn(await settings()).session.current(NEVER), [SECRET, CODE, JWT]);
    expect(error.message).toContain(said);
    expect(error.message.length).toBeLessThan(500);
    expect(error.message).not.toMatch(/\p{Cc}/u);
  });

  it('of the program itself holds nothing of the request', async () => {
    const request = async ({ body }: { readonly body?: string | Buffer }) => {
      throw Object.assign(new TypeError(`cannot send ${body}`), { body });
    };
    const { session } = signIn(await settings(), { http: { request } });
    const error = await failureOf(session.current(NEVER), [SECRET]);
    expect(error).toMatchObject({ code: 'internal', message: expect.stringContaining('"Password":"***"') });
  });

  it('is that of the client if nobody listens', async () => {
    const { session } = signIn(await settings(), { baseUrl: 'http://127.0.0.1:1' });
    expect((await failureOf(session.current(NEVER), [SECRET])).code).toBe('unreachable');
  });
});

describe('a failed sign-in as real servers answer it', () => {
  const problem = (title: string, status: number, detail: string) => JSON.stringify({ title, status, detail });
  const wrong = "Authentication of user 'alice' was not successful.";

  it.each([
    ['V2.0.0', 400, '"Authentication of user alice was not successful due to wrong credentials."', 'sign-in-refused'],
    ['V4.3.0', 500, problem('External Problem', 500, wrong), 'sign-in-refused'],
    ['V6.3.2', 502, problem('External Service Error', 502, wrong), 'sign-in-refused'],
    ['other words', 502, problem('External Service Error', 502, 'No such account.'), 'sign-in-refused'],
    [
      'unknown user, V4.3.0',
      500,
      problem('Problem', 500, 'Problem occured! Contact the administrators.'),
      'http-status',
    ],
    ['a page of a proxy, 403', 403, '<html><body>Forbidden</body></html>', 'http-status'],
    ['a text of a proxy, 403', 403, 'Access denied by the policy of the site\n', 'http-status'],
    ['a text of a service, 403', 403, 'Wrong password', 'sign-in-refused'],
    ['nothing, 403', 403, '', 'sign-in-refused'],
    ['a page of a proxy, 502', 502, '<html><body>Bad Gateway</body></html>', 'unavailable'],
    ['a proxy without words', 502, '', 'unavailable'],
    ['too long, V3.1.0', 400, `Status Code: 400; Bad Request${' '.repeat(500)}`, 'request-too-long'],
    [
      'too long, V5.0.0',
      400,
      problem('Request body too large. The max request body size is 148 bytes.', 400, ''),
      'request-too-long',
    ],
  ])('%s', async (_what, status, body, code) => {
    service.answer = () => ({ status, body });
    expect((await failureOf(signIn(await settings()).session.current(NEVER), [SECRET])).code).toBe(code);
  });

  it('shows what the framework found wrong with the request', async () => {
    const errors = { Username: ['Username must be at most 20 characters.'] };
    service.answer = () => ({
      status: 400,
      body: JSON.stringify({ title: 'One or more validation errors occurred.', errors }),
    });
    const { message } = await failureOf(signIn(await settings()).session.current(NEVER), [SECRET]);
    expect(message).toContain('validation errors occurred. Username must be at most 20 characters;');
  });
});

it('the error of a sign-in names keys of an answer only if they are words', () => {
  const text = '{"Status":1,"x81f3-9a7b.c0":{"Reason_Code":2},"\\u001b[2J":3}';
  const rules = { secret: 'x', secrets: new Secrets(), isToken: false, sessionCodeField: null };
  expect(() => readGrant({ text, contentType: 'application/json' }, rules)).toThrow(
    'an object with "Status" (a number), a key of 13 characters (an object with "Reason_Code" (a number)), a key of 4 characters (a number)',
  );
});
