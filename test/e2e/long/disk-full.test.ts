/** A service whose text has no end: it fills the disk of the state, and harms no other job. */
import fs from 'node:fs';
import { expect, it } from 'vitest';
import { requestOf, submitQuietJob, taskOf } from '../../support/e2e-job.ts';
import { SmallDisk } from '../../support/e2e-mount.ts';
import { Place, readIfThere } from '../../support/e2e-place.ts';
import { until } from '../../support/e2e-until.ts';
import { entry, NAMESPACE, partsResponse } from '../../support/wire-envelopes.ts';
import { bodyOf, startHttpServer } from '../../support/wire-server.ts';

const SANDBOX_PARTS = partsResponse(entry('|')).replaceAll(NAMESPACE, 'http://sandbox.example.org/');

/** Lines that are all different, `kib` KiB of them. */
const text = (kib: number) =>
  Buffer.from(Array.from({ length: kib * 16 }, (_, line) => `${line} žluťoučký kůň`.padEnd(58, '.')).join('\n'));

it('endless text fills the disk of the state, is discarded, and other jobs go on', async (context) => {
  const place = Place.make(context);
  SmallDisk.mount(context, place.state, 16 * 1024);
  const { sandbox, job, task } = await submitQuietJob(place);
  fs.writeFileSync(task.files.stdout, text(1));
  const hostile = await sandbox.submit({ tasks: [{}] });
  const { files: hostileFiles } = taskOf(hostile);
  fs.writeFileSync(hostileFiles.stdout, 'its own text\n');
  const service = await endlessFor(hostile.jobId, `${sandbox.baseUrl}/FileTransferWs`);
  context.onTestFinished(() => service.close());
  place.configure(sandbox, {
    service: { fileTransferUrl: service.url },
    watch: [requestOf(job), requestOf(hostile)],
    results: { enabled: false },
  });
  const agent = await place.run();

  const scope = `job ${hostile.jobId}`;
  const said = await agent.logs('operation failed', { scope, err: 'no space left on device' });
  expect(said).toMatchObject({ level: 'error', code: 'disk-full', hint: expect.stringContaining('free some space') });
  expect(said['err']).toContain(place.state);
  await until('another try', () => agent.log.some(({ msg }) => msg === 'operation still failing'));
  // Given back: a text too long for the memory finds room.
  fs.appendFileSync(task.files.stdout, text(3 * 1024));
  await place.mirrored(job, 'stdout');
  const hostileMirror = place.mirrorOf(hostile.jobId, taskOf(hostile).taskId, 'stdout');
  expect(readIfThere(hostileMirror)?.length ?? 0).toBe(0);

  service.behave();
  await place.mirrored(hostile, 'stdout');
  const { jobs } = await place.status();
  expect(jobs.flatMap(({ files }) => files.map(({ generation }) => generation)).every((at) => at === 1)).toBe(true);
});

/** The service of a sandbox, but for one job: its live files have no end. */
async function endlessFor(jobId: string, url: string) {
  let isEndless = true;
  const block = Buffer.alloc(256 * 1024, 'endless\n');
  const server = await startHttpServer(async (request, response) => {
    const body = await bodyOf(request);
    const isOfJob =
      body.includes(`submittedJobInfoId>${jobId}<`) && body.includes('DownloadPartsOfJobFilesFromCluster');
    if (isOfJob && isEndless) {
      response.writeHead(200, { 'content-type': 'text/xml' });
      response.write(SANDBOX_PARTS.split('|')[0]);
      while (!response.destroyed) {
        if (!response.write(block)) await new Promise((resolve) => setImmediate(resolve));
      }
      return;
    }
    const { 'content-type': type = '', soapaction = '' } = request.headers;
    const headers = { 'content-type': type, soapaction: String(soapaction) };
    const answer = await fetch(url, { method: 'POST', headers, body });
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' });
    response.end(Buffer.from(await answer.arrayBuffer()));
  });
  return {
    ...server,
    behave() {
      isEndless = false;
    },
  };
}
