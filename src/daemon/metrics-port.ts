/** The HTTP server of `metrics.listen`: metrics and health. */
import { once } from 'node:events';
import fs from 'node:fs/promises';
import http from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../agent/ports/host.ts';
import type { Config } from '../config/config.ts';
import { asJobtailError } from '../errors.ts';
import type { AgentHealth } from './health.ts';
import type { MeasuredAgent, Metrics } from './metrics.ts';

interface MetricsPortOptions extends MeasuredAgent {
  readonly health: AgentHealth;
  readonly log: Log;
}

/** A file system that takes longer hangs: its number is left out. */
const MAX_ASKING_MS = 2_000;

export class MetricsPort {
  readonly #options: MetricsPortOptions;
  /** By directory. One that hangs is not asked again meanwhile: each request takes one of a few threads. */
  readonly #asking = new Map<string, Promise<number | undefined>>();
  /** Created with the first configuration that has metrics: they take a tenth of a start, and memory. */
  #metrics: Metrics | undefined;
  #server: MetricsServer | undefined;
  #directories: Readonly<Record<string, string>> = {};

  constructor(options: MetricsPortOptions) {
    this.#options = options;
  }

  /** Listens on the configured address. A failure disables only the metrics. */
  async serve({ metrics: { listen }, mirror, state }: Config): Promise<void> {
    await this.close();
    this.#directories = { mirror: mirror.directory, state: state.directory };
    if (listen === null) return;
    const { log, health } = this.#options;
    this.#metrics ??= await this.#newMetrics();
    const metrics = this.#metrics;
    try {
      this.#server = await serveMetrics({
        ...listen,
        metrics: () => metrics.text(),
        unhealthy: () => health.unhealthy(),
        unready: () => health.unready(),
      });
      log.info({ host: listen.host, port: this.#server.port }, 'metrics listening');
    } catch (error) {
      const err = error instanceof Error ? error.message : String(error);
      const hint = 'set metrics.listen to a free address of this machine';
      const { host, port } = listen;
      log.error({ scope: 'metrics', code: 'config', host, port, err, hint }, 'cannot listen for metrics');
    }
  }

  async close(): Promise<void> {
    await this.#server?.close();
    this.#server = undefined;
  }

  async #newMetrics(): Promise<Metrics> {
    const { Metrics } = await import('./metrics.ts');
    return new Metrics({ ...this.#options, freeBytes: () => this.#freeBytes(), now: Date.now });
  }

  async #freeBytes(): Promise<Record<string, number>> {
    const free: Record<string, number> = {};
    const add = async (name: string, directory: string) => {
      const bytes = await Promise.race([this.#freeIn(directory), sleep(MAX_ASKING_MS, undefined, { ref: false })]);
      if (bytes !== undefined) free[name] = bytes;
    };
    await Promise.all(Object.entries(this.#directories).map(([name, directory]) => add(name, directory)));
    return free;
  }

  #freeIn(directory: string): Promise<number | undefined> {
    const read = async () => {
      const found = await fs.statfs(directory).catch(() => undefined);
      this.#asking.delete(directory);
      return found && found.bavail * found.bsize;
    };
    const asked = this.#asking.get(directory) ?? read();
    this.#asking.set(directory, asked);
    return asked;
  }
}

interface MetricsServerOptions {
  readonly host: string;
  readonly port: number;
  readonly metrics: () => Promise<string>;
  readonly unhealthy: () => string | undefined;
  readonly unready: () => string | undefined;
  /** Maximum time of one request on a connection, in milliseconds. */
  readonly requestMs?: number;
}

export interface MetricsServer {
  readonly port: number;
  close(): Promise<void>;
}

/** Above it, the connection that was idle longest is closed, so that a health check always gets a connection. */
const MAX_CONNECTIONS = 32;
const REQUEST_MS = 10_000;
/** More requests on one connection are refused: hundreds can come in one packet. */
const MAX_REQUESTS = 16;
/** That of prom-client, which is loaded with the first metrics. */
const PROMETHEUS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';
/** Node.js checks for late requests only every 30 seconds by default. */
const TICK_MS = 1_000;

export async function serveMetrics(options: MetricsServerOptions): Promise<MetricsServer> {
  const { requestMs = REQUEST_MS } = options;
  // The time for the headers is at most that.
  const limits = { requestTimeout: requestMs, connectionsCheckingInterval: TICK_MS };
  // Concurrent requests share one computation.
  let adding: Promise<string> | undefined;
  const metrics = () => {
    adding ??= options.metrics().finally(() => {
      adding = undefined;
    });
    return adding;
  };
  const server = http.createServer(limits, (request, response) => {
    void answer(request, { ...options, metrics })
      .catch((error: unknown): PortAnswer => [500, `${asJobtailError(error).message}\n`])
      .then(([status, text, contentType = 'text/plain; charset=utf-8']) => {
        response.writeHead(status, { 'content-type': contentType, 'cache-control': 'no-store' });
        response.end(request.method === 'HEAD' ? undefined : text);
      });
  });
  // Applies when the client does not read the response.
  server.timeout = requestMs;
  server.maxRequestsPerSocket = MAX_REQUESTS;
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

function keepAPlace(server: http.Server): void {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    const [oldest] = sockets;
    if (sockets.size > MAX_CONNECTIONS) oldest?.destroy();
  });
  server.on('request', ({ socket }: http.IncomingMessage) => {
    if (sockets.delete(socket)) sockets.add(socket);
  });
}

type PortAnswer = readonly [status: number, text: string, contentType?: string];

async function answer({ method, url = '/' }: http.IncomingMessage, options: MetricsServerOptions): Promise<PortAnswer> {
  if (method !== 'GET' && method !== 'HEAD') return [405, 'only GET\n'];
  const verdict = (why: string | undefined): PortAnswer => (why === undefined ? [200, 'ok\n'] : [503, `${why}\n`]);
  switch (url.split('?')[0]) {
    case '/metrics':
      return [200, await options.metrics(), PROMETHEUS_CONTENT_TYPE];
    case '/healthz':
      return verdict(options.unhealthy());
    case '/readyz':
      return verdict(options.unready());
    default:
      return [404, 'there is /metrics, /healthz and /readyz\n'];
  }
}
