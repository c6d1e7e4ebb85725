/** What each release answers to a failure (docs/rest.md 4.2 to 4.5), as its table says it. */
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { wordingOf } from '../../../simulator/rest/failures.ts';
import { RELEASE_NAMES, type ReleaseName, releaseOf } from '../../../simulator/rest/releases.ts';
import { ALICE, BOB } from '../support.ts';
import { type Answered, FILE, get, LISTING, list, PARTS, partsOf, post, signIn, startJob, USERS } from './support.ts';

/** Statuses: session lost, wrong password, invalid request, no such job, not my job. */
const STATUSES: Readonly<Record<ReleaseName, readonly number[]>> = {
  '2.0': [400, 400, 400, 400, 400],
  '2.1': [400, 400, 400, 400, 400],
  '2.2': [400, 400, 400, 400, 400],
  '3.0': [400, 400, 400, 400, 400],
  '3.1': [400, 400, 400, 400, 400],
  '4.0': [500, 500, 500, 500, 500],
  '4.1': [500, 500, 500, 500, 500],
  '4.2.0': [500, 500, 404, 404, 500],
  '4.2': [401, 500, 404, 404, 500],
  '4.3': [401, 500, 404, 404, 500],
  '5.0': [401, 500, 404, 404, 500],
  '6.0': [401, 500, 404, 404, 500],
  '6.1': [401, 500, 404, 404, 500],
  '6.2': [401, 500, 404, 404, 401],
  '6.3': [401, 502, 404, 404, 401],
  '6.4': [401, 401, 400, 404, 403],
  '6.5': [401, 401, 400, 404, 403],
};

const TITLES: Readonly<Partial<Record<ReleaseName, readonly string[]>>> = {
  '4.2.0': ['External Problem', 'External Problem', 'Validation Problem', 'Validation Problem', 'External Problem'],
  '4.2': [
    'Session Code Authentication Problem',
    'External Problem',
    'Validation Problem',
    'Validation Problem',
    'External Problem',
  ],
  '6.3': [
    'Unauthorized Access',
    'External Service Error',
    'Validation Problem',
    'Validation Problem',
    'Session Code Authentication Problem',
  ],
  '6.4': [
    'Session Code Authentication Problem',
    'Authentication Failed',
    'Invalid Request',
    'Validation Problem',
    'Access Forbidden',
  ],
};

const LOST = '11111111-2222-3333-4444-555555555555';

/** The five failures, in the order of the table. */
async function failuresOf(release: ReleaseName, headers: Readonly<Record<string, string>> = {}): Promise<Answered[]> {
  const { sandbox, session } = await startJob(release);
  const bobs = await signIn(sandbox, BOB);
  const Credentials = { Username: ALICE.username, Password: 'wrong' };
  const file = (RelativeFilePath: string) => ({ SubmittedJobInfoId: 501, RelativeFilePath, SessionCode: session });
  return [
    await post(sandbox, PARTS, partsOf(LOST), headers),
    await post(sandbox, `${USERS}/AuthenticateUserPassword`, { Credentials }, headers),
    await post(sandbox, FILE, file('/123/a:b'), headers),
    await post(sandbox, PARTS, { ...partsOf(session), SubmittedJobInfoId: 502 }, headers),
    await post(sandbox, PARTS, partsOf(bobs), headers),
  ];
}

describe('failures', () => {
  it.each(RELEASE_NAMES)('of %s have its statuses and bodies', async (release) => {
    const failures = await failuresOf(release);
    expect(failures.map(({ status }) => status)).toEqual(STATUSES[release]);
    const { problem } = releaseOf(release);
    const titles = TITLES[release];
    for (const [index, { status, json, headers }] of failures.entries()) {
      expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
      if (problem === 'string') expect(json).toEqual(expect.any(String));
      else if (problem === 'title') expect(json).toMatchObject({ title: expect.any(String), status });
      else expect(json).toEqual({ title: titles?.[index] ?? expect.any(String), status, detail: expect.any(String) });
    }
    // The text is what tells a lost session wherever the status does not, and it repeats the code.
    const [lost] = failures;
    if (lost?.status !== 401) expect(lost?.text).toMatch(/session code .*(expired|not valid|not present)/i);
    if (titles?.[0] !== 'Unauthorized Access' && !['6.2', '6.3'].includes(release)) expect(lost?.text).toContain(LOST);
    for (const { text } of failures.slice(1)) expect(text).not.toMatch(/session code .*(expired|not valid)/i);
  });

  it('are as docs/rest.md has them', () => {
    const page = fs.readFileSync(`${import.meta.dirname}/../../../docs/rest.md`, 'utf8');
    const rows = [...page.matchAll(/^\| (V[\d.]+|from V[\d.]+)(?: to V([\d.]+)|, V[\d.]+)? \| \**(\d{3}).*$/gm)];
    expect(rows).toHaveLength(7);
    for (const [row, from = ''] of rows) {
      const first = from.replace(/^from /, '').slice(1);
      const name = RELEASE_NAMES.find(
        (release) => ({ '4.2.1': '4.2', '6.2.9': '6.3' })[first] === release || release === first,
      );
      const statuses = row
        .split('|')
        .slice(2, 7)
        .map((cell) => Number(/\d{3}/.exec(cell)?.[0]));
      expect([name, statuses]).toEqual([name, STATUSES[name ?? '2.0']]);
    }
  });

  it.each([
    ['en', /is not present/],
    ['de, en;q=0.8', /is not present/],
    ['cs-CZ,cs;q=0.9', /není přítomen/],
    ['de', /není přítomen/],
  ])('are in the language of Accept-Language: %s', async (language, text) => {
    for (const release of ['4.2.0', '5.0', '6.4'] as const) {
      const [lost] = await failuresOf(release, { 'accept-language': language });
      expect(JSON.stringify(lost?.json)).toMatch(text);
    }
  });

  it.each(['2.0', '4.0', '6.4'] as const)('of the model are those of ASP.NET: %s', async (release) => {
    const { sandbox, session } = await startJob(release);
    const wrong = [
      '',
      '{',
      '[]',
      '"x"',
      '{"a":01}',
      '\ufeff\ufeff{}',
      { ...partsOf(session), SubmittedJobInfoId: 1.5 },
    ];
    for (const body of [...wrong, { ...partsOf(session), TaskFileOffsets: 1 }, { SessionCode: {} }]) {
      const { status, json } = await post(sandbox, PARTS, body);
      expect([body, status]).toEqual([body, 400]);
      expect(Object.keys(json)).toEqual(['type', 'title', 'status', 'errors', 'traceId']);
    }
    expect(await post(sandbox, PARTS, '{}', { 'content-type': 'text/plain' })).toMatchObject({ status: 415, text: '' });
  });

  it.each([
    ['3.1', 400, 'text'],
    ['4.1', 500, 'title'],
    ['6.1', 500, 'detail'],
    ['6.3', 502, 'detail'],
  ] as const)('outside of the service are problems of their own, over %s', async (release, status, member) => {
    const { sandbox, session } = await startJob(release);
    sandbox.faults.add({ kind: 'fault', text: 'The SSH connection broke.', times: 1 });
    const { json, ...answer } = await post(sandbox, PARTS, partsOf(session));
    expect(answer).toMatchObject({ status });
    expect(member === 'text' ? json : json[member]).toBe('The SSH connection broke.');
    sandbox.faults.add({ kind: 'fault', operation: 'SignIn' });
    expect((await post(sandbox, `${USERS}/AuthenticateUserPassword`, '{}')).status).toBe(status);
    expect(sandbox.counters).toMatchObject({ signIns: 2, signInsRefused: 1, faults: 2 });
  });

  it('of fault rules are of JSON unless they say otherwise', async () => {
    const { sandbox, session } = await startJob('6.3');
    sandbox.faults.add({ kind: 'body', body: '[{', operation: 'DownloadPartsOfJobFilesFromCluster', times: 1 });
    const cut = await post(sandbox, PARTS, partsOf(session));
    expect(cut).toMatchObject({ status: 200, text: '[{' });
    expect(cut.headers.get('content-type')).toBe('application/json; charset=utf-8');
    sandbox.faults.add({ kind: 'body', body: '<html>', contentType: 'text/html', jobId: '501', times: 1 });
    expect(await list(sandbox, '501', session)).toMatchObject({ status: 200, text: '<html>' });
    const poisoned = partsOf(session, [9001, 3, 0], [9001, 2, 0]);
    sandbox.faults.add({
      kind: 'http',
      status: 502,
      body: '{"title":"Slurm Problem"}',
      taskId: '9001',
      file: 'stderr',
    });
    expect(await post(sandbox, PARTS, poisoned)).toMatchObject({ status: 502, json: { title: 'Slurm Problem' } });
    expect(await post(sandbox, PARTS, partsOf(session, [9001, 3, 0]))).toMatchObject({ status: 200 });
  });
});

describe('sessions', () => {
  it('are shared with SOAP, idle out, and are counted as its own', async () => {
    let nowMs = 0;
    const { sandbox, session } = await startJob('6.3', { clock: () => nowMs });
    expect(await signIn(sandbox)).toBe(session);
    nowMs += 14 * 60_000;
    expect(await list(sandbox, '501', session)).toMatchObject({ status: 200 });
    nowMs += 14 * 60_000;
    expect(await list(sandbox, '501', session)).toMatchObject({ status: 200 });
    nowMs += 15 * 60_000;
    expect(await list(sandbox, '501', session)).toMatchObject({ status: 401 });
    expect(sandbox.counters).toMatchObject({ signIns: 2, signInsRefused: 0, faults: 1 });
    expect(sandbox.counters.calls.ListChangedFilesForJob).toBe(3);
    expect(sandbox.calls.at(-1)).toMatchObject({ operation: 'ListChangedFilesForJob', version: 'REST', jobId: '501' });
    expect(JSON.stringify(sandbox.calls)).not.toContain(session);
  });

  const headerSignIn = { Username: ALICE.username, OpenIdAccessToken: ALICE.token };

  it.each([
    ['6.1', false],
    ['6.2', true],
    ['6.4', true],
  ] as const)('are none where the token is to be shown: %s', async (release, headers) => {
    const { sandbox } = await startJob(release, { habits: { signInAnswer: 'header' } });
    const { json } = await post(sandbox, `${USERS}/AuthenticateUserOpenId`, { Credentials: headerSignIn });
    expect(json === 'HEADER-AUTH-NEEDED').toBe(headers);
    const bearer = { authorization: `Bearer ${ALICE.token}` };
    const query = { submittedJobInfoId: '501' };
    // An earlier one validates the session code, which is not there.
    expect((await get(sandbox, LISTING, query, bearer)).status).toBe(headers ? 200 : 404);
    expect((await get(sandbox, LISTING, query, { authorization: 'Bearer other' })).status).toBe(headers ? 401 : 404);
  });

  it.each([
    ['6.1', 'alice:correct horse', 404],
    ['6.2', 'alice:correct horse', 200],
    ['6.3', 'alice:wrong', 502],
    ['6.4', 'alice:wrong', 401],
    ['6.4', 'alice:correct horse', 200],
  ] as const)('are not needed with an API key: %s, %s', async (release, key, status) => {
    const { sandbox } = await startJob(release);
    const { status: found } = await get(sandbox, LISTING, { submittedJobInfoId: '501' }, { 'X-API-Key': key });
    expect(found).toBe(status);
  });

  it.each([
    ['AuthenticateUserOpenId', '2.0'],
    ['AuthenticateUserOpenId', '6.4'],
    ['AuthenticateLexisToken', '4.2'],
  ] as const)('come by %s over %s', async (operation, release) => {
    const { sandbox, session } = await startJob(release);
    const path = `${USERS}/${operation}`;
    const credentials = { username: ALICE.username, openIdAccessToken: ALICE.token };
    expect(await post(sandbox, path, { credentials })).toMatchObject({ status: 200, json: session });
    const other = { ...credentials, openIdAccessToken: 'other' };
    expect((await post(sandbox, path, { credentials: other })).status).toBe(wordingOf('wrongSecret', release).status);
    expect(sandbox.counters).toMatchObject({ signIns: 3, signInsRefused: 1 });
  });

  it('do not come from a cloud platform', async () => {
    const { sandbox } = await startJob('6.3');
    const signedIn = await post(sandbox, `${USERS}/AuthenticateUserOpenStack`, {
      Credentials: headerSignIn,
      ProjectId: 1,
    });
    expect(signedIn).toMatchObject({ status: 200, json: { ApplicationCredentialsId: expect.any(String) } });
  });
});

describe('load', () => {
  it.each([
    ['4.3', 100],
    ['5.0', 1000],
  ] as const)('of %s is limited to its requests an hour, if that is wanted', async (release, perHour) => {
    const { sandbox } = await startJob(release, { habits: { requestsPerHour: 'release' } });
    const url = `${sandbox.restUrl}/nothing`;
    // The sign-in was the first one.
    for (let count = 1; count < perHour; count++) expect((await fetch(url)).status).toBe(404);
    const refused = await fetch(url);
    expect([refused.status, refused.headers.get('content-type')]).toEqual([429, 'text/plain; charset=utf-8']);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await fetch(`${sandbox.fileTransferUrl}?wsdl`)).status).toBe(200);
  });

  it.each([
    ['6.1', 200],
    ['6.2', 500],
    ['6.4', 502],
    ['6.5', 200],
  ] as const)('of parallel calls breaks %s as it does', async (release, status) => {
    const { sandbox, session } = await startJob(release, { habits: { parallelUnsafe: 'release' } });
    sandbox.faults.add({ kind: 'delay', ms: 400, times: 1 });
    const first = list(sandbox, '501', session);
    while (sandbox.counters.maxParallelCalls === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    expect((await post(sandbox, PARTS, partsOf(session))).status).toBe(status);
    expect((await first).status).toBe(200);
  });
});
