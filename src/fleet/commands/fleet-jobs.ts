/** The jobs of the whole fleet, for the agent that requests job states. */
import type { KnownJobs } from '../../agent/ownership.ts';
import { asJobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { slicesOf } from '../../slices.ts';
import type { WatchRequest } from '../../store/rows.ts';
import { idsOf } from '../agents/agents.ts';
import type { Joined } from '../joined.ts';
import { COMMANDS_AT_ONCE } from './commands.ts';

/** While the database is away, it returns no jobs and places no commands. */
export class FleetJobs implements KnownJobs {
  readonly #joined: () => Joined | undefined;

  constructor(joined: () => Joined | undefined) {
    this.#joined = joined;
  }

  ids(): Promise<ReadonlySet<JobId>> {
    return this.#ask(new Set<JobId>(), async ({ database }) => {
      const rows = await database.query<{ readonly jobId: JobId }>('SELECT job_id AS "jobId" FROM {s}.jobs');
      return new Set(database.border.jobs(rows).map(({ jobId }) => jobId));
    });
  }

  settled(): Promise<ReadonlyMap<JobId, string | null>> {
    return this.#ask(new Map<JobId, string | null>(), async ({ database }) => {
      const rows = await database.query<{ readonly jobId: JobId; readonly row: string | null }>(
        `SELECT jobs.job_id AS "jobId", row::text AS row FROM {s}.jobs
         LEFT JOIN {s}.rows ON rows.job_id = jobs.job_id AND kind = 'job_information' WHERE state = 'settled'`,
      );
      const { border } = database;
      return new Map(border.jobs(rows).map(({ jobId, row }) => [jobId, row === null ? null : border.startTime(row)]));
    });
  }

  async resume(jobs: readonly JobId[]): Promise<void> {
    if (jobs.length === 0) return;
    await this.#ask(undefined, async ({ commands }) => {
      await commands.give(jobs.map((jobId) => ({ jobId, kind: 'resume' })));
    });
  }

  async follow(requests: readonly WatchRequest[], max: number): Promise<number> {
    let followed = 0;
    for (const some of slicesOf(requests, COMMANDS_AT_ONCE)) {
      const count = await this.#ask(0, (joined) => followFresh(joined, some, max));
      followed += count;
      if (count < some.length) break;
    }
    return followed;
  }

  async #ask<T>(nothing: T, work: (joined: Joined) => Promise<T>): Promise<T> {
    const joined = this.#joined();
    if (joined === undefined) return nothing;
    try {
      return await work(joined);
    } catch (thrown) {
      if (asJobtailError(thrown).code === 'fleet') return nothing;
      throw thrown;
    }
  }
}

function followFresh({ database, commands }: Joined, requests: readonly WatchRequest[], max: number): Promise<number> {
  return database.transaction(async (sql) => {
    // Agents that do this at the same time take turns; the second one finds the commands of the first.
    await sql.query(`SELECT pg_advisory_xact_lock(hashtextextended('jobtail {s} mine'::text, 0::bigint))`);
    const rows = await sql.query<{ readonly jobId: JobId }>(
      `SELECT job_id AS "jobId" FROM unnest($1::text[]) WITH ORDINALITY AS wanted (job_id, place)
       WHERE NOT EXISTS (SELECT 1 FROM {s}.jobs WHERE jobs.job_id = wanted.job_id) ORDER BY place LIMIT greatest(0::bigint,
         $2::bigint - (SELECT count(*) FROM {s}.jobs WHERE source = 'mine' AND state IN ('ordered', 'watched', 'ending')))`,
      [idsOf(requests), max],
    );
    const fresh = new Set(idsOf(rows));
    const bodies = requests.filter(({ jobId }) => fresh.has(jobId));
    await commands.giveWithin(
      sql,
      bodies.map((body) => ({ jobId: body.jobId, kind: 'watch', body })),
    );
    return bodies.length;
  });
}
