/**
 * The jobs that wait for an owner, each of them once, as pg-boss keeps them. Who owns a job stands in `jobs`, and until
 * when in `agents`: an owner costs pg-boss nothing.
 */
import type { JobId } from '../job.ts';
import type { Database } from './database.ts';
import type { Sql } from './sql.ts';

const QUEUE = 'waiting';
/** Of seconds until a row that waits is removed: as good as for ever. */
const NEVER = 2_000_000_000;

/** The rows of pg-boss, which are read here alone: each is a job that waits, for one that is taken is deleted. */
export const WAITING_ROWS = `{s}_boss.job WHERE name = '${QUEUE}'`;

export class Queue {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Makes it if it is not there. */
  async make(): Promise<void> {
    await this.#database.call((boss) => boss.createQueue(QUEUE, { policy: 'exclusive', retentionSeconds: NEVER }));
  }

  /** Changes nothing for a job that waits already. */
  async send(sql: Sql, jobId: JobId): Promise<void> {
    await this.#database.call((boss) => boss.send(QUEUE, { jobId }, { singletonKey: jobId, db: sql.db }));
  }

  /** Removes up to so many, which no other transaction removes; their ids as they stand there. */
  async take(sql: Sql, most: number): Promise<{ readonly jobId: string }[]> {
    const found = await this.#database.call((boss) => boss.fetch(QUEUE, { batchSize: most, db: sql.db }));
    const ids = found.map(({ id }) => id);
    if (ids.length > 0) await this.#database.call((boss) => boss.deleteJob(QUEUE, ids, { db: sql.db }));
    return found.map(({ data }) => ({ jobId: String((data as { jobId?: unknown } | null)?.jobId) }));
  }
}
