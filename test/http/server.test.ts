/** The server of HTTP: its connections, the places of requests, bodies that are made while they are sent. */
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import type { HttpContext } from '../../src/http/app.ts';
import { type Limited, Limits } from '../../src/http/refused.ts';
import { serveHttp } from '../../src/http/server.ts';
import { streamed } from '../../src/http/streams.ts';

const REQUEST = 'GET / HTTP/1.1\r\nHost: here\r\n\r\n';

type Fetch = (request: Request, env: HttpContext['env']) => Response | Promise<Response>;

async function served(fetch: Fetch, prefix = '/', isAdmitted = false) {
  const server = await serveHttp(
    { host: '127.0.0.1', port: 0 },
    (connections) => ({
      fetch: (request, env) => {
        if (isAdmitted) connections.admit((env as HttpContext['env']).incoming.socket);
        return fetch(request, env as HttpContext['env']);
      },
    }),
    { prefix },
  );
  onTestFinished(() => server.close().catch(() => {}));
  return { server, at: { host: '127.0.0.1', port: server.port } };
}

it('a connection has one request after the other, and is ended by two at a time', async () => {
  const { at } = await served(() => new Response('here'));
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
  socket.resume().write(REQUEST.repeat(2));
  await once(socket, 'close');
});

it.each([
  ['without a session', false],
  ['with a session', true],
])(
  'connections %s that have ended do not count: the 257th of those that are open ends the first',
  async (_, isAdmitted) => {
    const { at } = await served(() => new Response('here'), '/', isAdmitted);
    const connect = async () => {
      const socket = net.connect(at).on('error', () => {});
      socket.write(REQUEST);
      await once(socket, 'data');
      return socket;
    };
    for (let ended = 0; ended < 257; ended++) await once((await connect()).resume().end(), 'close');
    const first = await connect();
    const next = new Promise((resolve) => {
      first.once('close', () => resolve('ended')).once('data', () => resolve('answered'));
    });
    for (let open = 1; open < 257; open++) {
      const socket = await connect();
      onTestFinished(() => void socket.destroy());
    }
    first.write(REQUEST);
    expect(await next).toBe('ended');
  },
);

it('the prefix of a proxy is removed from a path, where the proxy keeps it', async () => {
  const { at } = await served(({ url }) => new Response(new URL(url).pathname), '/jobs/');
  for (const path of ['/jobs/api/lines', '/api/lines']) {
    const [response] = (await once(http.get({ ...at, path, agent: false }), 'response')) as [http.IncomingMessage];
    expect(await text(response)).toBe('/api/lines');
  }
});

it('a server that is closed ends the requests under way', async () => {
  const requests = new EventTarget();
  const asked = once(requests, 'asked');
  const { server, at } = await served(() => {
    requests.dispatchEvent(new Event('asked'));
    return new Promise<never>(() => {});
  });
  const request = http.get({ ...at, agent: false });
  onTestFinished(() => void request.destroy());
  const failed = once(request, 'error');
  await asked;
  await server.close();
  await failed;
});

it.each<[Limited, number]>([
  ['streams', 64],
  ['searches', 8],
  ['downloads', 16],
  ['windows', 32],
])('of %s there are %i at a time, and each gives its place back once', (kind, count) => {
  const limits = new Limits();
  const [first] = Array.from({ length: count }, () => limits.take(kind));
  expect(() => limits.take(kind)).toThrow(`there are ${count} ${kind} already`);
  first?.();
  first?.();
  limits.take(kind);
  expect(() => limits.take(kind)).toThrow('already');
});

it('a body that fails while it is sent breaks its connection: no part looks like all', async () => {
  const failures: unknown[] = [];
  const failure = new Error('the disk is gone');
  async function* pieces() {
    yield Buffer.from('first');
    throw failure;
  }
  const onFailure = (error: unknown) => void failures.push(error);
  const { at } = await served((_, env) =>
    streamed({ onFailure }, { env } as HttpContext, pieces(), { headers: {}, end: () => {} }),
  );
  const [response] = (await once(http.get({ ...at, agent: false }), 'response')) as [http.IncomingMessage];
  await expect(text(response)).rejects.toMatchObject({ code: 'ECONNRESET' });
  expect(failures).toEqual([failure]);
});
