import { writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { describe, expect, it } from 'vitest';
import type { FaultRule } from '../../simulator/faults.ts';
import type { Sandbox } from '../../simulator/sandbox.ts';
import { onlyTask } from '../support/only-task.ts';
import {
  call,
  envelope,
  faultText,
  headersOf,
  jobAnd,
  NAMESPACE,
  offsets,
  type PartEntry,
  postJson,
  signIn,
  signInUrl,
  startSandbox,
  until,
} from './support.ts';

const LIST = 'ListChangedFilesForJob';
const PARTS = 'DownloadPartsOfJobFilesFromCluster';
const FILE = 'DownloadFileFromCluster';

async function startJob() {
  const sandbox = await startSandbox();
  const session = await signIn(sandbox);
  const task = onlyTask(await sandbox.submitJob({ jobId: '501', tasks: [{ taskId: '9001', specificationId: '123' }] }));
  await writeFile(task.files.stdout, 'abcdef');
  const list = () => call(sandbox, LIST, jobAnd('501', session));
  const parts = (...entries: PartEntry[]) => call(sandbox, PARTS, jobAnd('501', session, offsets(...entries)));
  const file = () =>
    call(sandbox, FILE, jobAnd('501', session, '<relativeFilePath>/123/stdout.txt</relativeFilePath>'));
  return { sandbox, session, list, parts, file };
}

/** How a raw exchange goes: its status, the bytes that arrived, and how it ended. */
function exchange(sandbox: Sandbox, session: string, onHead?: (destroy: () => void) => void) {
  const body = envelope('1.1', `<${LIST} xmlns="${NAMESPACE}">${jobAnd('501', session)}</${LIST}>`);
  return new Promise<{ status: number; text: string; end: string; pieces: number; length: string | undefined }>(
    (resolve) => {
      const sent = request(sandbox.fileTransferUrl, { method: 'POST', headers: headersOf('1.1', LIST), agent: false });
      sent.on('error', (error: NodeJS.ErrnoException) => {
        resolve({ status: 0, text: '', end: error.code ?? error.message, pieces: 0, length: undefined });
      });
      sent.on('response', (response) => {
        const chunks: Buffer[] = [];
        const settle = (end: string) => {
          const text = Buffer.concat(chunks).toString();
          const length = response.headers['content-length'];
          resolve({ status: response.statusCode ?? 0, text, end, pieces: chunks.length, length });
        };
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => settle('end'));
        response.on('error', (error: NodeJS.ErrnoException) => settle(error.code ?? error.message));
        onHead?.(() => sent.destroy());
      });
      sent.end(body);
    },
  );
}

describe('rules', () => {
  it('apply to what they name, so many times, after so many calls', async () => {
    const { sandbox, list, parts } = await startJob();
    const rule = sandbox.faults.add({ kind: 'fault', text: 'broken <1>', operation: LIST, skip: 1, times: 2 });
    const statuses: number[] = [];
    for (let count = 0; count < 5; count++) statuses.push((await list()).status);
    expect(statuses).toEqual([200, 500, 500, 200, 200]);
    expect(rule.applied).toBe(2);

    sandbox.faults.add({ kind: 'fault', jobId: '502' });
    expect((await list()).status).toBe(200);
    const all = sandbox.faults.add({ kind: 'fault', text: 'broken <1>' });
    expect((await list()).body).toContain('<faultstring>broken &lt;1&gt;</faultstring>');
    expect((await parts()).status).toBe(500);
    all.remove();
    expect((await list()).status).toBe(200);
    expect(sandbox.faults.list).toHaveLength(2);
    sandbox.faults.clear();
    expect(sandbox.faults.list).toHaveLength(0);
    expect(() => sandbox.faults.add({ kind: 'fautl' } as unknown as FaultRule)).toThrow('no fault "fautl"');
  });

  it('poison one live file for every call that asks for it', async () => {
    const { sandbox, parts, file } = await startJob();
    sandbox.faults.add({ kind: 'fault', text: 'poisoned', taskId: '9001', file: 'stderr' });
    const good = ['9001', 'StandardOutputFile', 0] as const;
    const bad = ['9001', 'StandardErrorFile', 0] as const;
    expect((await parts(good)).status).toBe(200);
    expect(faultText(await parts(good, bad))).toBe('poisoned');
    expect((await file()).status).toBe(200);
    sandbox.faults.add({ kind: 'fault', text: 'not this one', operation: FILE, file: '123///stdout.txt' });
    expect(faultText(await file())).toBe('not this one');
  });

  it('show a file with an old size', async () => {
    const { sandbox, parts, file } = await startJob();
    sandbox.faults.add({ kind: 'staleSize', bytes: 2, taskId: '9001', file: 'stdout', times: 1 });
    expect((await parts(['9001', 'StandardOutputFile', 0])).body).toContain('<content>ab</content>');
    expect((await parts(['9001', 'StandardOutputFile', 0])).body).toContain('<content>abcdef</content>');
    sandbox.faults.add({ kind: 'staleSize', bytes: 0 });
    expect((await parts(['9001', 'StandardOutputFile', 1])).body).toContain('<content />');
    expect((await file()).body).toContain('<DownloadFileFromClusterResult />');
  });

  it('apply to sign-ins only when they name them', async () => {
    const { sandbox } = await startJob();
    sandbox.faults.add({ kind: 'fault' });
    await expect(signIn(sandbox)).resolves.toBeTypeOf('string');
    sandbox.faults.add({ kind: 'fault', operation: 'SignIn', text: 'no', times: 1 });
    await expect(signIn(sandbox)).rejects.toThrow('400 no');
    sandbox.faults.add({ kind: 'http', operation: 'SignIn', status: 503, headers: { 'retry-after': '7' } });
    const response = await postJson(signInUrl(sandbox, 'AuthenticateUserOpenId'), {});
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '7']);
  });
});

describe('kinds', () => {
  it('http and body: any status, header lines and bytes', async () => {
    const { sandbox, session } = await startJob();
    sandbox.faults.add({
      kind: 'http',
      status: 302,
      headers: { location: 'http://127.0.0.1:1/' },
      body: 'x',
      times: 1,
    });
    expect(await exchange(sandbox, session)).toMatchObject({ status: 302, text: 'x', end: 'end' });
    sandbox.faults.add({
      kind: 'body',
      body: 'PGh0bWw+',
      encoding: 'base64',
      contentType: 'text/html',
      status: 404,
      times: 1,
    });
    expect(await exchange(sandbox, session)).toMatchObject({ status: 404, text: '<html>', end: 'end' });
    sandbox.faults.add({ kind: 'body', body: '' });
    expect(await exchange(sandbox, session)).toMatchObject({ status: 200, text: '', end: 'end' });
  });

  it('delay: the ordinary answer, later; forgotten when the client goes', async () => {
    const { sandbox, session, list } = await startJob();
    sandbox.faults.add({ kind: 'delay', ms: 30, times: 1 });
    const startedAt = performance.now();
    expect((await list()).status).toBe(200);
    expect(performance.now() - startedAt).toBeGreaterThan(25);
    const long = sandbox.faults.add({ kind: 'delay', ms: 3_600_000 });
    const pending = exchange(sandbox, session);
    await until(() => long.applied === 1);
    await sandbox.close();
    expect(await pending).toMatchObject({ status: 0 });
  });

  it('stall: header lines, then nothing', async () => {
    const { sandbox, session } = await startJob();
    sandbox.faults.add({ kind: 'stall' });
    const answer = await exchange(sandbox, session, (destroy) => destroy());
    expect(answer).toMatchObject({ status: 200, text: '', end: 'ECONNRESET' });
  });

  it('hang: never any answer', async () => {
    const { sandbox, session } = await startJob();
    const hang = sandbox.faults.add({ kind: 'hang' });
    const pending = exchange(sandbox, session);
    await until(() => hang.applied === 1);
    await sandbox.close();
    expect((await pending).status).toBe(0);
  });

  it('reset: before the call runs, or after it ran and some bytes went out', async () => {
    const { sandbox, session } = await startJob();
    sandbox.faults.add({ kind: 'reset', times: 1 });
    expect(await exchange(sandbox, session)).toMatchObject({ status: 0, end: 'ECONNRESET' });
    sandbox.faults.add({ kind: 'reset', afterBytes: 100, times: 1 });
    const cut = await exchange(sandbox, session);
    expect(cut.end).not.toBe('end');
    expect(cut.text.length).toBeLessThanOrEqual(100);

    sandbox.habits.keyFormat = 'ec-pem';
    sandbox.faults.add({ kind: 'reset', afterBytes: 0 });
    await expect(call(sandbox, 'GetFileTransferMethod', jobAnd('501', session))).rejects.toThrow();
    expect(sandbox.openKeys).toHaveLength(1);
  });

  it('drip: the ordinary answer in small pieces', async () => {
    const { sandbox, session } = await startJob();
    const whole = await exchange(sandbox, session);
    sandbox.faults.add({ kind: 'drip', bytes: 50, everyMs: 2 });
    const dripped = await exchange(sandbox, session);
    expect(dripped).toMatchObject({ status: 200, text: whole.text, end: 'end' });
    expect(dripped.pieces).toBeGreaterThan(2);
  });

  it('truncate: a complete message with half a document, or a message that is shorter than announced', async () => {
    const { sandbox, session } = await startJob();
    const whole = await exchange(sandbox, session);
    sandbox.faults.add({ kind: 'truncate', afterBytes: 200, times: 1 });
    expect(await exchange(sandbox, session)).toMatchObject({ text: whole.text.slice(0, 200), end: 'end' });
    sandbox.faults.add({ kind: 'truncate', afterBytes: 200, announcedBytes: 300, times: 1 });
    const short = await exchange(sandbox, session);
    expect(short).toMatchObject({ text: whole.text.slice(0, 200), length: '300', end: 'ECONNRESET' });
  });
});

describe('an outage', () => {
  it('refuses connections, and is over on the same port with the same sessions', async () => {
    const { sandbox, session } = await startJob();
    const url = sandbox.fileTransferUrl;
    await sandbox.stopListening();
    expect((await exchange(sandbox, session)).end).toBe('ECONNREFUSED');
    await sandbox.listenAgain();
    expect(sandbox.fileTransferUrl).toBe(url);
    expect((await exchange(sandbox, session)).status).toBe(200);
  });
});
