import { describe, expect, it } from 'vitest';
import { ALICE, BOB, call, faultText, jobAnd, post, postJson, signIn, signInUrl, startSandbox } from '../support.ts';

const LIST = 'ListChangedFilesForJob';
const GUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const withToken = { Credentials: { Username: ALICE.username, OpenIdAccessToken: ALICE.token } };
const withPassword = { Credentials: { Username: ALICE.username, Password: ALICE.password } };

describe('the four sign-ins', () => {
  it.each([
    ['AuthenticateUserOpenId', withToken],
    ['AuthenticateExternalToken', withToken],
    ['AuthenticateUserCloudPlatform', { ...withToken, ProjectId: 7 }],
    ['AuthenticateUserAndPassword', withPassword],
  ])('%s answers a bare JSON string', async (operation, body) => {
    const sandbox = await startSandbox();
    const response = await postJson(signInUrl(sandbox, operation), body);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    const text = await response.text();
    expect(text).toBe(JSON.stringify(JSON.parse(text)));
    expect(JSON.parse(text)).toMatch(GUID);
    await sandbox.submitJob({ jobId: '1', tasks: [{}] });
    expect((await call(sandbox, LIST, jobAnd('1', JSON.parse(text)))).status).toBe(200);
  });

  it.each([
    ['an unknown field', 'AuthenticateUserOpenId', { ...withToken, Extra: 1 }, 'Unrecognized key: "Extra"'],
    ['a missing field', 'AuthenticateUserCloudPlatform', withToken, 'at ProjectId'],
    [
      'a ProjectId that is none',
      'AuthenticateUserCloudPlatform',
      { ...withToken, ProjectId: '7' },
      'expected number, received string\n  → at ProjectId',
    ],
    ['the fields of another method', 'AuthenticateUserAndPassword', withToken, 'at Credentials.Password'],
    ['no object', 'AuthenticateUserAndPassword', '[]', 'expected object, received array'],
    ['no JSON', 'AuthenticateUserAndPassword', '{', 'expected JSON in the body'],
    [
      'no string',
      'AuthenticateUserAndPassword',
      { Credentials: { Username: 1, Password: '' } },
      'expected string, received number\n  → at Credentials.Username',
    ],
  ])('refuses %s with 400', async (_what, operation, body, text) => {
    const sandbox = await startSandbox();
    const response = await postJson(signInUrl(sandbox, operation), body);
    expect(response.status).toBe(400);
    expect(await response.text()).toContain(text);
  });

  it('refuses other header lines with 400, other methods with 405, and long bodies with 413', async () => {
    const sandbox = await startSandbox({ habits: { maxSignInBytes: 148 } });
    const url = signInUrl(sandbox, 'AuthenticateUserAndPassword');
    const wrongType = await postJson(url, withPassword, { 'content-type': 'text/plain' });
    expect([wrongType.status, await wrongType.text()]).toEqual([
      400,
      'expected Content-Type application/json, found text/plain',
    ]);
    expect((await postJson(url, withPassword, { accept: '*/*' })).status).toBe(400);
    expect((await fetch(url)).status).toBe(405);
    expect((await postJson(url, withPassword)).status).toBe(200);
    expect((await postJson(url, `${JSON.stringify(withPassword)}${' '.repeat(100)}`)).status).toBe(413);
  });

  it('refuses a wrong secret with the status of its habits', async () => {
    const sandbox = await startSandbox();
    const wrong = [
      ['AuthenticateUserAndPassword', { Credentials: { Username: 'alice', Password: 'wrong' } }],
      ['AuthenticateUserAndPassword', { Credentials: { Username: 'nobody', Password: ALICE.password } }],
      ['AuthenticateUserOpenId', { Credentials: { Username: 'alice', OpenIdAccessToken: BOB.token } }],
    ] as const;
    for (const [operation, body] of wrong)
      expect((await postJson(signInUrl(sandbox, operation), body)).status).toBe(401);
    sandbox.habits.signInRefused = 400;
    const response = await postJson(signInUrl(sandbox, wrong[0][0]), wrong[0][1]);
    expect([response.status, await response.text()]).toEqual([
      400,
      'Wrong username or password, or token not accepted',
    ]);
    expect(sandbox.counters).toMatchObject({ signIns: 4, signInsRefused: 4 });
  });

  it('answers in other shapes and at other addresses by habit', async () => {
    const sandbox = await startSandbox();
    const url = signInUrl(sandbox, 'AuthenticateUserAndPassword');
    sandbox.setHabits({ signInAnswer: 'plain-text' });
    expect(await (await postJson(url, withPassword)).text()).toMatch(GUID);
    sandbox.setHabits({ signInAnswer: 'object', sessionCodeField: 'sessionCode' });
    expect(await (await postJson(url, withPassword)).json()).toEqual({ sessionCode: expect.stringMatching(GUID) });
    sandbox.setHabits({
      signInPath: '/heappe/UserAndLimitationManagement',
      signInOperations: { AuthenticateUserAndPassword: 'AuthenticateUserPassword' },
    });
    expect((await postJson(url, withPassword)).status).toBe(404);
    const elsewhere = `${sandbox.baseUrl}/heappe/UserAndLimitationManagement/AuthenticateUserPassword`;
    expect((await postJson(elsewhere, withPassword)).status).toBe(200);
  });

  it('asks for the token in a header by habit', async () => {
    const sandbox = await startSandbox({ habits: { signInAnswer: 'header' } });
    await sandbox.submitJob({ jobId: '1', tasks: [{}] });
    const response = await postJson(signInUrl(sandbox, 'AuthenticateUserOpenId'), withToken);
    expect(await response.text()).toBe('"HEADER-AUTH-NEEDED"');
    const request = `<e:Envelope xmlns:e="http://www.w3.org/2003/05/soap-envelope"><e:Body><${LIST} xmlns="${sandbox.namespace}"><submittedJobInfoId>1</submittedJobInfoId></${LIST}></e:Body></e:Envelope>`;
    const type = { 'content-type': 'application/soap+xml' };
    const ask = (headers = {}) => post(sandbox, request, { ...type, ...headers });
    expect(faultText(await ask())).toBe('Session code  is not valid');
    expect((await ask({ authorization: `Bearer ${BOB.token}` })).status).toBe(500);
    expect((await ask({ authorization: `Bearer ${ALICE.token}` })).status).toBe(200);
    sandbox.expireSessions();
    expect((await ask({ authorization: `Bearer ${ALICE.token}` })).status).toBe(500);
  });
});

describe('sessions', () => {
  it('idle out after a quarter of an hour without a call, not before', async () => {
    let nowMs = 0;
    const sandbox = await startSandbox({ clock: () => nowMs });
    const session = await signIn(sandbox);
    await sandbox.submitJob({ jobId: '1', tasks: [{}] });
    const list = () => call(sandbox, LIST, jobAnd('1', session));
    for (let round = 0; round < 3; round++) {
      nowMs += 15 * 60_000 - 1;
      expect((await list()).status).toBe(200);
    }
    nowMs += 15 * 60_000;
    expect(faultText(await list())).toBe(`Session code ${session} is not valid`);
    expect(await signIn(sandbox)).not.toBe(session);
  });

  it('are shared by the clients of a user, or begun anew by habit', async () => {
    const sandbox = await startSandbox();
    const session = await signIn(sandbox);
    expect(await signIn(sandbox)).toBe(session);
    expect(await signIn(sandbox, BOB)).not.toBe(session);
    sandbox.habits.reuseSession = false;
    expect(await signIn(sandbox)).not.toBe(session);
  });

  it('are lost in the ways of other releases', async () => {
    const sandbox = await startSandbox();
    await sandbox.submitJob({ jobId: '1', tasks: [{}] });
    const session = await signIn(sandbox);
    sandbox.expireSessions();
    const list = () => call(sandbox, LIST, jobAnd('1', session));
    expect((await list()).status).toBe(500);
    for (const status of [400, 401, 403] as const) {
      sandbox.setHabits({ sessionLost: status, sessionLostText: 'Session code {code} already expired' });
      expect(await list()).toMatchObject({ status, text: `Session code ${session} already expired` });
    }
  });

  it('use renewed secrets', async () => {
    const sandbox = await startSandbox();
    const [alice] = sandbox.users;
    if (alice) alice.password = 'changed';
    await expect(signIn(sandbox)).rejects.toThrow('401');
    expect(await signIn(sandbox, { ...ALICE, password: 'changed' })).toMatch(GUID);
  });
});
