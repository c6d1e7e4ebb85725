/** Joins an agent to its fleet: opens the database, and brings the agent's own jobs. */
import type { Log } from '../agent/ports/host.ts';
import type { JobId } from '../job.ts';
import type { Store } from '../store/store.ts';
import { FleetAgents, idsOf } from './agents/agents.ts';
import { COMMANDS_CHANNEL, Commands } from './commands/commands.ts';
import { Database, type FleetAddress } from './database/database.ts';
import { migrate } from './database/tables.ts';
import { Claims } from './owners/claims.ts';
import { writeRows } from './rows/handover.ts';

export interface Joined {
  close(): Promise<void>;
  readonly database: Database;
  readonly claims: Claims;
  readonly commands: Commands;
  readonly agents: FleetAgents;
}

interface AgentConnection {
  readonly instance: string;
  readonly onNotice: () => void;
  readonly onConnect: () => void;
}

/** Heartbeats have their own connection, which also receives notices. @throws JobtailError fleet, config */
export async function openFleet(address: FleetAddress, name: string, agent: AgentConnection): Promise<Joined> {
  const database = await Database.open(address, { name }, migrate);
  const listener = { ...agent, channel: `${address.schema}_${COMMANDS_CHANNEL}` };
  const heartbeats = await Database.open(address, { name: `${name} heartbeats`, max: 1, listener });
  const [agents, commands] = [new FleetAgents(heartbeats), new Commands(database)];
  const claims = new Claims(database, agents, name, agent.instance);
  const close = async () => void (await Promise.all([database.close(), heartbeats.close()]));
  return { database, claims, commands, agents, close };
}

/** Jobs that this agent followed before it joined become jobs of the fleet. */
export async function bringOwnJobs(
  store: Store,
  mirror: string,
  { database, commands }: Joined,
  log: Log,
): Promise<void> {
  const taken = new Set(store.fleetLeases.all().map(({ jobId }) => jobId));
  const own = store.jobs
    .all()
    .filter(({ jobId, state }) => !taken.has(jobId) && (state === 'watched' || state === 'ending'));
  if (own.length === 0) return;
  await database.transaction(async (sql) => {
    const brought = await sql.query<{ readonly jobId: JobId }>(
      `INSERT INTO {s}.jobs (job_id, mirror, waiting_since) SELECT job_id, $2, now() FROM unnest($1::text[]) AS own (job_id)
       ON CONFLICT (job_id) DO NOTHING RETURNING job_id AS "jobId"`,
      [idsOf(own), mirror],
    );
    for (const { jobId } of brought) await writeRows(sql, [...store.portableRows.ofJob(jobId)]);
    await commands.notify(sql);
    if (brought.length > 0) log.info({ jobs: brought.length }, 'jobs brought into the fleet');
  });
}
