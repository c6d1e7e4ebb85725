/** The followed jobs, in the state of this machine or in the database of its fleet. */
import { type Config, hasFleet } from '../config/config.ts';
import { openSharedStore } from '../daemon/state.ts';
import type { JobId } from '../job.ts';
import { lockHolder } from '../store/lock.ts';
import type { Store } from '../store/store.ts';
import { reportOf } from './show/status-report.ts';
import type { ShownReport } from './show/status-table.ts';

export interface FollowedJobs {
  /**
   * Runs `work` on the rows of all jobs, or of one; one read after the other, because in a fleet they use one store. There,
   * results are counted, or those of one job listed.
   */
  read<T>(only: JobId | undefined, work: (store: Store) => T | Promise<T>, withResults?: boolean): Promise<T>;
  report(only: JobId | 'all' | undefined): Promise<ShownReport>;
  /** Whether an agent runs that follows them. */
  isFollowed(): Promise<boolean>;
  /** The agent whose machine has the mirrors of a job; undefined if they are here. */
  elsewhere(jobId: JobId): Promise<string | undefined>;
  close(): Promise<void>;
}

/** Opens state or database when `work` first reads it. */
export async function withJobs<T>(config: Config, work: (jobs: FollowedJobs) => Promise<T>): Promise<T> {
  const jobs: FollowedJobs = hasFleet(config)
    ? new (await import('./fleet/client.ts')).JobsOfFleet(config)
    : new JobsOfThisMachine(config);
  try {
    return await work(jobs);
  } finally {
    await jobs.close();
  }
}

export function readJobs<T>(config: Config, only: JobId | undefined, work: (store: Store) => T | Promise<T>) {
  return withJobs(config, (jobs) => jobs.read(only, work, true));
}

class JobsOfThisMachine implements FollowedJobs {
  readonly #config: Config;
  #opened: Store | undefined;

  constructor(config: Config) {
    this.#config = config;
  }

  get #store(): Store {
    this.#opened ??= openSharedStore(this.#config);
    return this.#opened;
  }

  async read<T>(_: JobId | undefined, work: (store: Store) => T | Promise<T>): Promise<T> {
    return await work(this.#store);
  }

  async report(only: JobId | 'all' | undefined): Promise<ShownReport> {
    return reportOf(this.#config, this.#store, only);
  }

  async isFollowed(): Promise<boolean> {
    return lockHolder(this.#config.state.directory) !== undefined;
  }

  async elsewhere(): Promise<undefined> {}

  async close(): Promise<void> {
    this.#opened?.close();
  }
}
