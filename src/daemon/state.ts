/** The state of a configuration, for processes beside its owner: `own-state.ts` loads much more. */
import { type Config, serviceAddress } from '../config/config.ts';
import { JobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import type { WatchRequest, WatchState } from '../store/rows.ts';
import { Store } from '../store/store.ts';
import { systemClock } from '../system/clock.ts';

/** A hint: the directory may be one of the system, such as /tmp. */
export const onlyOfAgent = (directory: string) =>
  `if only the agent uses it, run chmod 700 ${directory}; else set state.directory to another one`;

/** The store beside a running agent, or for reading. */
export function openSharedStore(config: Config): Store {
  return new Store({ ...storeOf(config), owner: false });
}

export async function withSharedStore<T>(config: Config, work: (store: Store) => T | Promise<T>): Promise<T> {
  const store = openSharedStore(config);
  try {
    return await work(store);
  } finally {
    store.close();
  }
}

/** The store beside its owner. */
export class SharedState {
  readonly #config: Config;
  #opened: Store | undefined;

  constructor(config: Config) {
    this.#config = config;
  }

  /** Opened again if another process removed or replaced it. @throws JobtailError store while there is none */
  get store(): Store {
    if (this.#opened?.isGone() === true) this.close();
    this.#opened ??= openSharedStore(this.#config);
    return this.#opened;
  }

  /** Undefined while there is no store, or if the user may not read it. */
  get ifReadable(): Store | undefined {
    try {
      return this.store;
    } catch {
      return undefined;
    }
  }

  /** What `work` returns; undefined without a store. Closes it. */
  use<T>(work: (store: Store) => T): T | undefined {
    try {
      const store = this.ifReadable;
      return store && work(store);
    } finally {
      this.close();
    }
  }

  close(): void {
    this.#opened?.close();
    this.#opened = undefined;
  }
}

export const storeOf = (config: Config) => ({
  directory: config.state.directory,
  service: serviceAddress(config.service),
  now: systemClock.now,
});

export function configuredJobs(config: Config): WatchRequest[] {
  return config.watch.map(({ job, tasks, files, results, settleAfterMs }) => ({
    jobId: job,
    tasks,
    files,
    results: results && config.results.enabled,
    settleAfterMs,
    source: 'config',
  }));
}

/** The state of a watched job. @throws JobtailError job-unknown */
export function requireWatched(store: Store, jobId: JobId): WatchState {
  const job = store.jobs.get(jobId);
  if (job === undefined) throw notWatched(jobId);
  return job.state;
}

/** The same for a command that may write: it also takes a job of `watch:` that was never followed. */
export function watchIfConfigured(store: Store, config: Config, jobId: JobId): WatchState {
  const request = configuredJobs(config).find((one) => one.jobId === jobId);
  if (request !== undefined && !store.jobs.known().has(jobId))
    store.transaction(() => store.jobs.watch(request, systemClock.now()));
  return requireWatched(store, jobId);
}

export function notWatched(jobId: JobId): JobtailError {
  return new JobtailError('job-unknown', `job ${jobId} is not watched`, {
    hint: `agent status lists the jobs; agent watch ${jobId} adds this one`,
  });
}
