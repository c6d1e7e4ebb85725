/**
 * Who owns each job. The lease is the agent's: its row in `agents`, which each heartbeat renews. Each job has a fencing
 * token, `attempt`, which grows with each owner; both are compared before anything is written.
 */
import type { JobId } from '../job.ts';
import type { Queue } from './commands.ts';
import type { Database } from './database.ts';
import { idsOf, type LeasedJob, type Register, SILENT } from './register.ts';
import type { Sql } from './tables.ts';

export interface TakenJob extends LeasedJob {
  /** The mirror directory of the previous owner; null if there was none. */
  readonly mirror: string | null;
  /** Whether the previous owner's lease expired: it did not release the job. */
  readonly isTakeover: boolean;
}

export type End = 'handed-over' | 'done';

/** Maximum jobs released in one transaction. */
const MAX_FREED = 100;

export interface ClaimsOptions {
  readonly database: Database;
  readonly queue: Queue;
  readonly register: Pick<Register, 'seenAt'>;
  readonly owner: string;
  readonly instance: string;
}

/**
 * Condition on the last heartbeat, $1 by the agent $2: the database has it. After a restored backup it does not, and the
 * owners in it may be former ones.
 */
const HAS_HEARTBEAT = `($1::timestamptz IS NULL OR EXISTS (SELECT 1 FROM {s}.agents AS own WHERE own.name = $2 AND own.seen_at >= $1::timestamptz))`;

export class Claims {
  readonly #options: ClaimsOptions;
  readonly #database: Database;
  readonly #queue: Queue;
  readonly #owner: string;
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: ClaimsOptions) {
    this.#options = options;
    this.#database = options.database;
    this.#queue = options.queue;
    this.#owner = options.owner;
  }

  get #heartbeat(): readonly unknown[] {
    return [this.#options.register.seenAt, this.#owner];
  }

  /** Acquires up to `max` jobs without an owner; skips jobs for which a command is being placed. */
  async take(max: number): Promise<TakenJob[]> {
    try {
      return await this.#database.transaction((sql) => this.#take(sql, max));
    } catch (error) {
      if (error instanceof Busy) return [];
      throw error;
    }
  }

  async #take(sql: Sql, max: number): Promise<TakenJob[]> {
    const [current] = await sql.query(`SELECT 1 WHERE ${HAS_HEARTBEAT}`, this.#heartbeat);
    if (current === undefined) throw new Busy();
    // An entry without a valid job id leaves the queue: no agent can follow it.
    const waiting = this.#database.border.jobs(await this.#queue.take(sql, max));
    if (waiting.length === 0) return [];
    const ids = idsOf(waiting);
    const [there] = await sql.query<{ readonly count: number }>(
      'SELECT count(*)::int AS count FROM {s}.jobs WHERE job_id = ANY($1)',
      [ids],
    );
    const free = await sql.query<{ readonly jobId: JobId; readonly owner: string | null }>(
      'SELECT job_id AS "jobId", owner FROM {s}.jobs WHERE job_id = ANY($1) FOR UPDATE SKIP LOCKED',
      [ids],
    );
    if (free.length < (there?.count ?? 0)) throw new Busy();
    const taken = await sql.query<TakenJob>(
      `UPDATE {s}.jobs SET owner = $1, attempt = attempt + 1, taken_at = clock_timestamp() WHERE job_id = ANY($2)
       RETURNING job_id AS "jobId", attempt, mirror, EXISTS (SELECT 1 FROM {s}.attempts AS before
         WHERE before.job_id = jobs.job_id AND before.attempt = jobs.attempt - 1 AND how = 'lost') AS "isTakeover"`,
      [this.#owner, free.filter(({ owner }) => owner === null).map(({ jobId }) => jobId)],
    );
    await sql.query(
      `INSERT INTO {s}.attempts (job_id, attempt, agent, taken_at)
       SELECT job_id, attempt, owner, taken_at FROM {s}.jobs WHERE job_id = ANY($1)`,
      [idsOf(taken)],
    );
    await sql.query('UPDATE {s}.agents SET took_at = now(), passed_over = 0, rests_until = NULL WHERE name = $1', [
      this.#owner,
    ]);
    return taken;
  }

  /**
   * The jobs that this agent owns in the database: acquired by an earlier process, or by a call whose response was
   * lost.
   */
  async owned(): Promise<TakenJob[]> {
    const rows = await this.#database.query<TakenJob>(
      `SELECT job_id AS "jobId", attempt, mirror, false AS "isTakeover" FROM {s}.jobs WHERE owner = $2 AND ${HAS_HEARTBEAT}`,
      this.#heartbeat,
    );
    return this.#database.border.jobs(rows);
  }

  /**
   * Runs `work` with those of `jobs` that this agent still owns, and locks their rows until it ends; returns them.
   * `work` must touch no file: other agents wait for these rows.
   */
  fenced(jobs: readonly LeasedJob[], work: (sql: Sql, owned: LeasedJob[]) => Promise<void>): Promise<LeasedJob[]> {
    const run = async (sql: Sql) => {
      const rows = await sql.query<{ readonly jobId: JobId }>(
        `SELECT jobs.job_id AS "jobId" FROM {s}.jobs
         JOIN unnest($2::text[], $3::int[]) AS leased (job_id, attempt) ON jobs.job_id = leased.job_id AND jobs.attempt = leased.attempt
         WHERE owner = $1 AND NOT EXISTS (SELECT 1 FROM {s}.agents WHERE name = $1 AND instance <> $4)
         ORDER BY jobs.job_id FOR UPDATE OF jobs`,
        [this.#owner, idsOf(jobs), jobs.map(({ attempt }) => attempt), this.#options.instance],
      );
      const named = new Set(idsOf(rows));
      const owned = jobs.filter(({ jobId }) => named.has(jobId));
      if (owned.length > 0) await work(sql, owned);
      return owned;
    };
    // One after the other, so that results arrive in the order of the calls.
    const done = this.#last.then(() => this.#database.transaction(run));
    this.#last = done.catch(() => {});
    return done;
  }

  /** Within `fenced`: the jobs have no owner from now on, and wait for one unless all work is done. */
  async end(sql: Sql, jobs: readonly LeasedJob[], how: End): Promise<void> {
    const ids = idsOf(jobs);
    await sql.query('UPDATE {s}.jobs SET owner = NULL WHERE job_id = ANY($1)', [ids]);
    await this.#ended(sql, ids, how);
    if (how === 'handed-over') for (const jobId of ids) await this.#queue.send(sql, jobId);
  }

  /**
   * Releases jobs of agents whose leases expired; returns how many. Skips an agent that renews its lease, and a job
   * that is written, at this moment.
   */
  freeSilent(): Promise<number> {
    return this.#database.transaction(async (sql) => {
      const freed = await sql.query<{ readonly jobId: JobId }>(
        `WITH silent AS (
           SELECT job_id FROM {s}.jobs JOIN {s}.agents ON name = owner WHERE ${SILENT} AND ${HAS_HEARTBEAT}
           ORDER BY job_id LIMIT ${MAX_FREED} FOR UPDATE OF agents, jobs SKIP LOCKED)
         UPDATE {s}.jobs SET owner = NULL FROM silent WHERE jobs.job_id = silent.job_id RETURNING jobs.job_id AS "jobId"`,
        this.#heartbeat,
      );
      const ids = this.#database.border.jobs(freed).map(({ jobId }) => jobId);
      await this.#ended(sql, ids, 'lost');
      for (const jobId of ids) await this.#queue.send(sql, jobId);
      return ids.length;
    });
  }

  async #ended(sql: Sql, ids: readonly JobId[], how: End | 'lost'): Promise<void> {
    await sql.query(
      'UPDATE {s}.attempts SET ended_at = clock_timestamp(), how = $2 WHERE job_id = ANY($1) AND ended_at IS NULL',
      [ids, how],
    );
  }
}

class Busy extends Error {}
