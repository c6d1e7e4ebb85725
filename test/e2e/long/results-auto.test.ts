/** Results with nothing configured: the built agent finds out by itself which way they come, and `check` reports it. */
import fs from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Sshd } from '../../direct/sshd.ts';
import { PATIENCE, until } from '../../support/e2e-until.ts';
import { needs, SSH } from '../../support/needs.ts';
import { onlyTask } from '../../support/only-task.ts';
import { ResultsE2e } from '../../support/results-place.ts';

/** The default of `results.transfer`, with a limit that small files are above. */
const RESULTS = { transfer: undefined, directAboveBytes: '1 MiB' };

describe('results by default', { ...PATIENCE, ...needs(...SSH) }, () => {
  let sshd: Sshd;
  beforeAll(async () => {
    sshd = await Sshd.start();
  });
  afterAll(() => sshd.stop());

  it('come by SSH where they are large and the cluster is reached', async (context) => {
    const e2e = await ResultsE2e.start(context, { sshd, allowed: 'rsync', results: RESULTS });
    const { place, sandbox } = e2e;
    expect((await place.agent('check')).stdout).toContain('files above 1.0 MiB and many at a time by SSH');
    e2e.put('small.dat', 'small');
    await place.watch('501');
    expect((await e2e.start('sync', '501').ended).code).toBe(0);
    expect(sandbox.counters).toMatchObject({ issuedKeys: 0 });
    e2e.put('large.dat', Buffer.alloc(3_000_000, 'large '));
    expect((await e2e.start('sync', '501').ended).code).toBe(0);
    expect(fs.readFileSync(e2e.result('large.dat')).equals(Buffer.alloc(3_000_000, 'large '))).toBe(true);
    expect((await e2e.status()).results.lastSync).toMatchObject({ way: 'rsync', fallback: null });
    expect(sandbox.counters).toMatchObject({ issuedKeys: 1, openKeys: 0 });
    expect((await place.agent('check')).stdout).toContain(`by rsync from ${sshd.host} for job 501`);
  });

  it('include a live file on which the service hangs: it comes by SSH, and no file of another job waits for it', async (context) => {
    const sections = { service: { timeoutSeconds: 15, concurrency: 1 } };
    const e2e = await ResultsE2e.start(context, { sshd, allowed: 'rsync', results: RESULTS, sections });
    const { place, sandbox, job } = e2e;
    const other = await sandbox.submitJob({ jobId: '502', tasks: [{ taskId: '9002', specificationId: '12' }] });
    const file = onlyTask(job).files.stdout;
    const content = Buffer.from(Array.from({ length: 400_000 }, (_, line) => `${line} více\n`).join(''));
    fs.writeFileSync(file, content);
    const of501 = { jobId: '501', kind: 'hang' } as const;
    const parts = 'DownloadPartsOfJobFilesFromCluster';
    sandbox.faults.add({ ...of501, operation: parts, file: 'stdout', beforeOffset: 65_536 });
    sandbox.faults.add({ ...of501, operation: 'DownloadFileFromCluster', file: '/11/stdout.txt' });
    await place.watch('501', ['9001']);
    await place.watch('502', ['9002']);
    e2e.start('run');
    const mirror = (jobId: string, taskId: string) => {
      const at = path.join(place.mirror, jobId, 'live', taskId, 'stdout.log');
      return fs.existsSync(at) ? fs.readFileSync(at) : Buffer.alloc(0);
    };
    let lag = 0;
    for (let lines = 1; !mirror('501', '9001').equals(content); lines++) {
      fs.writeFileSync(onlyTask(other).files.stdout, 'a line\n'.repeat(lines));
      const wroteAt = Date.now();
      await until('the line of another job', () => mirror('502', '9002').length === lines * 'a line\n'.length);
      lag = Math.max(lag, Date.now() - wroteAt);
    }
    expect(lag).toBeLessThan(10_000);
    fs.appendFileSync(file, 'one more line\n');
    await until('the next bytes', () => mirror('501', '9001').length === content.length + 'one more line\n'.length);
  });
});
