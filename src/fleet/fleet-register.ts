/**
 * The jobs of the whole fleet, for the agent that requests job states: which jobs run again, and which other jobs the
 * user has.
 */
import type { JobRegister } from '../agent/ownership.ts';
import { asJobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import { slicesOf } from '../slices.ts';
import type { WatchRequest } from '../store/rows.ts';
import { COMMANDS_AT_ONCE } from './commands.ts';
import type { Joined } from './joined.ts';
import { idsOf } from './register.ts';

interface SettledRow {
  readonly jobId: JobId;
  readonly row: string | null;
}

/** While the database is away, it returns no jobs and places no commands. */
export class FleetRegister implements JobRegister {
  readonly #joined: () => Joined | undefined;

  constructor(joined: () => Joined | undefined) {
    this.#joined = joined;
  }

  known(): Promise<ReadonlySet<JobId>> {
    return this.#ask(new Set<JobId>(), async ({ database }) => {
      const rows = await database.query<{ readonly jobId: JobId }>('SELECT job_id AS "jobId" FROM {s}.jobs');
      return new Set(database.border.jobs(rows).map(({ jobId }) => jobId));
    });
  }

  settled(): Promise<ReadonlyMap<JobId, string | null>> {
    return this.#ask(new Map<JobId, string | null>(), async ({ database }) => {
      const rows = await database.query<SettledRow>(
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

  async follow(commands: readonly WatchRequest[], max: number): Promise<number> {
    let followed = 0;
    for (const some of slicesOf(commands, COMMANDS_AT_ONCE)) {
      const given = await this.#ask(NOTHING_GIVEN, (joined) => orderFresh(joined, some, max));
      followed += given.count;
      if (!given.isRoom) break;
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

interface Given {
  readonly count: number;
  readonly isRoom: boolean;
}

const NOTHING_GIVEN: Given = { count: 0, isRoom: false };

function orderFresh(
  { database, commands: given }: Joined,
  commands: readonly WatchRequest[],
  max: number,
): Promise<Given> {
  return database.transaction(async (sql) => {
    // Agents that do this at the same time take turns; the second one finds the commands of the first.
    await sql.query(`SELECT pg_advisory_xact_lock(hashtextextended('jobtail {s} mine'::text, 0::bigint))`);
    const ids = idsOf(commands);
    const known = await sql.query<{ readonly jobId: JobId }>(
      'SELECT job_id AS "jobId" FROM {s}.jobs WHERE job_id = ANY($1)',
      [ids],
    );
    const [{ count } = { count: 0 }] = await sql.query<{ readonly count: number }>(
      `SELECT count(*)::int AS count FROM {s}.jobs WHERE source = 'mine' AND state IN ('ordered', 'watched', 'ending')`,
    );
    const isKnown = new Set(idsOf(known));
    const fresh = commands.filter(({ jobId }) => !isKnown.has(jobId));
    const taken = fresh.slice(0, Math.max(0, max - count));
    if (taken.length > 0) {
      await given.giveWithin(
        sql,
        taken.map((body) => ({ jobId: body.jobId, kind: 'watch', body })),
      );
    }
    return { count: taken.length, isRoom: taken.length === fresh.length };
  });
}
