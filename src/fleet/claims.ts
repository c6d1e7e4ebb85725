/**
 * Who owns each job, for people and for the next owner, beside what pg-boss keeps of it. Both are changed in one
 * transaction, and both are compared before anything is written: after a failover of the database that lost its last
 * moments, one attempt of pg-boss may have been handed out twice, but not to one and the same owner.
 *
 * Whoever needs both rows of a job takes the one here first, so that nobody waits in a circle. Who takes a job cannot, and
 * does not wait for it.
 */
import { JobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import type { Database } from './database.ts';
import type { HeldJob } from './held-jobs.ts';
import type { Claim, Queue } from './queue.ts';
import type { Sql } from './sql.ts';

/** A job that was taken. */
export interface TakenJob extends HeldJob {
  /** The mirror directory of the owner before; null if there was none. */
  readonly mirror: string | null;
  /** The owner before did not give it back. */
  readonly isTakeover: boolean;
  readonly expiresMs: number;
}

/** How an attempt ended. */
export type End = 'handed-over' | 'done';

interface OwnerRow {
  readonly jobId: JobId;
  readonly attempt: number;
  readonly mirror: string | null;
}

const RETURNED = 'jobs.job_id AS "jobId", jobs.attempt, jobs.mirror';

export class Claims {
  readonly #database: Database;
  readonly #queue: Queue;
  readonly #owner: string;
  #last: Promise<unknown> = Promise.resolve();

  constructor(database: Database, queue: Queue, owner: string) {
    this.#database = database;
    this.#queue = queue;
    this.#owner = owner;
  }

  /** Takes up to so many jobs that nobody owns; none if somebody orders something of one of them just now. */
  async take(most: number): Promise<TakenJob[]> {
    try {
      return await this.#take(most);
    } catch (error) {
      if (error instanceof Busy) return [];
      throw error;
    }
  }

  #take(most: number): Promise<TakenJob[]> {
    return this.#database.transaction(async (sql) => {
      const fetched = await this.#queue.fetch(sql, most);
      const claims = this.#database.border.jobs(fetched);
      // No agent can follow a job without a job id: it leaves the queue.
      for (const claim of fetched) if (!claims.includes(claim)) await this.#queue.complete(sql, claim);
      if (claims.length === 0) return [];
      const ids = claims.map(({ jobId }) => jobId);
      const free = await sql.query('SELECT 1 FROM {s}.jobs WHERE job_id = ANY($1) FOR UPDATE SKIP LOCKED', [ids]);
      if (free.length < ids.length) throw new Busy();
      const lost = await sql.query<{ jobId: JobId }>(
        `UPDATE {s}.attempts SET ended_at = clock_timestamp(), how = 'lost' WHERE job_id = ANY($1) AND ended_at IS NULL
         RETURNING job_id AS "jobId"`,
        [ids],
      );
      const rows = await sql.query<OwnerRow>(
        `UPDATE {s}.jobs SET owner = $1, attempt = attempt + 1, boss_id = taken.id, retry_count = taken.retry_count, taken_at = clock_timestamp()
         FROM unnest($2::text[], $3::uuid[], $4::int[]) AS taken (job_id, id, retry_count)
         WHERE jobs.job_id = taken.job_id RETURNING ${RETURNED}`,
        [this.#owner, ids, claims.map(({ id }) => id), claims.map(({ retryCount }) => retryCount)],
      );
      await sql.query(
        `INSERT INTO {s}.attempts (job_id, attempt, agent, boss_id, taken_at)
         SELECT job_id, attempt, owner, boss_id, taken_at FROM {s}.jobs WHERE job_id = ANY($1)`,
        [ids],
      );
      return taken(claims, rows, new Set(lost.map(({ jobId }) => jobId)));
    });
  }

  /** What the process before this one, which had the same state, owned and still owns. */
  reclaim(): Promise<TakenJob[]> {
    return this.#database.transaction(async (sql) => {
      const rows = await sql.query<OwnerRow & { readonly id: string; readonly retryCount: number }>(
        `SELECT ${RETURNED}, boss_id AS id, retry_count AS "retryCount" FROM {s}.jobs WHERE owner = $1`,
        [this.#owner],
      );
      const ids = await this.#queue.touch(sql, rows);
      const claims = await sql.query<Claim>(
        `SELECT singleton_key AS "jobId", id, retry_count AS "retryCount", heartbeat_seconds * 1000 AS "leaseMs",
           greatest(0, extract(epoch FROM started_on + expire_seconds * interval '1 s' - now()) * 1000)::int AS "expiresMs"
         FROM {s}_boss.job WHERE name = 'follow' AND id = ANY($1)`,
        [[...ids]],
      );
      return taken(this.#database.border.jobs(claims), this.#database.border.jobs(rows), new Set());
    });
  }

  /** One heartbeat: those of `jobs` that are still owned. */
  async touch(jobs: readonly HeldJob[]): Promise<Set<JobId>> {
    const ids = await this.#inTurn(() => this.#queue.touch(this.#database, jobs));
    return new Set(jobs.filter(({ id }) => ids.has(id)).map(({ jobId }) => jobId));
  }

  /**
   * Does `work` for those of `jobs` that are still owned, which stay so until it is over; these are returned. Nothing is
   * done if there are none. Files are not touched meanwhile: whoever waits for these jobs waits for this.
   */
  fenced(jobs: readonly HeldJob[], work: (sql: Sql, owned: HeldJob[]) => Promise<void>): Promise<HeldJob[]> {
    const run = async (sql: Sql) => {
      const rows = await sql.query<{ readonly jobId: JobId }>(
        `SELECT jobs.job_id AS "jobId" FROM {s}.jobs
         JOIN unnest($2::text[], $3::int[]) AS held (job_id, attempt) ON jobs.job_id = held.job_id AND jobs.attempt = held.attempt
         WHERE owner = $1 ORDER BY jobs.job_id FOR UPDATE OF jobs`,
        [this.#owner, jobs.map(({ jobId }) => jobId), jobs.map(({ attempt }) => attempt)],
      );
      const named = new Set(rows.map(({ jobId }) => jobId));
      const own = jobs.filter(({ jobId }) => named.has(jobId));
      const touched = await this.#queue.touch(sql, own);
      const owned = own.filter(({ id }) => touched.has(id));
      if (owned.length > 0) await work(sql, owned);
      return owned;
    };
    return this.#inTurn(() => this.#database.transaction(run));
  }

  /** Within `fenced`: they are nobody's from now on, and anybody's to take unless everything is done. */
  async end(sql: Sql, jobs: readonly HeldJob[], how: End): Promise<void> {
    if (how === 'done') for (const job of jobs) await this.#queue.complete(sql, job);
    else await this.#queue.giveBack(sql, jobs);
    const ids = jobs.map(({ jobId }) => jobId);
    await sql.query('UPDATE {s}.jobs SET owner = NULL WHERE job_id = ANY($1)', [ids]);
    await sql.query(
      'UPDATE {s}.attempts SET ended_at = clock_timestamp(), how = $2 WHERE job_id = ANY($1) AND ended_at IS NULL',
      [ids, how],
    );
  }

  /** Owns a job by a new one of the queue, without a moment in which anybody else might take it. */
  async renew(job: HeldJob): Promise<Claim> {
    const claims: Claim[] = [];
    await this.fenced([job], async (sql) => {
      await this.#queue.complete(sql, job);
      // By a priority that no other has, it is this one that is fetched.
      const priority = 1 + Math.floor(Math.random() * 2 ** 30);
      await this.#queue.send(sql, job.jobId, priority);
      claims.push(...(await this.#queue.fetch(sql, 1, priority)));
      await sql.query('UPDATE {s}.jobs SET boss_id = $2, retry_count = $3 WHERE job_id = $1', [
        ...[job.jobId, claims[0]?.id, claims[0]?.retryCount],
      ]);
    });
    const [claim] = claims;
    if (claim?.jobId !== job.jobId) throw new JobtailError('superseded', `job ${job.jobId} is not owned any more`);
    return claim;
  }

  /** One after the other: what was begun later is known later, and two of them do not wait for each other's rows. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const run = this.#last.then(work);
    this.#last = run.catch(() => {});
    return run;
  }
}

/** Of an order for a job that is about to be taken. */
class Busy extends Error {}

function taken(claims: readonly Claim[], rows: readonly OwnerRow[], lost: ReadonlySet<JobId>): TakenJob[] {
  const byJob = new Map(rows.map((row) => [row.jobId, row]));
  return claims.flatMap((claim) => {
    const row = byJob.get(claim.jobId);
    return row === undefined ? [] : [{ ...row, ...claim, isTakeover: lost.has(claim.jobId) }];
  });
}
