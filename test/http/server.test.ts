/** The connections of an HTTP server: a request after the other, and never two at a time. */
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { serveHttp } from '../../src/http/server.ts';

it('a connection has one request after the other, and is ended by two at a time', async () => {
  const served = await serveHttp({ host: '127.0.0.1', port: 0 }, () => ({ fetch: () => new Response('here') }));
  onTestFinished(() => served.close());
  const at = { host: '127.0.0.1', port: served.port };
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  const reused: boolean[] = [];
  for (let requests = 0; requests < 3; requests++) {
    const request = http.get({ ...at, agent });
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    await once(response.resume(), 'end');
    reused.push(request.reusedSocket);
    // The connection is free again at the next turn.
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(reused).toEqual([false, true, true]);
  const socket = net.connect(at).on('error', () => {});
  socket.resume().write('GET / HTTP/1.1\r\nHost: here\r\n\r\n'.repeat(2));
  await once(socket, 'close');
});
