/** Which verbs and names each release has (docs/rest.md 1.2), and that it refuses the others. */
import { describe, expect, it } from 'vitest';
import { RELEASE_NAMES, type ReleaseName, releaseNamed } from '../../../simulator/rest/releases.ts';
import { get, LISTING, partsOf, post, startJob, USERS } from './support.ts';

const FIRST_KEYS = ['POST FileTransfer/GetFileTransferMethod', 'POST FileTransfer/EndFileTransfer'];
const SECOND_KEYS = ['POST FileTransfer/RequestFileTransfer', 'POST FileTransfer/CloseFileTransfer'];
const FIRST_READS = [
  'POST FileTransfer/ListChangedFilesForJob',
  'POST JobManagement/GetCurrentInfoForJob',
  'POST JobManagement/ListJobsForCurrentUser',
];
const SECOND_READS = [
  'GET FileTransfer/ListChangedFilesForJob',
  'GET JobManagement/CurrentInfoForJob',
  'GET JobManagement/ListJobsForCurrentUser',
];
const ALWAYS = ['POST FileTransfer/DownloadPartsOfJobFilesFromCluster', 'POST FileTransfer/DownloadFileFromCluster'];
const ALL = [...ALWAYS, ...FIRST_KEYS, ...SECOND_KEYS, ...FIRST_READS, ...SECOND_READS];

const HAS: Readonly<Record<ReleaseName, readonly string[]>> = {
  '2.0': [...FIRST_KEYS, ...FIRST_READS],
  '2.1': [...FIRST_KEYS, ...FIRST_READS],
  '2.2': [...FIRST_KEYS, ...FIRST_READS],
  '3.0': [...FIRST_KEYS, ...FIRST_READS],
  '3.1': [...FIRST_KEYS, ...FIRST_READS],
  '4.0': [...SECOND_KEYS, ...FIRST_READS, ...SECOND_READS],
  '4.1': [...FIRST_KEYS, ...SECOND_KEYS, ...FIRST_READS, ...SECOND_READS],
  '4.2.0': [...SECOND_KEYS, ...SECOND_READS],
  '4.2': [...SECOND_KEYS, ...SECOND_READS],
  '4.3': [...SECOND_KEYS, ...SECOND_READS],
  '5.0': [...SECOND_KEYS, ...SECOND_READS],
  '6.0': [...SECOND_KEYS, ...SECOND_READS],
  '6.1': [...SECOND_KEYS, ...SECOND_READS],
  '6.2': [...SECOND_KEYS, ...SECOND_READS],
  '6.3': [...SECOND_KEYS, ...SECOND_READS],
  '6.4': [...SECOND_KEYS, ...SECOND_READS],
  '6.5': [...SECOND_KEYS, ...SECOND_READS],
};

describe('addresses', () => {
  it.each(RELEASE_NAMES)('of %s are there, and no others', async (release) => {
    const { sandbox, session } = await startJob(release);
    const found: string[] = [];
    for (const address of ALL) {
      const [verb, path = ''] = address.split(' ');
      const job = { SubmittedJobInfoId: '501', SessionCode: session };
      const { status, text } = verb === 'GET' ? await get(sandbox, path, job) : await post(sandbox, path, '{}');
      // A failure of the operation itself has a problem.
      const isMissing = text.startsWith('Status Code: 40') || (status === 500 && text === '');
      if (!isMissing) found.push(address);
    }
    expect(found.sort()).toEqual([...ALWAYS, ...HAS[release]].sort());
  });

  it('are read in any case, as are members', async () => {
    const { sandbox, session } = await startJob('6.3');
    const { SubmittedJobInfoId: submittedjobinfoid, TaskFileOffsets: TASKFILEOFFSETS } = partsOf(session);
    const body = { submittedjobinfoid, TASKFILEOFFSETS, sessionCode: session };
    expect(await post(sandbox, 'filetransfer/DOWNLOADPARTSOFJOBFILESFROMCLUSTER', body)).toMatchObject({ json: [] });
    const query = { SUBMITTEDJOBINFOID: '501', sessioncode: session };
    expect(await get(sandbox, 'filetransfer/listchangedfilesforjob', query)).toMatchObject({ status: 200 });
  });

  it.each([
    ['4.1', 404],
    ['4.2.0', 200],
  ] as const)('of the external token are there from V4.2.0 on: %s', async (release, status) => {
    const { sandbox } = await startJob(release);
    const Credentials = { Username: 'alice', OpenIdAccessToken: 'alices-token' };
    expect(await post(sandbox, `${USERS}/AuthenticateLexisToken`, { Credentials })).toMatchObject({ status });
  });

  it.each([
    ['5.0', 404, 405],
    ['6.3', 500, 500],
  ] as const)('that are unknown, or have another verb: %s', async (release, unknown, otherVerb) => {
    const { sandbox } = await startJob(release);
    for (const [path, status] of [
      ['FileTransfer/NotThere', unknown],
      ['FileTransfer/RequestFileTransfer', otherVerb],
    ] as const) {
      const answer = await get(sandbox, path, {});
      expect(answer.status).toBe(status);
      if (status === 500) expect([answer.text, answer.headers.get('content-type')]).toEqual(['', null]);
      else expect([answer.text.length > 500, answer.headers.get('content-type')]).toEqual([true, 'text/plain']);
    }
  });

  it('of the health need no session, from V6.0 on', async () => {
    const { sandbox } = await startJob('6.0');
    const { status, json } = await get(sandbox, 'Health', {});
    const members = ['IsHealthy', 'Timestamp', 'Version', 'InstanceIdentifier', 'Component'];
    expect([status, Object.keys(json)]).toEqual([200, members]);
    sandbox.setHabits({ release: '5.0' });
    expect((await get(sandbox, 'Health', {})).status).toBe(404);
  });

  it('lie where the habit says', async () => {
    const { sandbox } = await startJob('6.3', { habits: { restPath: '/api/v1' } });
    expect(sandbox.restUrl).toBe(`${sandbox.baseUrl}/api/v1`);
    expect((await fetch(`${sandbox.baseUrl}/heappe/FileTransfer/RequestFileTransfer`)).status).toBe(404);
  });
});

describe('a sandbox', () => {
  it('becomes another release while it runs, as in an upgrade', async () => {
    const { sandbox, session } = await startJob('3.1');
    const job = { SubmittedJobInfoId: '501', SessionCode: session };
    const statuses = async () => [
      (await post(sandbox, LISTING, job)).status,
      (await get(sandbox, LISTING, job)).status,
    ];
    expect(await statuses()).toEqual([200, 405]);
    sandbox.setHabits({ release: '4.0' });
    expect(await statuses()).toEqual([200, 200]);
    sandbox.setHabits({ release: '6.4' });
    expect(await statuses()).toEqual([500, 200]);
    sandbox.setHabits({ releaseHabits: { readAddresses: 'first' } });
    expect(await statuses()).toEqual([200, 500]);
  });

  it.each([{ release: '7.0' }, { release: 'toString' }, { releaseHabits: { decoder: 'blocks', colour: 'red' } }])(
    'is no release that is not known: %j',
    async (habits) => {
      const { sandbox } = await startJob('6.3');
      const before = { ...sandbox.habits };
      expect(() => sandbox.setHabits(habits as never)).toThrow(expect.objectContaining({ code: 'usage' }));
      expect(sandbox.habits).toEqual(before);
    },
  );
});

describe('the release of a version', () => {
  it.each([
    ['2.0', '2.0'],
    ['2.0.3', '2.0'],
    ['3.0', '3.0'],
    ['4.2.0', '4.2.0'],
    ['4.2', '4.2'],
    ['4.2.7', '4.2'],
    ['5.1', '5.0'],
    ['6.2.0', '6.2'],
    ['6.2.8', '6.2'],
    ['6.2.9', '6.3'],
    ['6.4.0', '6.4'],
    ['6.4.1', '6.5'],
    ['6.5', '6.5'],
  ])('%s is %s', (version, release) => {
    expect(releaseNamed(version)).toBe(release);
  });

  it.each(['1.9', '7.0', '6.6', '', 'six', '6', '6.3.x', '__proto__'])('%j is none', (version) => {
    expect(() => releaseNamed(version)).toThrow(expect.objectContaining({ code: 'usage' }));
  });
});
