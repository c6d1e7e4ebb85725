/** What `metrics.listen` opens: the numbers of the agent, and how it stands, over HTTP. */
import fs from 'node:fs/promises';
import type { Log } from '../agent/ports.ts';
import type { Config } from '../config/config.ts';
import type { Store } from '../store/store.ts';
import type { FleetNumbers, Metrics } from './metrics.ts';
import { type MetricsServer, serveMetrics } from './metrics-server.ts';
import type { Standing } from './standing.ts';

export interface MetricsPortOptions {
  /** Of the program. */
  readonly version: string;
  readonly store: Store;
  readonly standing: Standing;
  readonly log: Log;
  readonly logLinesLost: () => number;
  /** Calls that wait for their turn. */
  readonly callsWaiting: () => number;
  /** How the agent stands in its fleet; undefined where there is none. */
  readonly fleetNumbers: () => (() => FleetNumbers) | undefined;
}

export class MetricsPort {
  readonly #options: MetricsPortOptions;
  #metrics: Metrics | undefined;
  #server: MetricsServer | undefined;
  #directories: Readonly<Record<string, string>> = {};

  constructor(options: MetricsPortOptions) {
    this.#options = options;
  }

  /** From the first configuration on that has them: they take a tenth of a start, and memory. */
  get metrics(): Metrics | undefined {
    return this.#metrics;
  }

  /** Listens where a configuration says. An address that cannot be used costs the metrics, never the mirrors. */
  async serve({ metrics: { listen }, mirror, state }: Config): Promise<void> {
    await this.close();
    this.#directories = { mirror: mirror.directory, state: state.directory };
    if (listen === null) return;
    const { log, standing } = this.#options;
    this.#metrics ??= await this.#newMetrics();
    const metrics = this.#metrics;
    try {
      this.#server = await serveMetrics({
        ...listen,
        metrics: async () => ({ contentType: metrics.contentType, text: await metrics.text() }),
        unhealthy: () => standing.unhealthy(),
        unready: () => standing.unready(),
      });
      log.info({ port: this.#server.port }, `metrics are at http://${listen.host}:${this.#server.port}/metrics`);
    } catch (error) {
      const err = error instanceof Error ? error.message : String(error);
      const hint = 'set metrics.listen to a free address of this machine';
      const said = `there are no metrics: ${listen.host}:${listen.port} cannot be used: ${err}`;
      log.error({ scope: 'metrics', code: 'config', err, hint }, said);
    }
  }

  async close(): Promise<void> {
    await this.#server?.close();
    this.#server = undefined;
  }

  async #newMetrics(): Promise<Metrics> {
    const { version, store, logLinesLost, callsWaiting, standing, fleetNumbers } = this.#options;
    const { Metrics } = await import('./metrics.ts');
    return new Metrics({
      ...{ version, logLinesLost, callsWaiting },
      totals: () => store.totals.read(),
      turnAgeSeconds: () => standing.turnAgeMs / 1000,
      freeBytes: () => this.#freeBytes(),
      now: Date.now,
      fleet: fleetNumbers(),
    });
  }

  async #freeBytes(): Promise<Record<string, number>> {
    const free: Record<string, number> = {};
    for (const [name, directory] of Object.entries(this.#directories)) {
      const found = await fs.statfs(directory).catch(() => undefined);
      if (found !== undefined) free[name] = found.bavail * found.bsize;
    }
    return free;
  }
}
