/** The HTTP servers of an agent: how many connections they have, and with how many requests. */
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { listenAt, type Place } from '../system/listen.ts';

export interface Served {
  /** 0 of a Unix socket. */
  readonly port: number;
  close(): Promise<void>;
}

interface ServedApp {
  readonly fetch: Parameters<typeof getRequestListener>[0];
}

interface ServerOptions {
  /** What some proxies keep before the path of a request, and others take away. */
  readonly prefix?: string;
  /** A connection without bytes for so long is ended; 0: none is. */
  readonly idleMs?: number;
  /** A request that is not whole after so many milliseconds ends its connection; 10,000 by default. */
  readonly requestMs?: number;
}

/** Serves until it is closed. @throws what `listen` fails with; JobtailError */
export async function serveHttp(
  listen: Place,
  appOf: (connections: Connections) => ServedApp,
  { prefix = '/', idleMs = 0, requestMs = 10_000 }: ServerOptions = {},
): Promise<Served> {
  const server = http.createServer({ requestTimeout: requestMs, connectionsCheckingInterval: requestMs / 5 });
  server.timeout = idleMs;
  const connections = new Connections(server);
  const answer = getRequestListener(appOf(connections).fetch);
  server.on('request', (request, response) => {
    if (request.url?.startsWith(prefix) === true) request.url = request.url.slice(prefix.length - 1);
    if (connections.begin(request, response)) void answer(request, response);
  });
  const leave = await listenAt(server, listen);
  return {
    port: 'path' in listen ? 0 : (server.address() as AddressInfo).port,
    async close() {
      leave();
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

/** The maximum of connections without a session, and as many with one. */
const MAX_CONNECTIONS = 256;

/**
 * However many connections strangers hold, there is room for a browser with a session; and a connection has one request
 * at a time: hundreds can come in one packet, and each would take its memory before the first is answered.
 */
export class Connections {
  /** Those that showed no session yet, the oldest first. */
  readonly #strangers = new Set<Socket>();
  /** Those that did, the one longest without a request first. */
  readonly #admitted = new Set<Socket>();
  readonly #busy = new Set<Socket>();

  constructor(server: http.Server) {
    server.on('connection', (socket: Socket) => {
      this.#strangers.add(socket);
      socket.once('close', () => {
        for (const sockets of [this.#strangers, this.#admitted, this.#busy]) sockets.delete(socket);
      });
      const [oldest] = this.#strangers;
      if (this.#strangers.size > MAX_CONNECTIONS) oldest?.destroy();
    });
  }

  /** Whether a request may be looked at. A second one before the answer to the first ends the connection. */
  begin({ socket }: http.IncomingMessage, response: http.ServerResponse): boolean {
    if (socket.destroyed) return false;
    if (this.#busy.has(socket)) {
      socket.destroy();
      return false;
    }
    this.#busy.add(socket);
    response.once('close', () => void this.#busy.delete(socket));
    return true;
  }

  /** Its request showed a session. */
  admit(socket: Socket): void {
    this.#strangers.delete(socket);
    this.#admitted.delete(socket);
    this.#admitted.add(socket);
    if (this.#admitted.size <= MAX_CONNECTIONS) return;
    // A stream that is read goes on.
    const idle = [...this.#admitted].find((each) => !this.#busy.has(each));
    (idle ?? socket).destroy();
  }
}
