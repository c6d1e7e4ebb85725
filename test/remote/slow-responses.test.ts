/** A response that has no bound on its size may take longer than any other, as long as something of it comes. */
import { expect, test } from 'vitest';
import type { JobService, Remote } from '../../src/agent/ports/server.ts';
import { SoapJobService } from '../../src/remote/soap/client.ts';
import { entry, fileResponse, NAMESPACE, partsResponse, response } from '../support/wire-envelopes.ts';
import { createRemote, JOB, remoteParts, TASK, TEST_LIMITS } from '../support/wire-remote.ts';
import { createRest } from '../support/wire-rest.ts';
import { bodyOf, closedAtEnd, startHttpServer } from '../support/wire-server.ts';

const { signal } = new AbortController();
const TOTAL_MS = 50;
const LIMITS = { ...TEST_LIMITS, totalMs: TOTAL_MS };

/** Sends the second half of each response when the limit of the others is long over. */
const slowly = async (body: string, type: string) =>
  closedAtEnd(
    await startHttpServer(async (request, answer) => {
      await bodyOf(request);
      answer.writeHead(200, { 'content-type': type }).write(body.slice(0, body.length / 2));
      setTimeout(() => answer.end(body.slice(body.length / 2)), 4 * TOTAL_MS);
    }),
  );

async function soap(body: string) {
  const { url } = await slowly(body, 'text/xml; charset=utf-8');
  const { remote, http, session } = closedAtEnd(createRemote(url, { limits: LIMITS }));
  const options = { ...remoteParts([]), namespace: NAMESPACE, url, soapVersion: '1.1', http, session } as const;
  return { remote, jobs: new SoapJobService(options) };
}

async function rest(body: string) {
  const { url } = await slowly(body, 'application/json');
  return closedAtEnd(createRest(url, { limits: LIMITS }));
}

const parts = ({ remote }: { remote: Remote }) =>
  remote.readParts(JOB, [{ taskId: TASK, file: 'stdout', offset: 0 }], signal);
const file = ({ remote }: { remote: Remote }) => remote.downloadFile(JOB, '/x', async () => undefined, signal);
const list = ({ jobs }: { jobs: JobService }) => jobs.listJobs(signal);
const job = ({ jobs }: { jobs: JobService }) => jobs.getJob(JOB, signal);
const result = (operation: 'ListJobsForCurrentUser' | 'GetCurrentInfoForJob', inner: string) =>
  response(operation, `<${operation}Result>${inner}</${operation}Result>`);

test.each([
  ['parts by SOAP', async () => parts(await soap(partsResponse(entry('text'))))],
  ['a file by SOAP', async () => file(await soap(fileResponse('YWJj')))],
  ['the jobs by SOAP', async () => list(await soap(result('ListJobsForCurrentUser', '')))],
  ['parts by REST', async () => parts(await rest('[]'))],
  ['a file by REST', async () => file(await rest('"YWJj"'))],
  ['the jobs by REST', async () => list(await rest('[ ]'))],
])('a request for %s may take long', async (_, call) => {
  await expect(call()).resolves.toBeDefined();
});

test.each([
  ['one job by SOAP', async () => job(await soap(result('GetCurrentInfoForJob', `<id>${JOB}</id>`)))],
  ['one job by REST', async () => job(await rest(JSON.stringify({ Id: Number(JOB) })))],
])('a request for %s may not take long', async (_, call) => {
  await expect(call()).rejects.toMatchObject({ code: 'timeout' });
});
