/** What was seen of the files of real clusters: jobs that are gone, pipes, links, and files that are large (docs/rest.md 3, 5). */
import { execFileSync } from 'node:child_process';
import { mkdir, rm, symlink, truncate, utimes, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import type { ReleaseName } from '../../../simulator/rest/releases.ts';
import { ALICE, BOB, until } from '../support.ts';
import { FILE, list, PARTS, partsOf, post, STDERR, STDOUT, signIn, startJob, write } from './support.ts';

const SAME_IDS = { tasks: [{ taskId: '123', specificationId: '123' }, {}] };

async function startFiles(release: ReleaseName, options: Parameters<typeof startJob>[1] = {}) {
  const place = await startJob(release, { job: SAME_IDS, ...options });
  const { sandbox, session } = place;
  const download = (name: string, signal?: AbortSignal) =>
    fetch(`${sandbox.restUrl}/${FILE}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ SubmittedJobInfoId: 501, RelativeFilePath: name, SessionCode: session }),
      signal: signal ?? null,
    });
  const parts = async (...entries: Parameters<typeof partsOf>[1][]) =>
    post(sandbox, PARTS, partsOf(session, ...entries));
  const names = async () =>
    ((await list(sandbox, '501', session)).json as { FileName: string }[]).map(({ FileName }) => FileName).sort();
  return { ...place, download, parts, names };
}

describe('a job that was deleted', () => {
  const states = async (release: ReleaseName) => {
    const { sandbox, session, job, task, download, parts } = await startFiles(release);
    await write(task.files.stdout, 'all of it');
    await write(task.files.log, 'log');
    await job.end('Finished');
    await sandbox.deleteJob('501');
    const reported = job.reportedState ?? job.state;
    const listed = await list(sandbox, '501', session);
    const { json } = await parts([123, STDOUT, 0], [123, STDERR, 0]);
    return [reported, listed.status, json, (await download('/123/task.log')).status];
  };

  it.each([
    ['3.1', ['Finished', 400, [], 400]],
    ['4.3', ['Finished', 500, [], 500]],
    ['5.0', ['Deleted', 500, [], 400]],
  ] as const)('is gone from %s', async (release, expected) => {
    expect(await states(release)).toEqual(expected);
  });

  it('is its archive from V6.0 on: stdout and stderr', async () => {
    const content = { Content: 'all of it', FileType: STDOUT };
    expect(await states('6.3')).toEqual(['Deleted', 200, [expect.objectContaining(content)], 400]);
  });

  it('is as it was when a deletion of it was refused', async () => {
    const { sandbox, job, task, parts, names } = await startFiles('6.3');
    await write(task.files.stdout, 'begun');
    await sandbox.archiveJob('501');
    expect(await names()).toEqual(['/123/stdout.txt']);
    await write(task.files.stdout, 'begun and ended');
    await write(task.files.stderr, 'after the archive');
    await job.end('Finished');
    await sandbox.deleteJob('501');
    expect((await parts([123, STDOUT, 0])).json).toMatchObject([{ Content: 'begun' }]);
  });
});

describe('a named pipe', () => {
  it('is listed, and its download stops the service for that user until a program writes into it', async () => {
    const { sandbox, task, download, parts, names } = await startFiles('6.3');
    execFileSync('mkfifo', [`${task.directory}/pipe`]);
    expect(await names()).toEqual(['/123/pipe']);
    const gone = new AbortController();
    const hanging = download('/123/pipe', gone.signal).catch((error: Error) => error.name);
    await until(() => sandbox.calls.at(-1)?.path === '/123/pipe');
    let isAnswered = false;
    const next = Promise.all([parts([123, STDOUT, 0]), signIn(sandbox, ALICE)]).then(() => {
      isAnswered = true;
    });
    // Another user is served meanwhile; and a client that has gone frees nobody.
    const bobs = await signIn(sandbox, BOB);
    gone.abort();
    expect(await hanging).toBe('AbortError');
    expect((await list(sandbox, '501', bobs)).status).toBe(401);
    expect(isAnswered).toBe(false);
    await writeFile(`${task.directory}/pipe`, 'written');
    await next;
    expect((await parts([123, STDOUT, 0])).status).toBe(200);
  });

  it('hands out what is written into it', async () => {
    const { sandbox, task, download } = await startFiles('6.3');
    execFileSync('mkfifo', [`${task.directory}/pipe`]);
    const hanging = download('/123/pipe');
    await until(() => sandbox.calls.at(-1)?.path === '/123/pipe');
    await writeFile(`${task.directory}/pipe`, 'written');
    expect(await (await hanging).json()).toBe(Buffer.from('written').toString('base64'));
  });

  it('hangs no longer when the service goes away', async () => {
    const { sandbox, task, download } = await startFiles('6.3');
    execFileSync('mkfifo', [`${task.directory}/pipe`]);
    const hanging = download('/123/pipe').catch((error: Error) => error.name);
    await until(() => sandbox.calls.at(-1)?.path === '/123/pipe');
    await sandbox.stopListening();
    expect(await hanging).toBe('TypeError');
  });
});

describe('the listing', () => {
  it('shows links wherever they lead, which are not entered', async () => {
    const { task, names, download } = await startFiles('6.3');
    await mkdir(`${task.directory}/sub`);
    await write(`${task.directory}/sub/file`, 'x');
    await symlink('nowhere', `${task.directory}/dangling`);
    await symlink('sub', `${task.directory}/up`);
    expect(await names()).toEqual(['/123/dangling', '/123/sub/file', '/123/up']);
    for (const [name, words] of [
      ['/123/dangling', 'No such file'],
      ['/123/up', 'Failure'],
    ] as const) {
      const answer = await download(name);
      expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining(words)]);
    }
  });

  it('leaves out what was written within the second of the submission, where that is wanted', async () => {
    const { sandbox, job, task, names } = await startFiles('6.3');
    await write(`${task.directory}/file`, 'x');
    const submittedMs = Number((job.submittedAtNs ?? 0n) / 1_000_000n);
    const touch = (ms: number) => utimes(`${task.directory}/file`, new Date(ms), new Date(ms));
    const endOfSecond = submittedMs - (submittedMs % 1000) + 999;
    await touch(endOfSecond);
    expect(await names()).toEqual(['/123/file']);
    sandbox.setHabits({ wholeSecondListing: true });
    expect(await names()).toEqual([]);
    await touch(endOfSecond + 1);
    expect(await names()).toEqual(['/123/file']);
    await rm(`${task.directory}/file`);
  });
});

describe('a large file', () => {
  it.each([
    ['3.1', 400],
    ['6.3', 500],
  ] as const)('cannot be had in parts beyond the longest text value: %s', async (release, status) => {
    const { task, parts, download } = await startFiles(release, { habits: { maxTextCharacters: 10 } });
    await write(task.files.stdout, 'č'.repeat(11));
    await write(task.files.stderr, 'č'.repeat(10));
    expect((await parts([123, STDERR, 0], [123, STDOUT, 0])).status).toBe(status);
    expect((await parts([123, STDERR, 0])).json).toMatchObject([{ Content: 'č'.repeat(10) }]);
    expect((await parts([123, STDOUT, 2])).json).toMatchObject([{ Content: 'č'.repeat(10) }]);
    expect((await download('/123/stdout.txt')).status).toBe(200);
  });

  it('begins only when all of it was read', async () => {
    const { sandbox, task, download } = await startFiles('6.3', { habits: { firstByteMsPerMiB: 3_600_000 } });
    await write(`${task.directory}/file`, '');
    expect(await (await download('/123/file')).text()).toBe('""');
    await truncate(`${task.directory}/file`, 1024 * 1024);
    const gone = new AbortController();
    const late = download('/123/file', gone.signal).catch((error: Error) => error.name);
    await until(() => sandbox.calls.length === 2);
    // Others are served meanwhile.
    expect((await signIn(sandbox)).length).toBeGreaterThan(0);
    gone.abort();
    expect(await late).toBe('AbortError');
  });
});
