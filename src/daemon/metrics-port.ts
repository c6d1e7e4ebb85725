/** The HTTP server of `metrics.listen`, for one configuration after the other. */
import fs from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../agent/ports/host.ts';
import type { Config } from '../config/config.ts';
import type { Served } from '../http/server.ts';
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
  #server: Served | undefined;
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
    const { serveMetrics } = await import('./metrics-routes.ts');
    this.#metrics ??= await this.#newMetrics();
    const metrics = this.#metrics;
    try {
      this.#server = await serveMetrics(listen, {
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
