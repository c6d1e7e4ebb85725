import { open, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import type { Sandbox } from '../../../simulator/sandbox.ts';
import { onlyTask } from '../../support/only-task.ts';
import { drain, envelope, headersOf, jobAnd, NAMESPACE, offsets, signIn, startSandbox, until } from '../support.ts';

const MIB = 1024 * 1024;

function drainCall(sandbox: Sandbox, operation: string, children: string, onHead?: (stop: () => void) => void) {
  const body = envelope('1.2', `<${operation} xmlns="${NAMESPACE}">${children}</${operation}>`);
  return drain(sandbox.fileTransferUrl, { headers: headersOf('1.2', operation), body }, onHead);
}

async function startJob() {
  const sandbox = await startSandbox();
  const session = await signIn(sandbox);
  const task = onlyTask(await sandbox.submitJob({ jobId: '501', tasks: [{ taskId: '9001', specificationId: '123' }] }));
  return { sandbox, session, task };
}

describe('large files', () => {
  it('are downloaded whole with constant memory', async () => {
    const { sandbox, session, task } = await startJob();
    const size = 256 * MIB;
    const file = await open(`${task.directory}/large`, 'w');
    await file.truncate(size);
    await file.close();
    const path = '<relativeFilePath>/123/large</relativeFilePath>';
    const drained = await drainCall(sandbox, 'DownloadFileFromCluster', jobAnd('501', session, path));
    expect(drained.complete).toBe(true);
    expect(drained.bytes - Math.ceil(size / 3) * 4).toBeLessThan(1000);
    expect(drained.grown).toBeLessThan(160 * MIB);
    expect(sandbox.counters.bytesSent).toBe(drained.bytes);
  });

  it('are decoded in blocks with constant memory', async () => {
    const { sandbox, session, task } = await startJob();
    const mebibyte = 'x'.repeat(MIB);
    for (let count = 0; count < 96; count++) await writeFile(task.files.stdout, mebibyte, { flag: 'a' });
    const asked = offsets(['9001', 'StandardOutputFile', 0]);
    const drained = await drainCall(sandbox, 'DownloadPartsOfJobFilesFromCluster', jobAnd('501', session, asked));
    expect(drained.complete).toBe(true);
    expect(drained.bytes - 96 * MIB).toBeLessThan(1000);
    expect(drained.grown).toBeLessThan(160 * MIB);
  });

  it('are let go when the client goes', async () => {
    const { sandbox, session, task } = await startJob();
    const file = await open(`${task.directory}/large`, 'w');
    await file.truncate(1024 * MIB);
    await file.close();
    const path = '<relativeFilePath>/123/large</relativeFilePath>';
    const children = jobAnd('501', session, path);
    const drained = await drainCall(sandbox, 'DownloadFileFromCluster', children, (stop) => stop());
    expect(drained.complete).toBe(false);
    sandbox.habits.parallelUnsafe = true;
    sandbox.faults.add({ kind: 'truncate', afterBytes: 10 });
    await until(async () => (await drainCall(sandbox, 'ListChangedFilesForJob', jobAnd('501', session))).bytes === 10);
  });
});
