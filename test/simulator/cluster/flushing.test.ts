/** Output that comes after the state said that it is over (docs/servers.md 1.8), over real HTTP. */
import { appendFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { onlyTask } from '../../support/only-task.ts';
import { call, jobAnd, offsets, signIn, startSandbox } from '../support.ts';

const PARTS = 'DownloadPartsOfJobFilesFromCluster';
const FILE = 'DownloadFileFromCluster';
const BUFFERED_BYTES = 4096;

async function startJob(flushSeconds: number) {
  const clock = { nowMs: 0 };
  const sandbox = await startSandbox({ clock: () => clock.nowMs, habits: { flushSeconds } });
  const session = await signIn(sandbox);
  const job = await sandbox.submitJob({ jobId: '501', tasks: [{ taskId: '9001', specificationId: '9001' }] });
  /** Bytes of the live file, and of a whole file, as they are shown. */
  const shown = async () => {
    const parts = await call(sandbox, PARTS, jobAnd('501', session, offsets(['9001', 'StandardOutputFile', 0])));
    const name = '<relativeFilePath>/9001/result.bin</relativeFilePath>';
    const file = await call(sandbox, FILE, jobAnd('501', session, name));
    const base64 = /<DownloadFileFromClusterResult>(.*)<\/Down/s.exec(file.body)?.[1] ?? '';
    return [/<content>(.*)<\/content>/s.exec(parts.body)?.[1]?.length ?? 0, Buffer.from(base64, 'base64').length];
  };
  const write = async (bytes: number) => {
    for (const file of [onlyTask(job).files.stdout, join(onlyTask(job).directory, 'result.bin')]) {
      await appendFile(file, 'x'.repeat(bytes));
    }
  };
  return { sandbox, job, clock, shown, write };
}

describe('the last bytes of a file', () => {
  it('come so long after the end of the task', async () => {
    const { job, clock, shown, write } = await startJob(60);
    await write(BUFFERED_BYTES);
    expect(await shown()).toEqual([0, 0]);
    await write(10);
    expect(await shown()).toEqual([10, 10]);
    await job.end('Finished');
    clock.nowMs = 59_999;
    expect([job.state, await shown()]).toEqual(['Finished', [10, 10]]);
    clock.nowMs = 60_000;
    expect(await shown()).toEqual([BUFFERED_BYTES + 10, BUFFERED_BYTES + 10]);
  });

  it('stay when the job is queued again, and are gone when the file is written anew', async () => {
    const { job, clock, shown, write } = await startJob(60);
    await write(BUFFERED_BYTES);
    await job.end('Finished');
    clock.nowMs = 60_000;
    expect(await shown()).toEqual([BUFFERED_BYTES, BUFFERED_BYTES]);
    await job.requeue();
    await write(10);
    expect(await shown()).toEqual([BUFFERED_BYTES, BUFFERED_BYTES]);
    await write(BUFFERED_BYTES);
    expect(await shown()).toEqual([BUFFERED_BYTES + 10, BUFFERED_BYTES + 10]);
    await writeFile(onlyTask(job).files.stdout, 'anew');
    expect(await shown()).toEqual([4, BUFFERED_BYTES + 10]);
  });

  it('come at once by default', async () => {
    const { shown, write } = await startJob(0);
    await write(7);
    expect(await shown()).toEqual([7, 7]);
  });
});
