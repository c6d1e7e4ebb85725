/**
 * Who owns each job. The lease is the agent's: its row in `agents`, which each heartbeat renews. Each job has a fencing
 * token, `attempt`, which grows with each owner; both are compared before anything is written.
 */
import type { JobId } from '../../job.ts';
import { idsOf, type LeasedJob, SILENT } from '../agents/agents.ts';
import type { Database } from '../database/database.ts';
import type { Queries } from '../database/tables.ts';

export interface TakenJob extends LeasedJob {
  /** The mirror directory of the previous owner; null if there was none. */
  readonly mirror: string | null;
  /** Whether the previous owner's lease expired: it did not release the job. */
  readonly isTakeover: boolean;
}

export type End = 'handed-over' | 'done';

/** Maximum jobs released in one transaction. */
const MAX_FREED = 100;

/** Whether the database has the last heartbeat, $1 by the agent $2: after a restored backup, it does not. */
const HAS_HEARTBEAT = `($1::timestamptz IS NULL OR EXISTS (SELECT 1 FROM {s}.agents AS own WHERE own.name = $2 AND own.seen_at >= $1::timestamptz))`;

export class Claims {
  readonly #database: Database;
  readonly #agents: { readonly seenAt: string | null };
  readonly #owner: string;
  readonly #instance: string;
  #last: Promise<unknown> = Promise.resolve();

  constructor(database: Database, agents: { readonly seenAt: string | null }, owner: string, instance: string) {
    this.#database = database;
    this.#agents = agents;
    this.#owner = owner;
    this.#instance = instance;
  }

  get #heartbeat(): readonly unknown[] {
    return [this.#agents.seenAt, this.#owner];
  }

  /** Acquires up to `max` jobs that wait for an owner; skips those for which a command is being placed. */
  take(max: number): Promise<TakenJob[]> {
    return this.#database.transaction(async (sql) => {
      const found = await sql.query<TakenJob>(
        `WITH free AS (
         SELECT job_id FROM {s}.jobs WHERE waiting_since IS NOT NULL AND ${HAS_HEARTBEAT}
         ORDER BY waiting_since, job_id LIMIT ${max} FOR UPDATE SKIP LOCKED)
       UPDATE {s}.jobs SET owner = $2, attempt = attempt + 1, taken_at = clock_timestamp(), waiting_since = NULL
       FROM free WHERE jobs.job_id = free.job_id
       RETURNING jobs.job_id AS "jobId", attempt, mirror, EXISTS (SELECT 1 FROM {s}.attempts AS before
         WHERE before.job_id = jobs.job_id AND before.attempt = jobs.attempt - 1 AND how = 'lost') AS "isTakeover"`,
        this.#heartbeat,
      );
      if (found.length === 0) return [];
      const taken = this.#database.border.jobs(found);
      // No agent can follow a job with a malformed id: it waits no more.
      const malformed = found.filter((job) => !taken.includes(job));
      if (malformed.length > 0)
        await sql.query('UPDATE {s}.jobs SET owner = NULL WHERE job_id = ANY($1)', [idsOf(malformed)]);
      await sql.query(
        `INSERT INTO {s}.attempts (job_id, attempt, agent, taken_at)
       SELECT job_id, attempt, owner, taken_at FROM {s}.jobs WHERE job_id = ANY($1)`,
        [idsOf(taken)],
      );
      return taken;
    });
  }

  /** Acquired by an earlier process, or by a call whose response was lost. */
  async owned(): Promise<TakenJob[]> {
    const rows = await this.#database.query<TakenJob>(
      `SELECT job_id AS "jobId", attempt, mirror, false AS "isTakeover" FROM {s}.jobs WHERE owner = $2 AND ${HAS_HEARTBEAT}`,
      this.#heartbeat,
    );
    return this.#database.border.jobs(rows);
  }

  /** Runs `work` with the `jobs` that this agent owns, and returns them. Their rows are locked: touch no file. */
  fenced(jobs: readonly LeasedJob[], work: (sql: Queries, owned: LeasedJob[]) => Promise<void>): Promise<LeasedJob[]> {
    const run = async (sql: Queries) => {
      const rows = await sql.query<{ readonly jobId: JobId }>(
        `SELECT jobs.job_id AS "jobId" FROM {s}.jobs
         JOIN unnest($2::text[], $3::int[]) AS leased (job_id, attempt) ON jobs.job_id = leased.job_id AND jobs.attempt = leased.attempt
         WHERE owner = $1 AND NOT EXISTS (SELECT 1 FROM {s}.agents WHERE name = $1 AND instance <> $4)
         ORDER BY jobs.job_id FOR UPDATE OF jobs`,
        [this.#owner, idsOf(jobs), jobs.map(({ attempt }) => attempt), this.#instance],
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
  async end(sql: Queries, jobs: readonly LeasedJob[], how: End): Promise<void> {
    const ids = idsOf(jobs);
    await sql.query(
      'UPDATE {s}.jobs SET owner = NULL, waiting_since = CASE WHEN $2 THEN now() END WHERE job_id = ANY($1)',
      [ids, how === 'handed-over'],
    );
    await this.#ended(sql, ids, how);
  }

  /** Releases jobs with expired leases, and counts them; skips agents and jobs that are busy at this moment. */
  freeSilent(): Promise<number> {
    return this.#database.transaction(async (sql) => {
      const freed = await sql.query<{ readonly jobId: JobId }>(
        `WITH silent AS (
           SELECT job_id FROM {s}.jobs JOIN {s}.agents ON name = owner WHERE ${SILENT} AND ${HAS_HEARTBEAT}
           ORDER BY job_id LIMIT ${MAX_FREED} FOR UPDATE OF agents, jobs SKIP LOCKED)
         UPDATE {s}.jobs SET owner = NULL, waiting_since = now() FROM silent WHERE jobs.job_id = silent.job_id RETURNING jobs.job_id AS "jobId"`,
        this.#heartbeat,
      );
      const ids = this.#database.border.jobs(freed).map(({ jobId }) => jobId);
      await this.#ended(sql, ids, 'lost');
      return ids.length;
    });
  }

  async #ended(sql: Queries, ids: readonly JobId[], how: End | 'lost'): Promise<void> {
    await sql.query(
      'UPDATE {s}.attempts SET ended_at = clock_timestamp(), how = $2 WHERE job_id = ANY($1) AND ended_at IS NULL',
      [ids, how],
    );
  }
}
