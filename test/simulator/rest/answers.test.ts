/** What each release answers (docs/rest.md 3): parts, listings, names, whole files, jobs. */
import { mkdir, symlink, utimes } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { type ReleaseName, releaseOf } from '../../../simulator/rest/releases.ts';
import { callJobs, jobAnd } from '../support.ts';
import { FILE, get, LOG, list, PARTS, PROGRESS, partsOf, post, STDERR, STDOUT, startJob, write } from './support.ts';

describe('parts', () => {
  it('come in the order of the tasks of the job, without those that are not there', async () => {
    const { sandbox, session, task, second } = await startJob('6.3');
    for (const path of [task.files.stdout, task.files.log, second.files.stderr]) await write(path, 'text');
    const asked = partsOf(
      session,
      [9002, STDERR, 1],
      [9002, STDOUT, 0],
      [9001, LOG, 99],
      [77, LOG, 0],
      [9001, STDOUT, 2],
    );
    const part = (
      Content: string,
      RelativePath: string,
      Offset: number,
      FileType: number,
      SubmittedTaskInfoId: number,
    ) => ({
      Content,
      RelativePath,
      Offset,
      FileType,
      SubmittedTaskInfoId,
    });
    const { json } = await post(sandbox, PARTS, asked);
    expect(json).toEqual([
      part('', 'task.log', 99, LOG, 9001),
      part('xt', 'stdout.txt', 2, STDOUT, 9001),
      part('ext', 'stderr.txt', 1, STDERR, 9002),
    ]);
    expect(Object.keys(json[0])).toEqual(['Content', 'RelativePath', 'Offset', 'FileType', 'SubmittedTaskInfoId']);
    expect(sandbox.calls.at(-1)?.entries).toContainEqual({
      submittedTaskInfoId: '9002',
      fileType: 'StandardErrorFile',
      offset: '1',
    });
  });

  it('are exact in numbers of 64 bits, and take texts for numbers', async () => {
    const id = '9223372036854775807';
    const { sandbox, session, task } = await startJob('6.3', {
      job: { jobId: id, tasks: [{ taskId: id, specificationId: '1', liveFiles: { stdout: 'logs/out' } }, {}] },
    });
    await mkdir(`${task.directory}/logs`);
    await write(task.files.stdout, 'x');
    const entry = (quote: string) =>
      `{"SubmittedJobInfoId":${quote}${id}${quote},"TaskFileOffsets":[{"SubmittedTaskInfoId":${quote}${id}${quote},` +
      `"FileType":${quote}3${quote},"Offset":0,"Other":[1e3,"a\\"1"]}],"SessionCode":"${session}"}`;
    for (const quote of ['', '"']) {
      const { text } = await post(sandbox, PARTS, entry(quote));
      expect(text).toBe(
        `[{"Content":"x","RelativePath":"logs/out","Offset":0,"FileType":3,"SubmittedTaskInfoId":${id}}]`,
      );
    }
    expect(sandbox.calls.at(-1)?.jobId).toBe(id);
    expect(
      (await get(sandbox, 'JobManagement/CurrentInfoForJob', { SubmittedJobInfoId: id, SessionCode: session })).text,
    )
      // The first of its members.
      .toMatch(new RegExp(`^\\{"Id":${id},.*"Tasks":\\[\\{"Id":${id},`));
  });

  it.each([
    ['null', { emptyContent: 'none' }, { Content: null }],
    ['without an offset', { offsetEcho: 'nil' }, { Offset: null }],
    ['from 0', { offsetEcho: 'zero' }, { Offset: 0 }],
    ['without a path', { relativePath: 'none' }, { RelativePath: null }],
    ['with the path of the job', { relativePath: 'job' }, { RelativePath: '123/stdout.txt' }],
  ] as const)('may be %s', async (_, habits, part) => {
    const { sandbox, session, task } = await startJob('6.3', { habits: { nilEntries: true, ...habits } });
    await write(task.files.stdout, 'x');
    expect((await post(sandbox, PARTS, partsOf(session, [9001, STDOUT, 5]))).json).toMatchObject([null, part]);
    expect((await post(sandbox, PARTS, partsOf(session, [9001, STDERR, 5]))).json).toEqual([null]);
  });

  it.each([
    ['6.3', 'blocks'],
    ['6.4', 'stream'],
  ] as const)('of %s are decoded in %s', async (release, decoder) => {
    const { sandbox, session, task } = await startJob(release);
    const bytes = Buffer.from(`${'a'.repeat(1023)}é\u0000\u001b"\\<b>\r\n😀`);
    await write(task.files.stdout, bytes);
    await write(task.files.log, Buffer.from('\ufeffmark'));
    await write(task.files.progress, Buffer.from([0xff, 0xfe, 0x41, 0x00]));
    await write(task.files.stderr, Buffer.from('cut é').subarray(0, -1));
    const asked = partsOf(session, [9001, STDOUT, 0], [9001, LOG, 0], [9001, PROGRESS, 0], [9001, STDERR, 0]);
    const { json, text } = await post(sandbox, PARTS, asked);
    const found = (json as { Content: string }[]).map(({ Content }) => Content);
    const inBlocks = [
      `${'a'.repeat(1023)}\ufffd\ufffd\u0000\u001b"\\<b>\r\n😀`,
      '\ufeffmark',
      '\ufffd\ufffdA\u0000',
      'cut \ufffd',
    ];
    expect(found).toEqual(decoder === 'blocks' ? inBlocks : [bytes.toString(), 'mark', 'A', 'cut \ufffd']);
    expect(text).toContain('\\uD83D\\uDE00');
    expect(text).toContain('<b>\\r\\n');
    sandbox.setHabits({ escapesAll: true });
    const escaped = await post(sandbox, PARTS, asked);
    expect(escaped.json).toEqual(json);
    expect(escaped.text).toContain('\\u003Cb\\u003E\\r\\n\\uD83D\\uDE00');
  });

  it('have members with a small letter where the server writes them so', async () => {
    const { sandbox, session, task } = await startJob('2.0', { habits: { memberCase: 'camel' } });
    await write(task.files.stdout, 'x');
    const { json } = await post(sandbox, PARTS, partsOf(session, [9001, STDOUT, 0]));
    expect(Object.keys(json[0])).toEqual(['content', 'relativePath', 'offset', 'fileType', 'submittedTaskInfoId']);
  });
});

/** Listed names of `a.txt` and `sub/deep/b.bin`, and what these have to be asked for by. */
const NAMES: readonly (readonly [ReleaseName, readonly string[], readonly string[]])[] = [
  ['2.0', ['123///a.txt', '123///sub/deep/b.bin'], ['/123///a.txt', '/123///sub/deep/b.bin']],
  ['2.1', ['123///a.txt', '123///sub/deep/b.bin'], ['/123///a.txt', '/123///sub/deep/b.bin']],
  ['2.2', ['/123/a.txt', '/123/sub/deep/b.bin'], ['/123/a.txt', '/123/sub/deep/b.bin']],
  ['4.0', ['/123/a.txt', '/123/sub/deep/b.bin'], ['/501/123/a.txt', '/501/123/sub/deep/b.bin']],
  ['4.1', ['/123/a.txt', '/123/sub/deep/b.bin'], ['/123/a.txt', '/123/sub/deep/b.bin']],
  ['4.2', ['/123/a.txt', '/123/sub/deep/b.bin'], ['/123/a.txt', '/123/sub/deep/b.bin']],
  ['4.3', ['/123/a.txt', '/123/sub/deep/b.bin'], ['/501/123/a.txt', '/501/123/sub/deep/b.bin']],
  ['6.1', ['/123/a.txt', '/123/sub/deep/b.bin'], ['/501/123/a.txt', '/501/123/sub/deep/b.bin']],
  ['6.2', ['/123/a.txt', '/123/sub/deep/b.bin'], ['/123/a.txt', '/123/sub/deep/b.bin']],
  ['6.4', ['/123/a.txt', '/123/sub/deep/b.bin'], ['/123/a.txt', '/123/sub/deep/b.bin']],
];

async function startFiles(release: ReleaseName, options: Parameters<typeof startJob>[1] = {}) {
  const place = await startJob(release, options);
  await mkdir(`${place.task.directory}/sub/deep`, { recursive: true });
  await write(`${place.task.directory}/a.txt`, 'a');
  await write(`${place.task.directory}/sub/deep/b.bin`, Buffer.of(0, 255, 254, 1));
  const download = (RelativeFilePath: string) =>
    post(place.sandbox, FILE, { SubmittedJobInfoId: 501, RelativeFilePath, SessionCode: place.session });
  return { ...place, download };
}

describe('the listing and whole files', () => {
  it.each(NAMES)('of %s have its names', async (release, listed, asked) => {
    const { sandbox, session, download } = await startFiles(release);
    const { json } = await list(sandbox, '501', session);
    const names = (json as (string | { FileName: string })[]).map((file) =>
      typeof file === 'string' ? file : file.FileName,
    );
    expect(names.sort()).toEqual(listed);
    const [a, b] = asked;
    expect(await download(a ?? '')).toMatchObject({ status: 200, text: '"YQ=="' });
    expect(await download(b ?? '')).toMatchObject({ status: 200, text: '"AP/+AQ=="' });
    // Not as listed where that is not what it takes, and never with two slashes before it.
    for (const name of [...listed, ...asked.map((name) => `/${name}`)]) {
      if (!asked.includes(name)) expect((await download(name)).status).not.toBe(200);
    }
  });

  it.each(['4.3', '6.1'] as const)(
    'of %s are asked for as listed where specifications have the ids of tasks',
    async (release) => {
      const { download } = await startFiles(release, {
        job: { tasks: [{ taskId: '123', specificationId: '123' }, {}] },
      });
      expect(await download('/123/a.txt')).toMatchObject({ status: 200 });
      expect(await download('/501/123/a.txt')).toMatchObject({ status: 200 });
    },
  );

  it.each([
    ['2.0', '/123///a.txt', '123///a.txt'],
    ['4.0', '/501/123/a.txt', '/123/a.txt'],
    ['6.4', '/123/a.txt', '/123/a.txt'],
  ] as const)('of %s meet fault rules by the name that is listed: %s', async (release, asked, file) => {
    const { sandbox, download } = await startFiles(release);
    sandbox.faults.add({ kind: 'staleSize', bytes: 0, file });
    expect(await download(asked)).toMatchObject({ text: '""' });
  });

  it('have their plus escaped where the server does that', async () => {
    const { sandbox, download } = await startFiles('6.4', { habits: { escapesBase64: true } });
    const { text, json } = await download('/123/sub/deep/b.bin');
    expect([text, json]).toEqual(['"AP/\\u002BAQ=="', 'AP/+AQ==']);
    expect(sandbox.calls.at(-1)?.path).toBe('/123/sub/deep/b.bin');
  });

  it.each([
    ['2.0', 'names'],
    ['2.0', 'dates'],
    ['6.4', 'dates'],
  ] as const)('of %s are a list of %s', async (release, form) => {
    const { sandbox, session, task } = await startFiles(release, { habits: { releaseHabits: { listing: form } } });
    const time = new Date('2031-05-06T07:08:09.750Z');
    for (const path of ['a.txt', 'sub/deep/b.bin']) await utimes(`${task.directory}/${path}`, time, time);
    const { json } = await list(sandbox, '501', session);
    const dated = { FileName: expect.any(String), LastModifiedDate: '2031-05-06T07:08:09Z' };
    expect(json).toEqual(Array(2).fill(form === 'names' ? expect.any(String) : dated));
  });

  it.each([
    ['2.1', '123/sx//deep/q.txt', '/123/sx//deep/q.txt', 200],
    ['2.2', '/123/deep/q.txt', '/123/deep/q.txt', 400],
    ['2.2', '/123/deep/q.txt', '/123/sx/deep/q.txt', 200],
    ['6.4', '/123/sx/deep/q.txt', '/123/sx/deep/q.txt', 200],
  ] as const)(
    'of %s lose no directory but that of the task: %s, asked as %s',
    async (release, listed, asked, status) => {
      const tasks = [{ taskId: '123', specificationId: '123', subdirectory: 'sx' }, {}];
      const { sandbox, session, task } = await startJob(release, { job: { tasks } });
      await mkdir(`${task.directory}/deep`);
      await write(`${task.directory}/deep/q.txt`, 'q');
      expect((await list(sandbox, '501', session)).json).toMatchObject([{ FileName: listed }]);
      const body = { SubmittedJobInfoId: 501, RelativeFilePath: asked, SessionCode: session };
      expect((await post(sandbox, FILE, body)).status).toBe(status);
    },
  );

  it('are nothing while the job is not submitted', async () => {
    for (const release of ['2.0', '4.1', '6.4'] as const) {
      const { sandbox, session, job } = await startJob(release, { job: { held: true } });
      const nothing = { status: 204, text: '' };
      expect(await list(sandbox, '501', session)).toMatchObject(nothing);
      const body = { SubmittedJobInfoId: 501, RelativeFilePath: '/123/a', SessionCode: session };
      expect(await post(sandbox, FILE, body)).toMatchObject(nothing);
      await job.submit();
      expect(await list(sandbox, '501', session)).toMatchObject({ status: 200, text: '[]' });
    }
  });

  it.each([
    ['2.0', 'a'.repeat(250), 400, true],
    ['2.1', 'a'.repeat(45), 400, true],
    ['2.1', 'a'.repeat(46), 400, false],
    ['4.2', 'a'.repeat(46), 400, false],
    ['4.3', 'a'.repeat(245), 400, true],
    ['4.3', 'a'.repeat(251), 400, false],
    ['5.0', 'a,b', 404, false],
    ['6.4', 'a,b', 400, false],
    ['6.4', 'é', 400, false],
    ['6.4', 'a b~c-d_e\\f.G7', 400, true],
  ] as const)('of %s refuse names for ever: %s', async (release, name, status, allowed) => {
    const { task, download } = await startFiles(release, {
      job: { tasks: [{ taskId: '123', specificationId: '123' }, {}] },
    });
    await write(`${task.directory}/${name}`, '');
    const answer = await download(`/123/${name}`);
    if (allowed) expect(answer).toMatchObject({ status: 200, text: '""' });
    else expect(answer).toMatchObject({ status });
  });

  it.each([
    ['3.1', 400],
    ['4.2', 500],
    ['5.0', 400],
    ['6.4', 400],
  ] as const)('of %s say %i for what is not there', async (release, status) => {
    const { download } = await startFiles(release);
    expect(await download('/123/none')).toMatchObject({ status });
    expect(await download('/123/../../../../etc/hostname')).toMatchObject({ status });
  });

  it('show links to parents twice, leave out old files, and name absolute paths where scratch is a link', async () => {
    const { sandbox, session, task, second } = await startFiles('6.3', {
      habits: { extraFiles: { '/9/extra': 'text' } },
    });
    await symlink(`${task.directory}/a.txt`, `${second.directory}/parent.txt`);
    await utimes(`${task.directory}/sub/deep/b.bin`, 1, 1);
    const names = async () =>
      ((await list(sandbox, '501', session)).json as { FileName: string }[]).map(({ FileName }) => FileName).sort();
    expect(await names()).toEqual(['/123/a.txt', '/124/parent.txt', '/9/extra']);
    sandbox.setHabits({ absolutePaths: true });
    expect(await names()).toContain(`${task.directory}/a.txt`);
  });

  it('hand out files that are listed besides the real ones', async () => {
    for (const [release, listed, asked] of [
      ['2.0', '9//extra', '/9//extra'],
      ['4.0', '/9/extra', '/501/9/extra'],
      ['6.4', '/9/extra', '/9/extra'],
    ] as const) {
      const { download } = await startFiles(release, { habits: { extraFiles: { [listed]: 'text' } } });
      expect(await download(asked)).toMatchObject({ status: 200, text: '"dGV4dA=="' });
    }
  });
});

describe('clusters that the service cannot read', () => {
  it('refuse everything with a share', async () => {
    const { sandbox, session, download } = await startFiles('6.3', { habits: { fileAccess: 'network-share' } });
    for (const answer of [
      await post(sandbox, PARTS, partsOf(session, [9001, STDOUT, 0])),
      await list(sandbox, '501', session),
      await download('/123/a.txt'),
    ]) {
      expect(answer).toMatchObject({ status: 502, json: { title: 'External Service Error' } });
    }
    const query = { SubmittedJobInfoId: '501', SessionCode: session };
    expect((await get(sandbox, 'JobManagement/CurrentInfoForJob', query)).status).toBe(200);
  });

  it('refuse parts with FirecREST, and hand out text for bytes', async () => {
    const { sandbox, session, download } = await startFiles('6.4', { habits: { fileAccess: 'firecrest' } });
    expect((await post(sandbox, PARTS, partsOf(session, [9001, STDOUT, 0]))).status).toBe(502);
    expect((await list(sandbox, '501', session)).json).toHaveLength(2);
    const { json } = await download('/123/sub/deep/b.bin');
    expect(Buffer.from(json, 'base64').toString()).toBe('\u0000\ufffd\ufffd\u0001');
  });
});

describe('jobs', () => {
  it('are reported in numbers, with their tasks', async () => {
    const { sandbox, session, job, task } = await startJob('6.3');
    const current = async () =>
      (await get(sandbox, 'JobManagement/CurrentInfoForJob', { SubmittedJobInfoId: '501', SessionCode: session })).json;
    // Neither has a zone; that of the cluster has no more than seconds.
    const reported = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{7})?$/);
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/);
    expect(await current()).toMatchObject({
      Id: 501,
      Name: 'job 501',
      State: 8,
      CreationTime: reported,
      SubmitTime: reported,
      StartTime: time,
      EndTime: null,
      Tasks: [{ Id: 9001, Name: 'task 1', State: 8, StartTime: time, EndTime: null, ErrorMessage: null }, { Id: 9002 }],
    });
    await task.run.end('Failed', 'too hot');
    expect((await current()).Tasks[0]).toMatchObject({ State: 32, EndTime: time, ErrorMessage: 'too hot' });
    for (const [state, number] of [
      ['WaitingForServiceAccount', 128],
      ['Deleted', 256],
      ['512', 512],
    ] as const) {
      job.reportedState = state;
      expect((await current()).State).toBe(number);
    }
  });

  it.each(['2.0', '4.0', '4.1', '6.4'] as const)('of one user alone are listed by %s, job by job', async (release) => {
    const { sandbox, session } = await startJob(release);
    await sandbox.submitJob({ jobId: '502', tasks: [] });
    await sandbox.submitJob({ jobId: '503', owner: 'bob', tasks: [] });
    const path = 'JobManagement/ListJobsForCurrentUser';
    for (const answer of [
      ...(releaseOf(release).readAddresses === 'second' ? [] : [await post(sandbox, path, { SessionCode: session })]),
      ...(releaseOf(release).readAddresses === 'first' ? [] : [await get(sandbox, path, { sessionCode: session })]),
    ]) {
      expect(answer.json).toMatchObject([{ Id: 501 }, { Id: 502 }]);
    }
  });

  it('are the same over SOAP', async () => {
    let nowMs = 0;
    const { sandbox, session, job } = await startJob('6.3', { clock: () => nowMs, habits: { stateSeconds: 30 } });
    const query = { SubmittedJobInfoId: '501', SessionCode: session };
    const overRest = async () => (await get(sandbox, 'JobManagement/CurrentInfoForJob', query)).json.State;
    const overSoap = async () => {
      const { body } = await callJobs(sandbox, 'GetCurrentInfoForJob', jobAnd('501', session));
      return /<state>(\w+)<\/state>/.exec(body)?.[1];
    };
    expect([await overRest(), await overSoap()]).toEqual([8, 'Running']);
    await job.end('Canceled');
    expect([await overSoap(), await overRest()]).toEqual(['Running', 8]);
    nowMs += 30_000;
    expect([await overSoap(), await overRest()]).toEqual(['Canceled', 64]);
    expect(sandbox.calls.map(({ version }) => version)).toEqual(['REST', '1.1', '1.1', 'REST', '1.1', 'REST']);
    expect(sandbox.counters.calls.GetCurrentInfoForJob).toBe(6);
  });
});
