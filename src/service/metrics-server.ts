/** The small HTTP server of `metrics.listen`: /metrics for Prometheus, /healthz and /readyz for whoever supervises. */
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { asJobtailError } from '../errors.ts';

export interface MetricsServerOptions {
  readonly host: string;
  readonly port: number;
  readonly metrics: () => Promise<{ readonly contentType: string; readonly text: string }>;
  /** Why the agent should be restarted; undefined if it should not. */
  readonly unhealthy: () => string | undefined;
  /** Why the agent cannot do its work now; undefined if it can. */
  readonly unready: () => string | undefined;
}

export interface MetricsServer {
  readonly port: number;
  close(): Promise<void>;
}

const MOST_CONNECTIONS = 32;
const REQUEST_MS = 10_000;

/** Rejects with the error of `listen` if the address cannot be used. */
export async function serveMetrics(options: MetricsServerOptions): Promise<MetricsServer> {
  const server = http.createServer({ requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS }, (request, response) => {
    answer(request, options).then(
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
  server.maxConnections = MOST_CONNECTIONS;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
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
