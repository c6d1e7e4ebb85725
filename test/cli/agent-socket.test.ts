/** What a command asks the agent at its sockets. */
import http from 'node:http';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { jobsOfAgent } from '../../src/cli/agent-socket.ts';
import type { JobId } from '../../src/job.ts';
import { listenAt } from '../../src/system/listen.ts';
import { restConfig } from '../config/files.ts';

it('agent status asks for the report of the agent once, or once for each named job', async () => {
  const { directory, config } = await restConfig({ api: { directory: '.' } });
  const asked: string[] = [];
  const surroundings = { disks: [{ freeBytes: 1 }], view: { address: 'there', answers: true } };
  const server = http.createServer((request, response) => {
    asked.push(request.url ?? '');
    response.end(JSON.stringify({ jobs: [], ...surroundings }));
  });
  await listenAt(server, { path: path.join(directory, 'read.sock') });
  onTestFinished(() => void server.close());
  const jobs = jobsOfAgent(config);
  expect(await jobs.report(undefined)).toEqual({ jobs: [], ...surroundings });
  expect(asked).toEqual(['/v1/jobs']);
  expect(await jobs.report(['501', '502'] as JobId[])).toEqual({ jobs: [], ...surroundings });
  expect(asked.slice(1)).toEqual(['/v1/jobs/501', '/v1/jobs/502']);
});
