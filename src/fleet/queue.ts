/**
 * Who owns which job, as pg-boss keeps it: a followed job is one job of the queue, the lease is its heartbeat, and
 * `retryCount` tells each owner from those before. There is no lock and no election beside it.
 */
import type { Attempt, FetchedJob } from 'pg-boss';
import type { JobId } from '../job.ts';
import type { Database } from './database.ts';
import type { Sql } from './sql.ts';

const QUEUE = 'follow';
/** Of retries, and of seconds until a row that waits is removed: as good as for ever. */
const NEVER = 2_000_000_000;
/** pg-boss allows no more than a day; each owner renews before (`Renewal`). */
const LONGEST_SECONDS = 86_400;

export interface QueueOptions {
  /** How long an owner may be silent. */
  readonly heartbeatSeconds: number;
  /** How long a job is owned until the lease has to be renewed. */
  readonly expireInSeconds?: number;
}

/** A job as it was fetched. */
export interface Claim extends Attempt {
  readonly jobId: JobId;
  /** How long its owner may be silent, as it was when the job was ordered. */
  readonly leaseMs: number;
  readonly expiresMs: number;
}

export class Queue {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Makes it if it is not there. */
  async make({ heartbeatSeconds, expireInSeconds = LONGEST_SECONDS }: QueueOptions): Promise<void> {
    await this.#database.call((boss) =>
      boss.createQueue(QUEUE, {
        ...{ policy: 'exclusive', heartbeatSeconds, expireInSeconds },
        ...{ retryLimit: NEVER, retryDelay: 0, retentionSeconds: NEVER },
      }),
    );
  }

  /** From now on, jobs are ordered with this heartbeat; those that are there have theirs until they are renewed. */
  async setHeartbeat(heartbeatSeconds: number): Promise<void> {
    await this.#database.call(async (boss) => {
      if ((await boss.getQueue(QUEUE)).heartbeatSeconds !== heartbeatSeconds)
        await boss.updateQueue(QUEUE, { heartbeatSeconds });
    });
  }

  /** False if there is one already that waits or is owned. */
  async send(sql: Sql, jobId: JobId, priority = 0): Promise<boolean> {
    const options = { singletonKey: jobId, priority, db: sql.db };
    const id = await this.#database.call((boss) => boss.send(QUEUE, { jobId }, options));
    return id !== null;
  }

  /** Takes up to so many that nobody owns; of one priority alone, if that is given. */
  async fetch(sql: Sql, most: number, priority?: number): Promise<Claim[]> {
    const only = priority === undefined ? {} : { minPriority: priority, maxPriority: priority };
    const found = await this.#database.call((boss) => boss.fetch(QUEUE, { batchSize: most, db: sql.db, ...only }));
    return found.map(claimOf);
  }

  /** The ids of those that are still owned by who asks, from now on for another lease. */
  async touch(sql: Sql, attempts: readonly Attempt[]): Promise<ReadonlySet<string>> {
    if (attempts.length === 0) return new Set();
    const { settled } = await this.#database.call((boss) => boss.touch(QUEUE, attempts.map(bare), { db: sql.db }));
    return new Set(settled);
  }

  /** There is nothing left to be done for a job. */
  async complete(sql: Sql, attempt: Attempt): Promise<void> {
    await this.#database.call((boss) => boss.complete(QUEUE, [bare(attempt)], null, { db: sql.db }));
  }

  /** Gives jobs back: anybody may take them at once. */
  async giveBack(sql: Sql, attempts: readonly Attempt[]): Promise<void> {
    await this.#database.call((boss) => boss.fail(QUEUE, attempts.map(bare), null, { db: sql.db }));
  }

  /** Frees the jobs of owners that are silent for longer than their lease. */
  async supervise(): Promise<void> {
    await this.#database.call((boss) => boss.supervise(QUEUE));
  }
}

const bare = ({ id, retryCount }: Attempt): Attempt => ({ id, retryCount });

const claimOf = ({ id, retryCount, data, heartbeatSeconds, expireInSeconds }: FetchedJob): Claim => ({
  ...{ id, retryCount, jobId: (data as { jobId: JobId }).jobId },
  leaseMs: heartbeatSeconds * 1000,
  expiresMs: expireInSeconds * 1000,
});
