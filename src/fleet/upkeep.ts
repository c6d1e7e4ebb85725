/** Periodic work for the fleet as a whole; every agent does it. */
import { isDeepStrictEqual } from 'node:util';
import type { Follower } from '../agent/ownership.ts';
import type { JobId } from '../job.ts';
import type { WatchRequest } from '../store/rows.ts';
import type { Command } from './border.ts';
import { COMMANDS_AT_ONCE } from './commands.ts';
import type { Membership } from './following.ts';
import { FORGOTTEN } from './forgotten.ts';
import { idsOf } from './register.ts';

/** Interval of all work. A notification applies a changed rule of `watch --mine` at once, unless it was missed. */
const INTERVAL_MS = 30_000;

interface KnownJob {
  readonly jobId: JobId;
  readonly state: string;
  readonly source: string;
}

export class Upkeep {
  readonly #membership: Membership;
  /** The configuration whose commands have all been placed. */
  #known: readonly WatchRequest[] | undefined;
  #placing: { readonly configured: readonly WatchRequest[]; readonly count: number } | undefined;
  #doneAt = Number.NEGATIVE_INFINITY;
  #isNoticed = false;

  constructor(membership: Membership) {
    this.#membership = membership;
  }

  noticed(): void {
    this.#isNoticed = true;
  }

  /** Does what is due. Returns whether the commands of all configured jobs are placed. */
  async round(follower: Follower): Promise<boolean> {
    const { attached } = this.#membership;
    if (this.#known !== attached.configured) await this.#placeConfigured(attached.configured);
    await this.#runIfDue(follower);
    return this.#known === attached.configured;
  }

  async #runIfDue(follower: Follower): Promise<void> {
    const now = this.#membership.clock.monotonic();
    const isDue = now - this.#doneAt >= INTERVAL_MS;
    if (!isDue && !this.#isNoticed) return;
    this.#isNoticed = false;
    if (await this.#applyRule()) follower.refresh();
    if (!isDue) return;
    this.#doneAt = now;
    await this.#reportCapabilities();
    await this.#deleteOldRows();
  }

  /**
   * Places commands for jobs that are new in this configuration, a part at a time, so that a long one blocks nothing.
   */
  async #placeConfigured(configured: readonly WatchRequest[]): Promise<void> {
    if (this.#placing?.configured !== configured) await this.#dropOthers(idsOf(configured));
    const begin = this.#placing?.configured === configured ? this.#placing.count : 0;
    const end = begin + COMMANDS_AT_ONCE;
    await this.#placeCommands(configured.slice(begin, end));
    this.#placing = { configured, count: end };
    if (end >= configured.length) this.#known = configured;
  }

  /** Ends jobs that no configuration names any more. */
  async #dropOthers(ids: readonly JobId[]): Promise<void> {
    const { joined, member } = this.#membership;
    const { database, commands } = joined;
    await database.transaction(async (sql) => {
      const gone = await sql.query<{ readonly jobId: JobId }>(
        'DELETE FROM {s}.configured WHERE agent = $1 AND job_id <> ALL($2) RETURNING job_id AS "jobId"',
        [member.name, ids],
      );
      if (gone.length === 0) return;
      const named = await sql.query<{ readonly jobId: JobId }>(
        'SELECT DISTINCT job_id AS "jobId" FROM {s}.configured WHERE job_id = ANY($1)',
        [idsOf(gone)],
      );
      const isNamed = new Set(idsOf(named));
      const dropped = gone.filter(({ jobId }) => !isNamed.has(jobId));
      if (dropped.length > 0)
        await commands.giveWithin(
          sql,
          dropped.map(({ jobId }) => ({ jobId, kind: 'drop' })),
        );
    });
  }

  async #placeCommands(configured: readonly WatchRequest[]): Promise<void> {
    const { joined, member, log } = this.#membership;
    const { database, commands } = joined;
    const ids = idsOf(configured);
    await database.transaction(async (sql) => {
      const before = await sql.query<{ readonly jobId: JobId; readonly text: string }>(
        'SELECT job_id AS "jobId", job_order::text AS text FROM {s}.configured WHERE agent = $1 AND job_id = ANY($2)',
        [member.name, ids],
      );
      const known = await sql.query<KnownJob>(
        'SELECT job_id AS "jobId", state, source FROM {s}.jobs WHERE job_id = ANY($1)',
        [ids],
      );
      const wanted: Command[] = [];
      for (const command of configured) {
        const { jobId } = command;
        const text = JSON.stringify(command);
        const job = known.find((one) => one.jobId === jobId);
        if (job !== undefined && before.some((one) => one.jobId === jobId && one.text === text)) continue;
        const isOverruled =
          job?.state === 'settled' || job?.state === FORGOTTEN || (job?.source === 'command' && /^end/.test(job.state));
        if (isOverruled) log.info({ jobId, state: job.state }, 'configured job not followed');
        else wanted.push({ jobId, kind: 'watch', body: command });
        await sql.query(
          `INSERT INTO {s}.configured (agent, job_id, job_order) VALUES ($1, $2, $3)
           ON CONFLICT (agent, job_id) DO UPDATE SET job_order = excluded.job_order`,
          [member.name, jobId, text],
        );
      }
      if (wanted.length > 0) await commands.giveWithin(sql, wanted);
    });
  }

  /** Applies the rule of `agent watch --mine`, which the database has; returns whether it changed. */
  async #applyRule(): Promise<boolean> {
    const { joined, store } = this.#membership;
    const { database } = joined;
    const [row] = await database.query<{ readonly rule: unknown }>('SELECT rule FROM {s}.rules');
    const rule = database.border.rule(row?.rule);
    // A malformed rule changes nothing.
    if (row !== undefined && rule === undefined) return false;
    const before = store.watchMine.of('command');
    if (isDeepStrictEqual(before, rule)) return false;
    if (rule === undefined) store.watchMine.remove('command');
    else store.watchMine.save(rule);
    return true;
  }

  /** Writes what this agent detected of the service, for displays. */
  async #reportCapabilities(): Promise<void> {
    const { joined, store } = this.#membership;
    const own = store.capabilities.all();
    await joined.database.query(
      `INSERT INTO {s}.habits AS known (service, name, value) SELECT $1, * FROM unnest($2::text[], $3::text[])
       ON CONFLICT (service, name) DO UPDATE SET value = excluded.value WHERE known.value <> excluded.value`,
      [store.capabilities.service, own.map(({ name }) => name), own.map(({ value }) => value)],
    );
  }

  async #deleteOldRows(): Promise<void> {
    const { database } = this.#membership.joined;
    await database.query(`DELETE FROM {s}.orders WHERE answer IS NOT NULL AND made_at < now() - interval '1 day'`);
    await database.query(`DELETE FROM {s}.attempts WHERE ended_at < now() - interval '30 days'`);
  }
}
