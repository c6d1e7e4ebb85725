/** All jobs that are followed, and those that were, whoever follows them: the store's, or those of a whole fleet. */
import type { JobId } from '../job.ts';
import type { WatchOrder } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../system/clock.ts';

export interface JobRegister {
  /** All that were ever ordered. */
  known(): Promise<ReadonlySet<JobId>>;
  /** Those that are settled, with when they started, in the words of the middleware, as far as it was told then. */
  settled(): Promise<ReadonlyMap<JobId, string | null>>;
  /** Those of these that are settled are followed again. */
  resume(jobs: readonly JobId[]): Promise<void>;
  /**
   * Orders the first of these, so that at most `most` jobs are followed because of the rule for jobs of the user; how many
   * it ordered.
   */
  follow(orders: readonly WatchOrder[], most: number): Promise<number>;
}

/** The jobs of one agent. */
export class StoreRegister implements JobRegister {
  readonly #store: Store;
  readonly #clock: Pick<Clock, 'now'>;

  constructor(store: Store, clock: Pick<Clock, 'now'>) {
    this.#store = store;
    this.#clock = clock;
  }

  async known(): Promise<ReadonlySet<JobId>> {
    return this.#store.jobs.known();
  }

  async settled(): Promise<ReadonlyMap<JobId, string | null>> {
    const { jobs, jobInformation } = this.#store;
    const startOf = (jobId: JobId) => jobInformation.get(jobId)?.information.startTime?.text ?? null;
    return new Map(jobs.settled().map((jobId) => [jobId, startOf(jobId)]));
  }

  async resume(jobs: readonly JobId[]): Promise<void> {
    this.#store.transaction(() => {
      for (const jobId of jobs) this.#store.jobs.resume(jobId);
    });
  }

  async follow(orders: readonly WatchOrder[], most: number): Promise<number> {
    const { jobs } = this.#store;
    const taken = orders.slice(0, Math.max(0, most - jobs.followedByRule()));
    this.#store.transaction(() => {
      for (const order of taken) jobs.watch(order, this.#clock.now());
    });
    return taken.length;
  }
}
