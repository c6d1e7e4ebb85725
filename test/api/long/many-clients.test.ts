/** What clients of the sockets that hang, or are many, keep from others. */
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { expect, test } from 'vitest';
import { ask, socketPlace } from '../../support/api-place.ts';

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
