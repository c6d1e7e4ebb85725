/** What refusals mean, and the limits of the calls by either protocol. */
import path from 'node:path';
import { expect, test } from 'vitest';
import type { JobService, Remote } from '../../src/agent/ports/server.ts';
import type { Operation } from '../../src/operations.ts';
import { HttpClient, type HttpRequest } from '../../src/remote/http/http-client.ts';
import { problemOf } from '../../src/remote/problem.ts';
import { refusalOf } from '../../src/remote/refusals.ts';
import { SoapJobService } from '../../src/remote/soap/client.ts';
import { growthOf } from '../support/cpu-cost.ts';
import { expectCases, failureOf } from '../support/errors.ts';
import { NAMESPACE } from '../support/wire-envelopes.ts';
import { createRemote, JOB, remoteParts, TASK, TEST_LIMITS } from '../support/wire-remote.ts';
import { createRest } from '../support/wire-rest.ts';
import { bodyOf, closedAtEnd, startHttpServer } from '../support/wire-server.ts';

test('each refusal is read, and reported with a hint, as is written in refusals.txt', async () => {
  await expectCases(path.join(import.meta.dirname, 'refusals.txt'), (written) => {
    const [, status, body = ''] = /^(\d+)(?: (.*))?$/.exec(written) ?? [];
    const problem = problemOf(body.replace('%BOM', '\uFEFF').replace('%64K', ' '.repeat(65_536)));
    const refused = { status: Number(status), retryAfterMs: 7_000, problem, urlKey: 'the.url' };
    const error = refusalOf({ operation: 'ListChangedFilesForJob', ...refused }, remoteParts([]));
    expect(error.retryAfterMs).toBe(7_000);
    return [JSON.stringify(problem), `${error.code}: ${error.message}`, `(${error.hint})`];
  });
});

test.each([": No such file. Path: '", ": No such file. Path: ''.", "Exception message: 'Failure'."])(
  'the refusal of a file that repeats "%s" is examined in a time that grows no faster than its length',
  (words) => {
    const growth = growthOf(8_000, (size) => {
      const problem = problemOf(JSON.stringify(`${words.repeat(size / words.length)}x`));
      const refused = { operation: 'DownloadFileFromCluster', status: 500, retryAfterMs: undefined } as const;
      return () => refusalOf({ ...refused, problem, urlKey: 'the.url' }, remoteParts([]));
    });
    expect(growth).toMatchObject({ isLinear: true });
  },
);

/** What is handed on to the client of HTTP. */
class RecordingClient extends HttpClient {
  readonly requests: HttpRequest[] = [];
  override async request(request: HttpRequest) {
    this.requests.push(request);
    return await super.request(request);
  }
}

const PARTS = [{ taskId: TASK, file: 'stdout', offset: 0 }] as const;
const METHOD = { serverHostname: 'h', sharedBasepath: '/', protocol: null, credentials: null };
const CALLS: Readonly<Record<Operation, (remote: Remote, jobs: JobService, stop: AbortSignal) => Promise<unknown>>> = {
  GetFileTransferMethod: (remote, _, stop) => remote.getTransferMethod(JOB, stop),
  EndFileTransfer: (remote, _, stop) => remote.endTransfer(JOB, METHOD, stop),
  DownloadPartsOfJobFilesFromCluster: (remote, _, stop) => remote.readParts(JOB, PARTS, stop),
  ListChangedFilesForJob: (remote, _, stop) => remote.listChangedFiles(JOB, stop),
  DownloadFileFromCluster: (remote, _, stop) => remote.downloadFile(JOB, '/a', () => {}, stop, 77_000),
  GetCurrentInfoForJob: (_, jobs, stop) => jobs.getJob(JOB, stop),
  ListJobsForCurrentUser: (_, jobs, stop) => jobs.listJobs(stop),
};
/** Their responses may be of any size. */
const BULKY = ['DownloadPartsOfJobFilesFromCluster', 'DownloadFileFromCluster', 'ListJobsForCurrentUser'];

test.each(Object.keys(CALLS) as Operation[])(
  '%s has its limits, and its signal, by either protocol',
  async (operation) => {
    const server = closedAtEnd(
      await startHttpServer(async (request, response) => {
        await bodyOf(request);
        response.writeHead(418).end();
      }),
    );
    const http = closedAtEnd(new RecordingClient({ limits: TEST_LIMITS }));
    const stop = new AbortController();
    const { remote, session } = closedAtEnd(createRemote(server.url, { http }));
    const options = {
      ...remoteParts([]),
      namespace: NAMESPACE,
      url: server.url,
      soapVersion: '1.1',
      http,
      session,
    } as const;
    const rest = closedAtEnd(createRest(server.url, { http }));
    await failureOf(CALLS[operation](remote, new SoapJobService(options), stop.signal));
    await failureOf(CALLS[operation](rest.remote, rest.jobs, stop.signal));
    expect(http.requests).toHaveLength(2);
    for (const request of http.requests) {
      expect(request).toMatchObject({
        headers: { 'user-agent': 'jobtail' },
        isRepeatable: operation !== 'GetFileTransferMethod',
      });
      expect(request.signal).toBe(stop.signal);
      expect(request.totalMs).toBe(BULKY.includes(operation) ? Number.POSITIVE_INFINITY : undefined);
      expect(request.headersMs).toBe(operation === 'DownloadFileFromCluster' ? 77_000 : undefined);
    }
    expect(http.requests[1]?.headers).toMatchObject({ accept: 'application/json', 'accept-language': 'en' });
  },
);
