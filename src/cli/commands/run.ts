/** `agent run`: the daemon. */
import path from 'node:path';
import type { Log } from '../../agent/ports.ts';
import { describeChanges, restartKeys } from '../../config/changes.ts';
import type { Config } from '../../config/config.ts';
import { loadConfig } from '../../config/load.ts';
import { asJobtailError } from '../../errors.ts';
import { createLog } from '../../service/log.ts';
import { watchFiles } from '../../service/watch-files.ts';
import { isOnNetworkFileSystem } from '../../store/database.ts';
import { type Store, WAKE_FILE } from '../../store/store.ts';
import { buildEngine, connect, openOwnStore, ordersOf } from '../compose.ts';
import { type ConfigOption, configurationOf } from '../configuration.ts';
import { stopSignals } from '../stop-signals.ts';

export async function run(options: ConfigOption): Promise<void> {
  const config = await configurationOf(options);
  const stopping = stopSignals();
  const owned = openOwnStore(config, createLog(config.logging));
  try {
    await followUntilStopped(config, owned.store, stopping.signal);
  } finally {
    owned.close();
    stopping.dispose();
  }
}

/** Follows by one configuration after the other, until it is stopped. */
async function followUntilStopped(first: Config, store: Store, stop: AbortSignal): Promise<void> {
  let config: Config | undefined = first;
  while (config !== undefined) config = await followBy(config, store, stop);
}

/** Follows by one configuration; resolves with the next one when it changes, with undefined when it is stopped. */
async function followBy(config: Config, store: Store, stop: AbortSignal): Promise<Config | undefined> {
  const log = createLog(config.logging);
  const connection = await connect(config, log);
  const { agent } = buildEngine({ config, store, remote: connection.remote, log });
  const reload = new Reload(config, log);
  const wakeFile = path.join(store.directory, WAKE_FILE);
  const unwatch = await watchFiles({
    files: [wakeFile, config.file],
    polling: isOnNetworkFileSystem(store.directory),
    onChange: (file) => (file === wakeFile ? agent.refresh() : reload.look()),
  });
  const hangup = () => reload.look();
  process.on('SIGHUP', hangup);
  try {
    agent.start(ordersOf(config));
    log.info({ jobs: agent.jobs, pid: process.pid }, `following ${agent.jobs} jobs`);
    return await Promise.race([reload.next, aborted(stop)]);
  } finally {
    process.off('SIGHUP', hangup);
    await unwatch();
    await agent.stop();
    await connection.close();
    if (stop.aborted) log.info({}, 'stopped');
  }
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });
}

/** Waits for a configuration that is valid and differs. */
class Reload {
  readonly next: Promise<Config>;
  readonly #config: Config;
  readonly #log: Log;
  #resolve: (config: Config) => void = () => {};
  #refused: string | undefined;

  constructor(config: Config, log: Log) {
    this.#config = config;
    this.#log = log;
    this.next = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  /** Reads the file again; an invalid one is refused with its message, and the old one stays. */
  look(): void {
    loadConfig(this.#config.file).then(
      (config) => this.#consider(config),
      (error: unknown) => this.#refuse(asJobtailError(error).message),
    );
  }

  #consider(config: Config): void {
    const changes = describeChanges(this.#config, config);
    if (changes.length === 0) return;
    const fixed = restartKeys(this.#config, config);
    if (fixed.length > 0) {
      this.#refuse(`${fixed.join(' and ')} can only be changed by a restart`);
      return;
    }
    this.#log.info({ changes }, `the configuration changed: ${changes.join(', ')}`);
    this.#resolve(config);
  }

  #refuse(reason: string): void {
    if (reason === this.#refused) return;
    this.#refused = reason;
    this.#log.error(
      { code: 'config', err: reason },
      `the changed configuration is refused, the old one stays: ${reason}`,
    );
  }
}
