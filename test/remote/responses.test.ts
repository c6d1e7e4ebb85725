/** What both protocols make of the same requests and responses of HTTP, and what they leave behind. */
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import type { JobService, Remote } from '../../src/agent/ports/server.ts';
import type { Operation } from '../../src/operations.ts';
import { HttpClient, type HttpRequest } from '../../src/remote/http/http-client.ts';
import { problemOf } from '../../src/remote/problem.ts';
import { refusalOf } from '../../src/remote/refusals.ts';
import { SoapJobService } from '../../src/remote/soap/client.ts';
import { expectCases, failureOf } from '../support/errors.ts';
import { listResponse, NAMESPACE } from '../support/wire-envelopes.ts';
import { createRemote, JOB, remoteParts, TASK, TEST_LIMITS } from '../support/wire-remote.ts';
import { createRest } from '../support/wire-rest.ts';
import { bodyOf, closedAtEnd, startHttpServer, until } from '../support/wire-server.ts';

const { signal } = new AbortController();

interface Response {
  readonly status: number;
  readonly type?: string;
  readonly body?: string | Buffer;
  /** Whether the body has no end. */
  readonly isOpen?: boolean;
  /** Whether the connection breaks inside the body. */
  readonly isBroken?: boolean;
}

const PROTOCOLS = {
  soap: { names: listResponse('<string>/a</string>'), type: 'text/xml', urlKey: 'service.fileTransferUrl' },
  rest: { names: '["/a"]', type: 'application/json', urlKey: 'service.baseUrl and service.path' },
} as const;
type Protocol = keyof typeof PROTOCOLS;

/** A listing of a service that sends this. */
async function listed(
  protocol: Protocol,
  { status, type = '', body = '', isOpen = false, isBroken = false }: Response,
) {
  const server = closedAtEnd(
    await startHttpServer(async (request, response) => {
      await bodyOf(request);
      response.writeHead(status, type === '' ? {} : { 'content-type': type });
      if (isBroken) response.write(body, () => response.destroy());
      else if (isOpen) response.write(body);
      else response.end(body);
    }),
  );
  const { remote, events } = closedAtEnd(protocol === 'soap' ? createRemote(server.url) : createRest(server.url));
  const names = remote.listChangedFiles(JOB, signal);
  names.catch(() => {});
  return { server, events, remote, names };
}

describe.each(['soap', 'rest'] as const)('by %s', (protocol) => {
  const { names, type, urlKey } = PROTOCOLS[protocol];
  const types =
    protocol === 'soap'
      ? ['', 'text/xml', 'application/xml', 'application/soap+xml', 'Text/XML']
      : ['', 'application/json', 'text/json', 'application/problem+json', 'Application/JSON'];

  test.each([...types, ...['utf-8', 'UTF8', '"us-ascii"'].map((charset) => `${type} ; Charset=${charset}`)])(
    'a response of the type %j is read',
    async (contentType) => {
      const got = await listed(protocol, { status: 200, type: contentType, body: names });
      expect([...(await got.names)]).toEqual(['/a']);
      expect(got.events).toEqual([
        { operation: 'ListChangedFilesForJob', outcome: 'ok', bytes: names.length, durationMs: expect.any(Number) },
      ]);
      expect(got.events[0]?.durationMs).toBeLessThan(60_000);
    },
  );

  test.each([
    [`x${type}`, /^the response is damaged: it is x\S+ and no (?:SOAP envelope|JSON)$/],
    [`${type}x`, /^the response is damaged: it is \S+x and no (?:SOAP envelope|JSON)$/],
    [`${type}; charset=iso-8859-2`, /its encoding is not UTF-8$/],
    ['text/html', /^the response is a web page$/],
    ['application/xhtml+xml', /^the response is a web page$/],
  ])('a response of the type %j is not', async (contentType, message) => {
    const got = await listed(protocol, { status: 200, type: contentType, body: names });
    expect(await failureOf(got.names)).toMatchObject({ code: 'malformed', message: expect.stringMatching(message) });
  });

  test('a web page is named by the beginning of its title', async () => {
    const page = `\n <!DOCTYPE  html><title lang="en"> ${'Sign in '.repeat(20)}</title>`;
    const got = await listed(protocol, { status: 200, type, body: page });
    expect(await failureOf(got.names)).toMatchObject({
      message: `the response is a web page ("${'Sign in '.repeat(20).slice(0, 100)}...")`,
      hint: expect.stringContaining(urlKey),
    });
  });

  test.each([
    [201, 'unexpected-answer', 'its status is 201 instead of 200'],
    [299, 'unexpected-answer', 'its status is 299 instead of 200'],
    [300, 'redirected', 'with status 300'],
    [308, 'redirected', 'with status 308'],
  ])('a response with status %i is %s, and its connection is closed', async (status, code, message) => {
    const got = await listed(protocol, { status, type, body: names, isOpen: true });
    const error = await failureOf(got.names);
    expect(error).toMatchObject({ code, message: expect.stringContaining(message) });
    expect(error.hint).toContain(urlKey);
    await until(() => got.server.open() === 0);
  });

  test('a response with another charset leaves no connection open', async () => {
    const charset = `${type}; charset=iso-8859-2`;
    const got = await listed(protocol, { status: 200, type: charset, body: names, isOpen: true });
    // A call that has no time limit as a whole.
    const parts = got.remote.readParts(JOB, [{ taskId: TASK, file: 'stdout', offset: 0 }], signal);
    expect(await failureOf(parts)).toMatchObject({ code: 'malformed' });
    await until(() => got.server.open() === 0);
  });

  test.each([
    [401, 'session-lost'],
    [403, 'session-lost'],
    [413, 'request-too-long'],
    [500, 'interrupted'],
  ])('a refusal whose body breaks has the code of its status, if that is clear: %i', async (status, code) => {
    const { names } = await listed(protocol, { status, type: 'text/html', body: '<html>', isBroken: true });
    await expect(names).rejects.toMatchObject({ code });
  });

  test('of a refusal, so many bytes are read, and no more is waited for', async () => {
    const max = protocol === 'soap' ? 256 * 1024 : 64 * 1024;
    const got = await listed(protocol, { status: 418, type: 'text/plain', body: 'x'.repeat(max), isOpen: true });
    expect(await failureOf(got.names)).toMatchObject({ code: 'http-status' });
    expect(got.events.map(({ bytes, outcome }) => [bytes, outcome])).toEqual([[max, 'http-status']]);
    await until(() => got.server.open() === 0);
  });
});

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
