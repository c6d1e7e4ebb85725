/** A service that contradicts itself: the file that cannot go on says so where a person looks, and costs little. */
import fs from 'node:fs';
import { expect, it } from 'vitest';
import { requestOf, submitQuietJob } from '../../support/e2e-job.ts';
import { Place } from '../../support/e2e-place.ts';
import { PATIENCE, until } from '../../support/e2e-until.ts';
import { freePort } from '../../support/free-port.ts';

const NAMESPACE = 'http://sandbox.example.org/';

/** The same text, whatever offset is asked for. */
function sameTextFor(taskId: string): string {
  const entry = `<JobFileContentExt><content>abcd</content><relativePath>/stdout.txt</relativePath><offset xsi:nil="true"/>
    <fileType>StandardOutputFile</fileType><submittedTaskInfoId>${taskId}</submittedTaskInfoId></JobFileContentExt>`;
  const result = `<DownloadPartsOfJobFilesFromClusterResult>${entry}</DownloadPartsOfJobFilesFromClusterResult>`;
  return `<?xml version="1.0"?><soap:Envelope xmlns:soap="http://www.w3.org/2003/05/soap-envelope" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soap:Body>
    <DownloadPartsOfJobFilesFromClusterResponse xmlns="${NAMESPACE}">${result}</DownloadPartsOfJobFilesFromClusterResponse>
    </soap:Body></soap:Envelope>`;
}

it(
  'a live file that does not go on for a minute says so in status, log and metrics, until it does',
  PATIENCE,
  async (context) => {
    const place = Place.make(context);
    const { sandbox, job, task, mirror } = await submitQuietJob(place);
    fs.writeFileSync(task.files.stdout, '\ufefftext č\n');
    await sandbox.setHabits({ decoding: 'utf-8-stream' });
    const operation = 'DownloadPartsOfJobFilesFromCluster';
    const contentType = 'application/soap+xml; charset=utf-8';
    await sandbox.fault({ operation, kind: 'body', contentType, body: sameTextFor(task.taskId) });
    const port = await freePort();
    place.configure(sandbox, {
      watch: [{ ...requestOf(job), files: ['stdout'] }],
      results: { enabled: false },
      // It waits for a minute.
      poll: { minIntervalSeconds: 0.5, maxIntervalSeconds: 0.5 },
      metrics: { listen: `127.0.0.1:${port}` },
    });
    const agent = await place.run();

    // What may pass by itself is asked again and again, and given a minute.
    await until('hundreds of questions', async () => ((await sandbox.faultsApplied())[0] ?? 0) > 20);
    expect(await agent.logs('operation failed', { err: 'no progress' })).toMatchObject({
      level: 'warn',
      code: 'stuck',
      scope: `job ${job.jobId} ${task.taskId}/stdout`,
    });
    const [file] = (await place.status()).jobs[0]?.files ?? [];
    expect(file?.error).toMatchObject({ code: 'stuck', message: expect.stringContaining('from 0: 4 bytes of text') });
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    expect(metrics).toMatch(/^jobtail_live_files_failing 1$/m);
    expect(fs.readFileSync(mirror)).toHaveLength(0);

    await sandbox.clearFaults();
    await place.mirrored(job, 'stdout');
    expect(fs.readFileSync(mirror, 'utf8')).toBe('\ufefftext č\n');
    await agent.logs('operation recovered', { scope: `job ${job.jobId} ${task.taskId}/stdout` });
    await until('the error to be gone', async () => (await place.status()).jobs[0]?.files[0]?.error === null);
  },
);
