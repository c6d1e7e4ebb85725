/** What clients of the sockets that hang, or are many, keep from others. */
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { expect, test } from 'vitest';
import { ask, socketPlace } from '../../support/api-place.ts';
import { until } from '../../support/e2e-until.ts';

test('clients that hang neither keep others out nor delay a stop', async (context) => {
  const { job, agent, read } = await socketPlace(context);
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
  const { sandbox, control } = await socketPlace(context);
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
