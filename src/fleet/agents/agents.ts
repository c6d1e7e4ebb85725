/** The agents and their leases: each heartbeat renews the row of its agent, and returns the state of the fleet. */
import { JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { printable } from '../../printable.ts';
import type { Database } from '../database/database.ts';
import { FORMAT } from '../database/tables.ts';

export interface LeasedJob {
  readonly jobId: JobId;
  readonly attempt: number;
}

export const idsOf = (jobs: readonly Pick<LeasedJob, 'jobId'>[]) => jobs.map(({ jobId }) => jobId);

export interface Member {
  readonly name: string;
  /** Id of the state directory, whose lock one process at a time has. */
  readonly stateId: string;
  readonly instance: string;
  readonly mostJobs: number;
  readonly leaseMs: number;
  /** Id of the mirror directory: the same for agents that see the same files. */
  readonly mirror: string;
  readonly about: AgentAbout;
}

export interface AgentAbout {
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  /** The address of its view for other machines (`view.publicUrl`); null if it has none. */
  readonly view: string | null;
}

export interface AgentReport {
  readonly pollAgeMs: number | null;
  readonly callsLastMinute: number;
  readonly isDraining: boolean;
  /** Maximum jobs that it may own now; below `maxJobs` while it is not ready. */
  readonly capacity: number;
  /** Why it is not ready; null if it is. */
  readonly lacks: string | null;
  readonly notFollowed: number;
}

export interface AgentRow extends Omit<AgentReport, 'capacity' | 'isDraining'>, AgentAbout {
  readonly name: string;
  readonly maxJobs: number;
  readonly jobs: number;
  readonly state: 'alive' | 'draining' | 'gone';
  /** Milliseconds since 1970, by the clock of the database. */
  readonly startedAt: number;
  readonly seenAt: number;
}

/** An agent that acquires jobs, as the others see it. */
export interface Taker {
  readonly name: string;
  readonly mostJobs: number;
  readonly jobs: number;
}

export interface FleetSummary {
  /** Agents that acquire jobs, this one included. */
  readonly agents: readonly Taker[];
  /** Agents that are alive, also those that are draining. */
  readonly alive: number;
  /** Jobs with an owner or waiting for one, jobs that wait, and how long the first of these waits. */
  readonly jobs: number;
  readonly waiting: number;
  readonly waitingMs: number;
  /** Jobs of agents whose leases expired. */
  readonly silent: number;
  readonly own: readonly LeasedJob[];
  readonly drainAsked: boolean;
  /** Whether the database did not have the last heartbeat: a backup was restored, or a standby took over. */
  readonly isRestored: boolean;
}

/** Condition: the lease expired. */
export const SILENT = `agents.seen_at <= now() - agents.lease_ms::float8 * interval '1 ms'`;
export const SEEN = `NOT (${SILENT}) AND NOT is_ended`;

/** The current number, not the number at the last report. */
const JOBS = '(SELECT count(*)::int FROM {s}.jobs WHERE owner = agents.name)';

const SUMMARY = `SELECT
  (SELECT coalesce(json_agg(json_build_object('name', name, 'mostJobs', least(most_jobs, capacity), 'maxJobs', most_jobs,
     'jobs', ${JOBS}) ORDER BY name), '[]'::json)
   FROM {s}.agents WHERE ${SEEN} AND NOT is_draining) AS agents,
  (SELECT count(*)::int FROM {s}.agents WHERE ${SEEN}) AS alive,
  (SELECT count(*)::int FROM {s}.jobs WHERE owner IS NOT NULL OR waiting_since IS NOT NULL) AS jobs,
  (SELECT count(*)::int FROM {s}.jobs JOIN {s}.agents ON name = owner WHERE ${SILENT}) AS silent,
  (SELECT coalesce(json_agg(json_build_object('jobId', job_id, 'attempt', attempt)), '[]'::json)
   FROM {s}.jobs WHERE owner = $1) AS own,
  (SELECT count(*)::int FROM {s}.jobs WHERE waiting_since IS NOT NULL) AS waiting,
  (SELECT coalesce(extract(epoch FROM now() - min(waiting_since))::float8 * 1000::float8, 0::float8) FROM {s}.jobs) AS "waitingMs"`;

type Renewed = Pick<FleetSummary, 'drainAsked' | 'isRestored'>;

interface SummaryRow extends Omit<FleetSummary, 'agents' | keyof Renewed> {
  readonly agents: readonly (Taker & { readonly maxJobs: number })[];
}

export class FleetAgents {
  readonly #database: Database;
  /** The time of the last heartbeat, as the database wrote it; null before the first one. */
  seenAt: string | null = null;

  constructor(database: Database) {
    this.#database = database;
  }

  /** False while an agent with another state uses the name, or after another process with this state took it. */
  async join({ name, stateId, instance, mostJobs, leaseMs, mirror, about }: Member): Promise<boolean> {
    const rows = await this.#database.query<{ readonly seenAt: string }>(
      `INSERT INTO {s}.agents (name, state_id, instance, most_jobs, lease_ms, mirror, about, format) VALUES ($1, $2, $3, $4, $5, $6, $7, ${FORMAT})
       ON CONFLICT (name) DO UPDATE SET state_id = excluded.state_id, instance = excluded.instance, most_jobs = excluded.most_jobs,
         lease_ms = excluded.lease_ms, mirror = excluded.mirror, format = excluded.format, about = excluded.about, started_at = now(), seen_at = now(),
         is_ended = false, is_draining = false, drain_asked = false
       WHERE (agents.state_id = excluded.state_id OR NOT (${SEEN.replaceAll('is_ended', 'agents.is_ended')}))
         AND ($8::timestamptz IS NULL OR agents.instance = excluded.instance OR agents.seen_at <= $8::timestamptz)
       RETURNING seen_at::text AS "seenAt"`,
      [name, stateId, instance, mostJobs, leaseMs, mirror, JSON.stringify(about), this.seenAt],
    );
    this.seenAt = rows[0]?.seenAt ?? this.seenAt;
    return rows.length > 0;
  }

  /**
   * One heartbeat: renews the lease and returns the state of the fleet. The row is renewed before the jobs are read: an
   * agent that releases them locks it until they are released. @throws JobtailError locked if another agent took the
   * name
   */
  async report(member: Member, report: AgentReport): Promise<FleetSummary> {
    const own = (await this.#renew(member, report)) ?? (await this.#rejoin(member, report));
    const { name } = member;
    const [row] = await this.#database.query<SummaryRow>(SUMMARY, [name]);
    if (row === undefined) throw new Error('a SELECT without FROM has a row');
    const { agents, ...rest } = row;
    // Where no agent is ready, each keeps its jobs.
    const isAnyReady = agents.some(({ mostJobs }) => mostJobs > 0);
    const takers = agents.map(({ maxJobs, ...agent }) => (isAnyReady ? agent : { ...agent, mostJobs: maxJobs }));
    return { ...rest, ...own, agents: takers };
  }

  async #renew({ name, instance }: Member, report: AgentReport): Promise<Renewed | undefined> {
    const { pollAgeMs, callsLastMinute, isDraining, capacity, lacks, notFollowed } = report;
    const [own] = await this.#database.query<Pick<Renewed, 'drainAsked'> & { readonly seenAt: string }>(
      `UPDATE {s}.agents SET seen_at = now(), is_ended = false, lag_ms = $3, calls_last_minute = $4, is_draining = $5,
         capacity = $6, lacks = $7, not_followed = $8
       WHERE name = $1 AND instance = $2 AND seen_at >= $9::timestamptz
       RETURNING drain_asked AS "drainAsked", seen_at::text AS "seenAt"`,
      [
        ...[name, instance, pollAgeMs === null ? null : Math.max(0, Math.round(pollAgeMs)), callsLastMinute],
        ...[isDraining, capacity, lacks, notFollowed, this.seenAt],
      ],
    );
    if (own === undefined) return undefined;
    this.seenAt = own.seenAt;
    return { drainAsked: own.drainAsked, isRestored: false };
  }

  /** After an older backup was restored, the row of this agent is older, of an earlier process, or missing. */
  async #rejoin(member: Member, report: AgentReport): Promise<Renewed> {
    const own = (await this.join(member)) ? await this.#renew(member, report) : undefined;
    if (own === undefined) throw await this.nameTaken(member.name);
    return { ...own, isRestored: true };
  }

  /** Refuses an agent whose shared mirror directory is not mounted. @throws JobtailError config */
  async requireSameMirror({ name, mirror }: Member): Promise<void> {
    const [other] = await this.#database.query<{ readonly name: string }>(
      `SELECT name FROM {s}.agents WHERE name <> $1 AND mirror <> $2 AND ${SEEN} ORDER BY name LIMIT 1`,
      [name, mirror],
    );
    if (other === undefined) return;
    const message = `the mirror directory of this machine is not that of the agent ${printable(other.name)}`;
    throw new JobtailError('config', message, {
      hint: 'mount the shared directory; where each machine has one of its own, set fleet.separateMirrors: true',
    });
  }

  async leave({ name, instance }: Member): Promise<void> {
    await this.#database.query('UPDATE {s}.agents SET is_ended = true WHERE name = $1 AND instance = $2', [
      name,
      instance,
    ]);
  }

  async askToDrain(name: string): Promise<boolean> {
    const rows = await this.#database.query(
      `UPDATE {s}.agents SET drain_asked = true WHERE name = $1 AND ${SEEN} RETURNING 1`,
      [name],
    );
    return rows.length > 0;
  }

  /** The agents that are alive, and those that were seen within a week and did not stop in order. */
  async all(): Promise<AgentRow[]> {
    const rows = await this.#database.query<Omit<AgentRow, keyof AgentAbout> & { readonly about: unknown }>(
      `SELECT name, most_jobs AS "maxJobs", ${JOBS} AS jobs, lag_ms::float8 AS "pollAgeMs", calls_last_minute AS "callsLastMinute",
         lacks, not_followed AS "notFollowed", about, floor(extract(epoch FROM started_at)::float8 * 1000::float8) AS "startedAt",
         floor(extract(epoch FROM seen_at)::float8 * 1000::float8) AS "seenAt",
         CASE WHEN NOT (${SEEN}) THEN 'gone' WHEN is_draining THEN 'draining' ELSE 'alive' END AS state
       FROM {s}.agents WHERE seen_at > now() - interval '7 days' AND NOT is_ended ORDER BY name`,
    );
    return rows.map(({ about, ...rest }) => ({ ...rest, ...this.#database.border.about(about) }));
  }

  async nameTaken(name: string): Promise<JobtailError> {
    const other = (await this.all()).find((agent) => agent.name === name);
    const where = other === undefined ? '' : ` (host ${other.host}, pid ${other.pid})`;
    return new JobtailError('locked', `another agent of the fleet is called ${name}${where}`, {
      hint: 'give each agent a name of its own: fleet.name',
    });
  }
}
