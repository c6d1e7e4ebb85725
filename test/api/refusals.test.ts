/** What a route responds when it cannot do its work: the status, the reason, and who else hears of it. */
import { once } from 'node:events';
import http from 'node:http';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { gateOf, routesOf } from '../../src/api/routes.ts';
import type { ApiParts } from '../../src/api/work.ts';
import { ERROR_POLICIES, type ErrorCode, JobtailError } from '../../src/errors.ts';
import { appOf } from '../../src/http/app.ts';
import { serveHttp } from '../../src/http/server.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

const MAX_BODY_BYTES = 64 * 1024;

/** A socket whose state throws. */
async function served(thrown: unknown, socket: 'read' | 'control' = 'control') {
  const failures: unknown[] = [];
  const state = {
    get store(): never {
      throw thrown;
    },
  };
  const feed = { reader: () => () => ['news'] };
  const parts = { state, feed, onFailure: (error: unknown) => failures.push(error) } as unknown as ApiParts;
  const socketPath = path.join(temporaryDirectory(), 's');
  const server = await serveHttp({ path: socketPath }, (connections) =>
    appOf({
      routes: routesOf(parts),
      gates: [gateOf(socket, connections)],
      hint: 'see docs/gateway.md',
      onFailure: parts.onFailure,
    }),
  );
  onTestFinished(() => server.close());
  const ask = async (method: string, at: string, body?: string) => {
    const request = http.request({ socketPath, method, path: at, agent: false });
    request.end(body);
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    const { error } = JSON.parse(await text(response)) as { error: Readonly<Record<string, unknown>> };
    return { status: response.statusCode, ...error };
  };
  return { ask, failures, socketPath };
}

const STATUS: Partial<Record<ErrorCode, number>> = {
  ...{ usage: 400, 'not-found': 404, 'job-unknown': 404, superseded: 409, internal: 500 },
};

it.each(Object.keys(ERROR_POLICIES) as ErrorCode[])(
  'the error %s is a response with its status, code and hint',
  async (code) => {
    const { ask, failures } = await served(new JobtailError(code, 'the reason', { hint: 'what to do' }));
    const status = STATUS[code] ?? 503;
    expect(await ask('GET', '/v1/jobs')).toMatchObject({ status, code, message: 'the reason', hint: 'what to do' });
    expect(failures).toHaveLength(code === 'internal' ? 1 : 0);
  },
);

it('a change at the socket for reading names the other one', async () => {
  const { ask } = await served(undefined, 'read');
  for (const [method, at] of [
    ['POST', '/v1/jobs'],
    ['DELETE', '/v1/jobs/501'],
    ['POST', '/v1/jobs/501/sync'],
  ] as const)
    expect(await ask(method, at)).toMatchObject({ status: 403, code: 'permission', hint: 'ask control.sock' });
  expect(await ask('GET', '/v1/nothing')).toMatchObject({ status: 404, hint: 'see docs/gateway.md' });
});

it('an order beyond its limits is refused', async () => {
  const { ask } = await served(new JobtailError('job-unknown', 'asked'));
  const tasks = (count: number) => Array.from({ length: count }, (_, index) => String(index + 1));
  const order = (more: object) => ask('POST', '/v1/jobs', JSON.stringify({ jobId: '501', results: false, ...more }));
  for (const within of [
    { stallAfterMinutes: 1 },
    { stallAfterMinutes: 20_160 },
    { files: ['log'] },
    { tasks: tasks(1) },
    { tasks: tasks(1_000) },
  ])
    expect(await order(within)).toMatchObject({ message: 'asked' });
  for (const beyond of [
    { stallAfterMinutes: 0.9 },
    { stallAfterMinutes: 20_161 },
    { files: [] },
    { tasks: [] },
    { tasks: tasks(1_001) },
  ])
    expect(await order(beyond), JSON.stringify(beyond)).toMatchObject({ status: 400 });
});

it('a body of the greatest length is read, and one byte more is too long', async () => {
  const { ask } = await served(new JobtailError('job-unknown', 'asked'));
  const [start, end] = ['{"jobId": "501",', '"results": false}'];
  // It comes in several pieces.
  const bodyOf = (bytes: number) => `${start.padEnd(bytes - end.length)}${end}`;
  expect(await ask('POST', '/v1/jobs', bodyOf(MAX_BODY_BYTES))).toMatchObject({ message: 'asked' });
  const longer = await ask('POST', '/v1/jobs', bodyOf(MAX_BODY_BYTES + 1));
  expect(longer).toMatchObject({ status: 400, message: 'the body is too long' });
});

it('a job is ended at once only by request', async () => {
  const { ask } = await served(new JobtailError('store', 'asked'));
  // The other way asks the agent, of which there is none.
  const at = ['/v1/jobs/501?now=1', '/v1/jobs/501?now=0', '/v1/jobs/501'];
  const answers: Readonly<Record<string, unknown>>[] = await Promise.all(at.map((each) => ask('DELETE', each)));
  expect(answers.map((answer) => answer['message'] === 'asked')).toEqual([true, false, false]);
});

it('a body without an end is refused when a MiB of it came', async () => {
  const { socketPath } = await served(new JobtailError('job-unknown', 'asked'));
  const request = http.request({ socketPath, method: 'POST', path: '/v1/jobs', agent: false });
  request.on('error', () => {}).write(Buffer.alloc(1024 * 1024 + 1, ' '));
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  expect(response.statusCode).toBe(400);
  request.destroy();
});

it('a client that goes away within its body is no defect of the program', async () => {
  const { ask, failures, socketPath } = await served(new JobtailError('store', 'asked'));
  const headers = { expect: '100-continue', 'content-length': 100 };
  const request = http.request({ socketPath, method: 'POST', path: '/v1/jobs', agent: false, headers });
  request.on('error', () => {}).flushHeaders();
  await once(request, 'continue');
  request.destroy();
  // The end of the first connection is seen before these.
  for (let times = 0; times < 3; times++) expect(await ask('GET', '/v1/jobs')).toMatchObject({ message: 'asked' });
  expect(failures).toEqual([]);
});

it('a wait of more seconds than an hour has, or of no number, is refused', async () => {
  const { ask } = await served(new JobtailError('job-unknown', 'asked'));
  for (const seconds of ['3601', '-1', '1.5', 'x', '', '00001'])
    expect(await ask('GET', `/v1/jobs/501/wait?seconds=${seconds}`), seconds).toMatchObject({ status: 400 });
  for (const seconds of ['0', '3600'])
    expect(await ask('GET', `/v1/jobs/501/wait?seconds=${seconds}`), seconds).toMatchObject({ message: 'asked' });
});

it('a parameter with another name or value than the interface has is refused', async () => {
  const { ask } = await served(new JobtailError('job-unknown', 'asked'));
  for (const [method, at] of [
    ['GET', '/v1/jobs?all=true'],
    ['GET', '/v1/jobs/501/verification?complete=yes'],
    ['DELETE', '/v1/jobs/501?now='],
    ['GET', '/v1/jobs/501/wait?timeout=600'],
    ['GET', '/v1/jobs/501/wait?seconds=0&seconds=600'],
  ] as const)
    expect(await ask(method, at), at).toMatchObject({ status: 400, code: 'usage' });
  for (const at of ['/v1/jobs?all=0', '/v1/jobs?all=1'])
    expect(await ask('GET', at)).toMatchObject({ message: 'asked' });
});

it('events are a stream of lines with JSON, which ends with its client', async () => {
  const { socketPath, failures } = await served(undefined);
  const request = http.request({ socketPath, path: '/v1/events', agent: false }).end();
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  expect([response.statusCode, response.headers['content-type']]).toEqual([200, 'application/x-ndjson']);
  expect(String((await once(response, 'data'))[0])).toMatch(/^"news"\n/);
  response.on('error', () => {}).destroy();
  expect(failures).toEqual([]);
});
