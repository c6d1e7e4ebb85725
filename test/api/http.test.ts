/** What a program asks at the sockets: docs/openapi.json and the snippet of docs/gateway.md. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { routesOf } from '../../src/api/routes.ts';
import type { ApiParts } from '../../src/api/work.ts';
import { loadConfig } from '../../src/config/load.ts';
import { openSharedStore } from '../../src/daemon/state.ts';
import type { JobId } from '../../src/job.ts';
import { ask, type Sent, socketPlace } from '../support/api-place.ts';
import { differences, documentedRoutes } from '../support/api-schema.ts';
import { taskOf } from '../support/e2e-job.ts';
import { until } from '../support/e2e-until.ts';

test('docs/openapi.json has the routes of the server', () => {
  const routes = routesOf({} as ApiParts).map(({ method, path: at }) => `${method} ${at}`);
  expect(documentedRoutes().sort()).toEqual(routes.sort());
});

test('each route responds as docs/openapi.json says, read.sock changes nothing, and the snippet of docs/gateway.md works', async (context) => {
  const { sandbox, place, job, agent, read, control } = await socketPlace(context);
  const { jobId } = job;
  const submitted = await sandbox.submit({ tasks: [{}] });
  const [other, task] = [submitted.jobId, taskOf(submitted)];
  const events = http.request({ socketPath: read, path: '/v1/events' }).end();
  const [stream] = (await once(events, 'response')) as [http.IncomingMessage];
  expect(stream.headers['content-type']).toBe('application/x-ndjson');
  let streamed = '';
  stream.on('data', (chunk: Buffer) => {
    streamed += String(chunk);
  });
  await until('the stream', async () => streamed !== '');
  const asked: readonly [route: string, at: string, sent?: Sent][] = [
    ['GET /v1/openapi.json', '/v1/openapi.json'],
    [
      'POST /v1/jobs',
      '/v1/jobs',
      { method: 'POST', body: JSON.stringify({ jobId: other, files: ['stdout'], stallAfterMinutes: 90 }) },
    ],
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
    // Only what ends at once has no pass.
    if (sent?.method === 'DELETE') expect(json['pass'] === null, at).toBe(at.endsWith('now=1'));
    if (route !== 'POST /v1/jobs') continue;
    // It waits for the first task of the job.
    expect(json['files']).toEqual([place.mirrorOf(other, task.taskId, 'stdout')]);
    const store = openSharedStore(await loadConfig(place.configFile));
    expect(store.jobs.get(other as JobId)?.stallAfterMs).toBe(90 * 60_000);
    store.close();
  }
  const jobsAt = async (at: string) => JSON.stringify((await ask(control, at)).json).includes(`"${other}"`);
  expect([await jobsAt('/v1/jobs'), await jobsAt('/v1/jobs?all=1')]).toEqual([false, true]);
  expect([...new Set(asked.map(([route]) => route)), 'GET /v1/events'].sort()).toEqual(documentedRoutes().sort());
  await until('an event', async () => streamed.includes('"started"'));
  for (const line of streamed.split('\n').slice(0, -1).filter(Boolean))
    expect(differences('GET /v1/events', JSON.parse(line)), line).toEqual([]);
  events.destroy();

  const post = (body: object): Sent => ({ method: 'POST', body: JSON.stringify(body) });
  const refused: readonly [number, object, string, string, Sent?][] = [
    [
      404,
      { message: `the service has no task 987654 of job ${jobId}` },
      control,
      '/v1/jobs',
      post({ jobId, tasks: ['987654'] }),
    ],
    [404, { message: 'the service has no job 987654 of this user' }, control, '/v1/jobs', post({ jobId: '987654' })],
    [
      400,
      { message: 'this is no interface for a page' },
      read,
      '/v1/jobs',
      { headers: { origin: 'http://example.org' } },
    ],
    // In the thread, which gives each socket its gate.
    [403, { message: 'this socket changes nothing' }, read, '/v1/jobs', post({ jobId })],
  ];
  for (const [status, error, socket, at, sent] of refused)
    expect(await ask(socket, at, sent)).toMatchObject({ status, json: { error } });
  expect(agent.logged('request at a socket failed')).toEqual([]);

  const page = fs.readFileSync(new URL('../../docs/gateway.md', import.meta.url), 'utf8');
  const [, snippet = ''] = /```python\n([\s\S]*?)```/.exec(page) ?? [];
  const program = snippet.replace('/run/agent/control.sock', control).replaceAll('501', other).replace('=600', '=1');
  expect(snippet.trim().split('\n').length).toBeLessThan(12);
  const python = spawn('python3', ['-c', program]);
  const printed = (await text(python.stdout)).split('\n');
  expect(printed[0]).toContain(`${place.mirror}/${other}/live/`);
  expect(printed.slice(1)).toEqual(['[]', '']);
});
