/** The server of HTTP: its connections, the places of requests, bodies that are made while they are sent. */
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import type { HttpContext } from '../../src/http/app.ts';
import { Limits } from '../../src/http/refused.ts';
import { serveHttp } from '../../src/http/server.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

const REQUEST = 'GET / HTTP/1.1\r\nHost: here\r\n\r\n';

type Fetch = (request: Request, env: HttpContext['env']) => Response | Promise<Response>;

async function served(fetch: Fetch, options: Parameters<typeof serveHttp>[2] = {}, isAdmitted = false) {
  const server = await serveHttp(
    { host: '127.0.0.1', port: 0 },
    (connections) => ({
      fetch: (request, env) => {
        const { incoming } = env as HttpContext['env'];
        // Else an idle connection ends within the time that others take on a busy machine.
        (incoming.socket as unknown as { server: http.Server }).server.keepAliveTimeout = 0;
        if (isAdmitted || incoming.url === '/admitted') connections.admit(incoming.socket);
        return fetch(request, env as HttpContext['env']);
      },
    }),
    options,
  );
  onTestFinished(() => server.close().catch(() => {}));
  return { server, at: { host: '127.0.0.1', port: server.port } };
}

it('a connection has one request after the other, and is ended by two at a time', async () => {
  let asked = 0;
  const { at } = await served(() => new Response(`here ${++asked}`));
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
  // The second one is not looked at.
  expect(asked).toBe(4);
});

/** Connections, each of which got the start of a response. */
async function connected(at: net.TcpNetConnectOpts, count: number, target: string) {
  const list: net.Socket[] = [];
  for (let made = 0; made < count; made++) {
    const socket = net.connect(at).on('error', () => {});
    onTestFinished(() => void socket.destroy());
    socket.write(REQUEST.replace('/', target));
    await once(socket, 'data');
    socket.resume();
    list.push(socket);
  }
  return list;
}

it.each([
  ['without a session', '/'],
  ['with a session', '/admitted'],
])(
  'connections %s that have ended do not count: the 257th of those that are open ends the first',
  async (_, target) => {
    const { at } = await served(() => new Response('here'));
    const connect = async () => (await connected(at, 1, target))[0] as net.Socket;
    for (let ended = 0; ended < 257; ended++) await once((await connect()).end(), 'close');
    const first = await connect();
    await connected(at, 255, target);
    expect(first.closed).toBe(false);
    const ended = once(first, 'close');
    await connect();
    await ended;
  },
);

it('connections without a session end none of those with one', async () => {
  const { at } = await served(() => new Response('here'));
  const sockets = [...(await connected(at, 200, '/admitted')), ...(await connected(at, 200, '/'))];
  await connected(at, 1, '/');
  expect(sockets.filter(({ closed, readableEnded }) => closed || readableEnded)).toEqual([]);
});

it('of too many connections with a session, the one that is longest without a request ends, and no stream', async () => {
  const { at } = await served(
    ({ url }) => {
      if (!url.endsWith('/stream')) return new Response('here');
      return new Response(new ReadableStream({ start: (body) => body.enqueue(Buffer.from('a')) }));
    },
    {},
    true,
  );
  const [stream] = await connected(at, 1, '/stream');
  const [first, second, ...others] = await connected(at, 255, '/');
  first?.write(REQUEST);
  await once(first as net.Socket, 'data');
  const ended = once(second as net.Socket, 'close');
  await connected(at, 1, '/');
  await ended;
  expect([stream, first, ...others].filter((socket) => socket?.closed !== false)).toEqual([]);
});

it('a request of HTTP/1.0 that names no host is refused, and the next one is answered', async () => {
  const { at } = await served(() => new Response('here'));
  for (const [request, status] of [
    ['GET / HTTP/1.0\r\n\r\n', 400],
    ['GET / HTTP/1.0\r\nHost: here\r\n\r\n', 200],
  ] as const)
    expect(await text(net.connect(at).end(request))).toMatch(`HTTP/1.1 ${status} `);
});

it('the prefix of a proxy is removed from a path, where the proxy keeps it', async () => {
  const { at } = await served(({ url }) => new Response(new URL(url).pathname), { prefix: '/jobs/' });
  for (const path of ['/jobs/api/lines', '/api/lines']) {
    const [response] = (await once(http.get({ ...at, path, agent: false }), 'response')) as [http.IncomingMessage];
    expect(await text(response)).toBe('/api/lines');
  }
});

it('a server that is closed ends the requests under way, and removes its socket', async () => {
  const socketPath = path.join(temporaryDirectory(), 'socket');
  const requests = new EventTarget();
  const asked = once(requests, 'asked');
  const sockets: net.Socket[] = [];
  const server = await serveHttp({ path: socketPath }, () => ({
    fetch(_, env) {
      sockets.push((env as HttpContext['env']).incoming.socket);
      requests.dispatchEvent(new Event('asked'));
      return new Promise<never>(() => {});
    },
  }));
  const request = http.get({ socketPath, agent: false });
  onTestFinished(() => void request.destroy());
  const failed = once(request, 'error');
  await asked;
  await server.close();
  expect([server.port, sockets.map(({ closed }) => closed), fs.existsSync(socketPath)]).toEqual([0, [true], false]);
  await failed;
});

it('of a kind of work there are so many at a time, and each gives its place back once', () => {
  const limits = new Limits();
  const [first] = Array.from({ length: 16 }, () => limits.take('downloads'));
  expect(() => limits.take('downloads')).toThrow('there are 16 downloads already');
  first?.();
  limits.take('downloads');
  first?.();
  expect(() => limits.take('downloads')).toThrow('already');
});

it.each([
  ['of 10 s, which are not limited between requests', {}, [10_000, 2_000, 0]],
  ['as they are set', { idleMs: 60_000, requestMs: 5_000 }, [5_000, 1_000, 60_000]],
])('the times of a connection are %s', async (_, options, times) => {
  let found: unknown;
  const { at } = await served((__, { incoming }) => {
    const { server } = incoming.socket as unknown as { server: http.Server & { connectionsCheckingInterval: number } };
    found = [server.requestTimeout, server.connectionsCheckingInterval, server.timeout];
    return new Response('here');
  }, options);
  await once(http.get({ ...at, agent: false }), 'response');
  expect(found).toEqual(times);
});
