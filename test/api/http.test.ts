/** What a program asks at the sockets: docs/openapi.json and the snippet of docs/gateway.md. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { routesOf } from '../../src/api/routes.ts';
import type { ApiParts } from '../../src/api/work.ts';
import { ask, socketPlace } from '../support/api-place.ts';
import { differences, documentedRoutes } from '../support/api-schema.ts';
import { until } from '../support/e2e-until.ts';

test('docs/openapi.json has the routes of the server', () => {
  const routes = routesOf({} as ApiParts).map(({ method, path: at }) => `${method} ${at}`);
  expect(documentedRoutes().sort()).toEqual(routes.sort());
});

test('an agent responds as docs/openapi.json says, read.sock changes nothing, and the snippet of docs/gateway.md works', async (context) => {
  const { sandbox, place, job, agent, read, control } = await socketPlace(context);
  const { jobId: other } = await sandbox.submit({ tasks: [{}] });
  const events = http.request({ socketPath: read, path: '/v1/events' }).end();
  const [stream] = (await once(events, 'response')) as [http.IncomingMessage];
  expect(stream.headers['content-type']).toBe('application/x-ndjson');
  let streamed = '';
  stream.on('data', (chunk: Buffer) => {
    streamed += String(chunk);
  });
  await until('the stream', async () => streamed !== '');
  const page = fs.readFileSync(new URL('../../docs/gateway.md', import.meta.url), 'utf8');
  const [, snippet = ''] = /```python\n([\s\S]*?)```/.exec(page) ?? [];
  const program = snippet.replace('/run/agent/control.sock', control).replaceAll('501', other).replace('=600', '=1');
  expect(snippet.trim().split('\n').length).toBeLessThan(12);
  const python = spawn('python3', ['-c', program]);
  const printed = (await text(python.stdout)).split('\n');
  // It waits for the first task of the job.
  expect(printed[0]).toContain(`${place.mirror}/${other}/live/`);
  expect(printed.slice(1)).toEqual(['[]', '']);
  // What the agent itself makes; of all routes, requests.txt has the responses.
  for (const [route, at, method] of [
    ['GET /v1/jobs/:job/verification', `/v1/jobs/${job.jobId}/verification`, 'GET'],
    ['GET /v1/reported-jobs', '/v1/reported-jobs', 'GET'],
    ['POST /v1/jobs/:job/sync', `/v1/jobs/${job.jobId}/sync`, 'POST'],
    ['DELETE /v1/jobs/:job', `/v1/jobs/${job.jobId}`, 'DELETE'],
  ] as const) {
    const { status, json } = await ask(control, at, { method });
    expect([status, differences(route, json)], JSON.stringify(json)).toEqual([200, []]);
  }
  await until('an event', async () => streamed.includes('"started"'));
  for (const line of streamed.split('\n').slice(0, -1).filter(Boolean))
    expect(differences('GET /v1/events', JSON.parse(line)), line).toEqual([]);
  events.destroy();
  // In the thread, which gives each socket its gate.
  for (const [status, message, sent] of [
    [400, 'this is no interface for a page', { headers: { origin: 'http://example.org' } }],
    [403, 'this socket changes nothing', { method: 'POST', body: '{}' }],
  ] as const)
    expect(await ask(read, '/v1/jobs', sent)).toMatchObject({ status, json: { error: { message } } });
  expect(agent.logged('request at a socket failed')).toEqual([]);
});
