/** Periodic work for the fleet as a whole; every agent does it. */
import { isDeepStrictEqual } from 'node:util';
import { isOverruled } from '../../agent/configured-jobs.ts';
import type { Follower } from '../../agent/ownership.ts';
import type { JobId } from '../../job.ts';
import { slicesOf } from '../../slices.ts';
import type { WatchRequest } from '../../store/rows.ts';
import { idsOf } from '../agents/agents.ts';
import type { FleetContext } from '../owners/following.ts';
import type { Command } from '../rows/border.ts';
import { COMMANDS_AT_ONCE } from './commands.ts';

/** Interval of all work. A notification applies a changed rule of `watch --mine` at once, unless it was missed. */
const INTERVAL_MS = 30_000;

export class Upkeep {
  readonly #membership: FleetContext;
  /** The configuration whose commands have all been placed. */
  #known: readonly WatchRequest[] | undefined;
  #doneAt = Number.NEGATIVE_INFINITY;
  #isNoticed = false;

  constructor(membership: FleetContext) {
    this.#membership = membership;
  }

  noticed(): void {
    this.#isNoticed = true;
  }

  async round(follower: Follower): Promise<void> {
    const { configured } = this.#membership.attached;
    if (this.#known !== configured) {
      await this.#dropOthers(idsOf(configured));
      for (const some of slicesOf(configured, COMMANDS_AT_ONCE)) await this.#placeCommands(some);
      this.#known = configured;
    }
    const now = this.#membership.clock.monotonic();
    const isDue = now - this.#doneAt >= INTERVAL_MS;
    if ((isDue || this.#isNoticed) && (await this.#applyRule())) follower.refresh();
    this.#isNoticed = false;
    if (!isDue) return;
    await this.#reportCapabilities();
    await this.#deleteOldRows();
    this.#doneAt = now;
  }

  /** Ends jobs that no configuration names any more. */
  async #dropOthers(ids: readonly JobId[]): Promise<void> {
    const { joined, member } = this.#membership;
    const { database, commands } = joined;
    await database.transaction(async (sql) => {
      // It sees the own rows still, which it deletes.
      const dropped = await sql.query<{ readonly jobId: JobId }>(
        `WITH gone AS (DELETE FROM {s}.configured WHERE agent = $1 AND job_id <> ALL($2) RETURNING job_id)
         SELECT job_id AS "jobId" FROM gone WHERE NOT EXISTS
           (SELECT 1 FROM {s}.configured AS other WHERE other.job_id = gone.job_id AND agent <> $1)`,
        [member.name, ids],
      );
      await commands.giveWithin(
        sql,
        dropped.map(({ jobId }) => ({ jobId, kind: 'drop' })),
      );
    });
  }

  /** Places commands for jobs that are new in this configuration. */
  async #placeCommands(configured: readonly WatchRequest[]): Promise<void> {
    const { joined, member, log } = this.#membership;
    const { database, commands } = joined;
    const requests = new Map(configured.map((request) => [request.jobId, request]));
    await database.transaction(async (sql) => {
      const fresh = await sql.query<{
        readonly jobId: JobId;
        readonly state: string | null;
        readonly source: string | null;
      }>(
        `WITH wanted AS (SELECT * FROM unnest($2::text[], $3::text[]) AS wanted (job_id, job_order)),
           placed AS (INSERT INTO {s}.configured AS known (agent, job_id, job_order)
             SELECT $1::text, job_id, job_order::json FROM wanted ON CONFLICT (agent, job_id) DO UPDATE
             SET job_order = excluded.job_order WHERE known.job_order::text <> excluded.job_order::text RETURNING job_id)
         SELECT job_id AS "jobId", state, source FROM wanted LEFT JOIN {s}.jobs USING (job_id)
         WHERE state IS NULL OR job_id IN (SELECT job_id FROM placed)`,
        [member.name, [...requests.keys()], [...requests.values()].map((request) => JSON.stringify(request))],
      );
      const wanted: Command[] = [];
      for (const { jobId, state, source } of fresh) {
        if (isOverruled({ state, source })) log.info({ jobId, state }, 'configured job not followed');
        else wanted.push({ jobId, kind: 'watch', body: requests.get(jobId) ?? null });
      }
      await commands.giveWithin(sql, wanted);
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
    await database.query(`DELETE FROM {s}.orders WHERE answer IS NOT NULL AND made_at < now() - interval '30 days'`);
    await database.query(`DELETE FROM {s}.attempts WHERE ended_at < now() - interval '30 days'`);
    // Of agents that are gone for good, or have another name: no other one ends their jobs.
    await database.query(`DELETE FROM {s}.configured WHERE NOT EXISTS
      (SELECT 1 FROM {s}.agents WHERE name = agent AND seen_at > now() - interval '7 days')`);
  }
}
