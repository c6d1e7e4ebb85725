/** What a program asks at the sockets: docs/openapi.json, the snippet of docs/gateway.md, and what hostile clients do. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, type TestContext, test } from 'vitest';
import { routesOf } from '../../src/api/routes.ts';
import type { ApiParts } from '../../src/api/work.ts';
import { differences, documentedRoutes, errorDifferences } from '../support/api-schema.ts';
import { requestOf, taskOf } from '../support/e2e-job.ts';
import { Place } from '../support/e2e-place.ts';
import { until } from '../support/e2e-until.ts';

interface Response {
  readonly status: number;
  readonly json: Readonly<Record<string, unknown>>;
}

interface Sent {
  readonly method?: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

async function ask(socketPath: string, at: string, { method = 'GET', body, headers }: Sent = {}): Promise<Response> {
  const request = http.request({ socketPath, path: at, method, agent: false, ...(headers && { headers }) });
  request.end(body);
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  return { status: response.statusCode ?? 0, json: JSON.parse(await text(response)) as Response['json'] };
}

async function setUp(context: TestContext) {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const job = await sandbox.submit({ tasks: [{}] });
  const { files } = taskOf(job);
  fs.writeFileSync(files.stdout, 'first\n');
  fs.writeFileSync(path.join(path.dirname(files.stdout), 'result.dat'), 'a result');
  const directory = path.join(place.directory, 'sockets');
  const notify = [{ on: ['started'], command: ['false'] }];
  const view = { listen: path.join(place.directory, 'view.sock') };
  const service = { jobsUrl: sandbox.jobsUrl };
  place.configure(sandbox, { service, watch: [requestOf(job)], api: { directory }, notify, view, watchMine: {} });
  const agent = await place.run();
  await agent.logs('sockets listening');
  await place.mirrored(job, 'stdout');
  const [read, control] = [path.join(directory, 'read.sock'), path.join(directory, 'control.sock')];
  return { place, sandbox, job, agent, read, control };
}

test('docs/openapi.json has the routes of the server', () => {
  const routes = routesOf({} as ApiParts).map(({ method, path: at }) => `${method} ${at}`);
  expect(documentedRoutes().sort()).toEqual(routes.sort());
});

test('each route responds as docs/openapi.json says, and the snippet of docs/gateway.md works', async (context) => {
  const { sandbox, place, job, read, control } = await setUp(context);
  const { jobId } = job;
  const submitted = await sandbox.submit({ tasks: [{}] });
  const [other, task] = [submitted.jobId, taskOf(submitted)];
  const events = http.request({ socketPath: read, path: '/v1/events' }).end();
  const [stream] = (await once(events, 'response')) as [http.IncomingMessage];
  let streamed = '';
  stream.on('data', (chunk: Buffer) => {
    streamed += String(chunk);
  });
  await until('the stream', async () => streamed !== '');
  const asked: readonly [route: string, at: string, sent?: Sent][] = [
    ['GET /v1/openapi.json', '/v1/openapi.json'],
    ['POST /v1/jobs', '/v1/jobs', { method: 'POST', body: JSON.stringify({ jobId: other, files: ['stdout'] }) }],
    ['GET /v1/jobs', '/v1/jobs'],
    ['GET /v1/jobs', '/v1/jobs?all=1'],
    ['GET /v1/jobs/:job', `/v1/jobs/${jobId}`],
    ['GET /v1/jobs/:job/results', `/v1/jobs/${jobId}/results`],
    ['GET /v1/jobs/:job/wait', `/v1/jobs/${jobId}/wait?seconds=0`],
    ['GET /v1/jobs/:job/verification', `/v1/jobs/${jobId}/verification`],
    ['GET /v1/reported-jobs', '/v1/reported-jobs'],
    ['GET /v1/notifications', '/v1/notifications'],
    ['POST /v1/jobs/:job/sync', `/v1/jobs/${jobId}/sync`, { method: 'POST' }],
    ['DELETE /v1/jobs/:job', `/v1/jobs/${jobId}`, { method: 'DELETE' }],
    ['DELETE /v1/jobs/:job', `/v1/jobs/${other}?now=1`, { method: 'DELETE' }],
    ['GET /v1/jobs/:job/wait', `/v1/jobs/${jobId}/wait`],
  ];
  for (const [route, at, sent] of asked) {
    const { status, json } = await ask(control, at, sent);
    expect(status, `${route}: ${JSON.stringify(json)}`).toBe(200);
    expect(differences(route, json), route).toEqual([]);
    // It waits for the first task of the job.
    if (route === 'POST /v1/jobs') expect(json['files']).toEqual([place.mirrorOf(other, task.taskId, 'stdout')]);
  }
  expect([...new Set(asked.map(([route]) => route)), 'GET /v1/events'].sort()).toEqual(documentedRoutes().sort());
  await until('an event', async () => streamed.includes('"started"'));
  for (const line of streamed.split('\n').slice(0, -1).filter(Boolean))
    expect(differences('GET /v1/events', JSON.parse(line)), line).toEqual([]);
  events.destroy();

  const page = fs.readFileSync(new URL('../../docs/gateway.md', import.meta.url), 'utf8');
  const [, snippet = ''] = /```python\n([\s\S]*?)```/.exec(page) ?? [];
  const program = snippet.replace('/run/agent/control.sock', control).replaceAll('501', other).replace('=600', '=1');
  expect(snippet.trim().split('\n').length).toBeLessThan(12);
  const python = spawn('python3', ['-c', program]);
  const printed = (await text(python.stdout)).split('\n');
  expect(printed[0]).toContain(`${place.mirror}/${other}/live/`);
  expect(printed.slice(1)).toEqual(['[]', '']);
});

test('a wrong request is refused with its reason, and read.sock changes nothing', async (context) => {
  const { job, agent, read, control } = await setUp(context);
  const post = (body: string): Sent => ({ method: 'POST', body });
  const refused: readonly [number, string, string, string, Sent?][] = [
    [404, 'there is nothing at this address', control, '/v1/nothing'],
    [404, 'there is nothing at this address', control, '/v1/jobs', { method: 'PUT' }],
    [404, 'is not watched', read, '/v1/jobs/987654'],
    [404, 'is not watched', read, '/v1/jobs/987654/wait'],
    [404, 'is not watched', read, '/v1/jobs/987654/results'],
    [404, 'is not watched', control, '/v1/jobs/987654', { method: 'DELETE' }],
    [404, 'the service has no job 987654 of this user', control, '/v1/jobs', post('{"jobId": "987654"}')],
    [400, 'expected a job id', read, '/v1/jobs/..%2f..%2fetc'],
    [400, 'seconds', read, `/v1/jobs/${job.jobId}/wait?seconds=-1`],
    [400, 'the body is no JSON', control, '/v1/jobs', post('{')],
    [400, 'the body', control, '/v1/jobs', post('{"jobId": 501}')],
    [400, 'the body', control, '/v1/jobs', post('{"jobId": "501", "tasks": ["x"]}')],
    [400, 'the body', control, '/v1/jobs', post('{"jobId": "501", "unknown": 1}')],
    [400, 'the body is too long', control, '/v1/jobs', post(' '.repeat(70_000))],
    [400, 'no interface for a page', read, '/v1/jobs', { headers: { origin: 'http://example.org' } }],
    [403, 'this socket changes nothing', read, '/v1/jobs', post('{"jobId": "501"}')],
    [403, 'this socket changes nothing', read, `/v1/jobs/${job.jobId}`, { method: 'DELETE' }],
  ];
  for (const [status, message, socket, at, sent] of refused) {
    const response = await ask(socket, at, sent);
    expect(errorDifferences(response.json), at).toEqual([]);
    expect(response, at).toMatchObject({ status, json: { error: { message: expect.stringContaining(message) } } });
  }
  expect(agent.logged('request at a socket failed')).toEqual([]);
});

test('clients that hang neither keep others out nor delay a stop', async (context) => {
  const { job, agent, read } = await setUp(context);
  const hanging = await Promise.all(
    Array.from({ length: 400 }, async (_, index) => {
      const connection = net.connect(read);
      connection.on('error', () => {});
      await once(connection, 'connect');
      const line =
        index % 2 === 0 ? `GET /v1/jobs/${job.jobId}/wait?seconds=3600 HTTP/1.1\r\nhost: x\r\n\r\n` : 'GET /v1';
      connection.write(line);
      return connection;
    }),
  );
  expect((await ask(read, '/v1/jobs')).status).toBe(200);
  agent.signal('SIGTERM');
  expect(await agent.ended).toMatchObject({ code: 0 });
  for (const connection of hanging) connection.destroy();
  expect(fs.readdirSync(path.dirname(read))).toEqual([]);
});

test('twelve jobs are watched at once, and a stream of events outlives hundreds of newer connections', async (context) => {
  const { sandbox, control } = await setUp(context);
  const jobs = await Promise.all(Array.from({ length: 12 }, () => sandbox.submit({ tasks: [{}] })));
  const events = http.request({ socketPath: control, path: '/v1/events', agent: false }).end();
  const [stream] = (await once(events, 'response')) as [http.IncomingMessage];
  stream.resume();
  const watch = ({ jobId }: { readonly jobId: string }) =>
    ask(control, '/v1/jobs', { method: 'POST', body: JSON.stringify({ jobId }) });
  expect((await Promise.all(jobs.map(watch))).map(({ status }) => status)).toEqual(jobs.map(() => 200));
  const idle = Array.from({ length: 300 }, () => net.connect(control).on('error', () => {}));
  context.onTestFinished(() => {
    for (const socket of idle) socket.destroy();
    events.destroy();
  });
  await until('all of them', async () => idle.every(({ pending, destroyed }) => destroyed || !pending));
  expect((await ask(control, '/v1/jobs')).status).toBe(200);
  expect(stream.destroyed).toBe(false);
});
