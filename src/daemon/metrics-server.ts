/** The small HTTP server of `metrics.listen`: /metrics for Prometheus, /healthz and /readyz for whoever supervises. */
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { asJobtailError } from '../errors.ts';

export interface MetricsServerOptions {
  readonly host: string;
  readonly port: number;
  readonly metrics: () => Promise<{ readonly contentType: string; readonly text: string }>;
  /** Why the agent should be restarted; undefined if it should not. */
  readonly unhealthy: () => string | undefined;
  /** Why the agent cannot do its work now; undefined if it can. */
  readonly unready: () => string | undefined;
  /** How long a connection may be busy with one request, in milliseconds. */
  readonly requestMs?: number;
}

export interface MetricsServer {
  readonly port: number;
  close(): Promise<void>;
}

/** Beyond it the connection that was longest without a new request gives way: a health check always has its place. */
export const MOST_CONNECTIONS = 32;
export const REQUEST_MS = 10_000;
/** More on one connection is refused: hundreds of requests can come in one packet. */
const MOST_REQUESTS = 16;
/** Node.js looks for requests that are late only every 30 seconds by itself. */
const LOOK_MS = 1_000;

/** Rejects with the error of `listen` if the address cannot be used. */
export async function serveMetrics(options: MetricsServerOptions): Promise<MetricsServer> {
  const { requestMs = REQUEST_MS } = options;
  const limits = { requestTimeout: requestMs, headersTimeout: requestMs, connectionsCheckingInterval: LOOK_MS };
  // However many ask at a time, the numbers are added up once.
  let adding: ReturnType<typeof options.metrics> | undefined;
  const metrics = () => {
    adding ??= options.metrics().finally(() => {
      adding = undefined;
    });
    return adding;
  };
  const server = http.createServer(limits, (request, response) => {
    answer(request, { ...options, metrics }).then(
      ({ status, contentType = 'text/plain; charset=utf-8', text }) => {
        response.writeHead(status, { 'content-type': contentType, 'cache-control': 'no-store' });
        response.end(request.method === 'HEAD' ? undefined : text);
      },
      (error: unknown) => {
        response.writeHead(500, { 'content-type': 'text/plain; charset=utf-8' });
        response.end(`${asJobtailError(error).message}\n`);
      },
    );
  });
  // Somebody who does not read the answer.
  server.timeout = requestMs;
  server.maxRequestsPerSocket = MOST_REQUESTS;
  keepAPlace(server);
  server.listen(options.port, options.host);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

/** However many connections are held, there is room for a new one. */
function keepAPlace(server: http.Server): void {
  /** The one that was longest without a new request first. */
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    const [oldest] = sockets;
    if (sockets.size > MOST_CONNECTIONS) oldest?.destroy();
  });
  server.on('request', ({ socket }: http.IncomingMessage) => {
    if (sockets.delete(socket)) sockets.add(socket);
  });
}

interface Answer {
  readonly status: number;
  readonly contentType?: string;
  readonly text: string;
}

async function answer({ method, url = '/' }: http.IncomingMessage, options: MetricsServerOptions): Promise<Answer> {
  if (method !== 'GET' && method !== 'HEAD') return { status: 405, text: 'only GET\n' };
  switch (url.split('?')[0]) {
    case '/metrics':
      return { status: 200, ...(await options.metrics()) };
    case '/healthz':
      return verdict(options.unhealthy());
    case '/readyz':
      return verdict(options.unready());
    default:
      return { status: 404, text: 'there is /metrics, /healthz and /readyz\n' };
  }
}

const verdict = (why: string | undefined): Answer =>
  why === undefined ? { status: 200, text: 'ok\n' } : { status: 503, text: `${why}\n` };
