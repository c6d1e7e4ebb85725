/** The agents of the fleet: who is there, how many jobs each owns and may own, and how many jobs wait for an owner. */
import { JobtailError } from '../errors.ts';
import type { Database } from './database.ts';
import type { Capacity } from './share.ts';

export interface Member {
  readonly name: string;
  /** Of its state directory: whoever holds the lock of that is the only one. */
  readonly stateId: string;
  /** Of this process. */
  readonly instance: string;
  readonly mostJobs: number;
  readonly leaseMs: number;
  readonly about: AgentAbout;
}

/** What is told of an agent besides. */
export interface AgentAbout {
  readonly host: string;
  readonly pid: number;
  readonly version: string;
}

/** How an agent stands, as it says every few seconds. */
export interface Report {
  readonly lagMs: number | null;
  readonly callsLastMinute: number;
  readonly isDraining: boolean;
}

export interface AgentRow extends Capacity, AgentAbout, Report {
  readonly jobs: number;
  readonly state: 'alive' | 'draining' | 'gone';
  /** Milliseconds since 1970, by the clock of the database. */
  readonly startedAt: number;
  readonly seenAt: number;
}

/** What an agent learns when it reports. */
export interface Standing {
  /** Those that take jobs, this one among them. */
  readonly agents: readonly (Capacity & { readonly jobs: number })[];
  /** Of the queue: all, those that nobody owns, and how long the first of these waits. */
  readonly jobs: number;
  readonly waiting: number;
  readonly waitingMs: number;
  /** Somebody asked this agent to hand its jobs over and end. */
  readonly drainAsked: boolean;
}

/** It may have been busy for longer than a lease; whoever looks is not told "gone" each time. */
const SEEN = `seen_at > now() - lease_ms * interval '1 ms' AND NOT is_ended`;

/** As it is just now, not as it was when the agent reported. */
const JOBS = '(SELECT count(*)::int FROM {s}.jobs WHERE owner = agents.name) AS jobs';

export class Register {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** False while an agent with another state has the name and is seen. */
  async join({ name, stateId, instance, mostJobs, leaseMs, about }: Member): Promise<boolean> {
    const rows = await this.#database.query(
      `INSERT INTO {s}.agents (name, state_id, instance, most_jobs, lease_ms, about) VALUES ($1, $2, $3, $4, $5, $6)
       ON CONFLICT (name) DO UPDATE SET state_id = excluded.state_id, instance = excluded.instance, most_jobs = excluded.most_jobs,
         lease_ms = excluded.lease_ms, about = excluded.about, started_at = now(), seen_at = now(), is_ended = false,
         is_draining = false, drain_asked = false
       WHERE agents.state_id = excluded.state_id OR NOT (agents.seen_at > now() - agents.lease_ms * interval '1 ms' AND NOT agents.is_ended)
       RETURNING 1`,
      [name, stateId, instance, mostJobs, leaseMs, JSON.stringify(about)],
    );
    return rows.length > 0;
  }

  /** @throws JobtailError locked if another agent took the name */
  async report({ name, instance }: Member, report: Report): Promise<Standing> {
    const { lagMs, callsLastMinute, isDraining } = report;
    const [own] = await this.#database.query<{ readonly drainAsked: boolean }>(
      `UPDATE {s}.agents SET seen_at = now(), is_ended = false, lag_ms = $3, calls_last_minute = $4, is_draining = $5
       WHERE name = $1 AND instance = $2 RETURNING drain_asked AS "drainAsked"`,
      [name, instance, lagMs === null ? null : Math.round(lagMs), callsLastMinute, isDraining],
    );
    if (own === undefined) throw nameTaken(name);
    const agents = await this.#database.query<Capacity & { readonly jobs: number }>(
      `SELECT name, most_jobs AS "mostJobs", ${JOBS} FROM {s}.agents WHERE ${SEEN} AND NOT is_draining ORDER BY name`,
    );
    const [queue] = await this.#database.query<Omit<Standing, 'agents' | 'drainAsked'>>(
      `SELECT count(*)::int AS jobs, count(*) FILTER (WHERE state < 'active')::int AS waiting,
         coalesce(extract(epoch FROM now() - min(start_after) FILTER (WHERE state < 'active')) * 1000, 0)::float AS "waitingMs"
       FROM {s}_boss.job WHERE name = 'follow' AND state <= 'active'`,
    );
    return { agents, jobs: 0, waiting: 0, waitingMs: 0, ...queue, ...own };
  }

  /** It stops in order. */
  async leave({ name, instance }: Member): Promise<void> {
    await this.#database.query('UPDATE {s}.agents SET is_ended = true WHERE name = $1 AND instance = $2', [
      name,
      instance,
    ]);
  }

  /** False if no such agent is there. */
  async askToDrain(name: string): Promise<boolean> {
    const rows = await this.#database.query(
      `UPDATE {s}.agents SET drain_asked = true WHERE name = $1 AND ${SEEN} RETURNING 1`,
      [name],
    );
    return rows.length > 0;
  }

  /** All that are there, and those that were seen within a week and did not end in order. */
  async all(): Promise<AgentRow[]> {
    const rows = await this.#database.query<Omit<AgentRow, keyof AgentAbout> & { readonly about: AgentAbout }>(
      `SELECT name, most_jobs AS "mostJobs", ${JOBS}, lag_ms::float AS "lagMs", calls_last_minute AS "callsLastMinute",
         is_draining AS "isDraining", about, extract(epoch FROM started_at)::float * 1000 AS "startedAt",
         extract(epoch FROM seen_at)::float * 1000 AS "seenAt",
         CASE WHEN NOT (${SEEN}) THEN 'gone' WHEN is_draining THEN 'draining' ELSE 'alive' END AS state
       FROM {s}.agents WHERE seen_at > now() - interval '7 days' AND NOT is_ended ORDER BY name`,
    );
    return rows.map(({ about, ...rest }) => ({ ...rest, ...about }));
  }
}

export function nameTaken(name: string): JobtailError {
  return new JobtailError('locked', `another agent of the fleet is called ${name}`, {
    hint: 'give each agent a name of its own: fleet.name',
  });
}
