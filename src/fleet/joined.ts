/** Joins an agent to its fleet: opens the database, and brings the agent's own jobs. */
import type { Log } from '../agent/ports/host.ts';
import type { JobId } from '../job.ts';
import { slicesOf } from '../slices.ts';
import type { Store } from '../store/store.ts';
import { FleetAgents, idsOf } from './agents/agents.ts';
import { COMMANDS_CHANNEL, Commands } from './commands/commands.ts';
import { FORGOTTEN } from './commands/forgotten.ts';
import { Database, type FleetAddress } from './database/database.ts';
import { migrate } from './database/tables.ts';
import { Claims } from './owners/claims.ts';
import { ROWS_AT_ONCE, writeRows } from './rows/handover.ts';

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

/** The jobs of this agent from before it joined become jobs of the fleet; those that are over have no owner. */
export async function bringOwnJobs(
  store: Store,
  mirror: string,
  { database, commands }: Joined,
  log: Log,
): Promise<void> {
  const taken = new Set(store.fleetLeases.all().map(({ jobId }) => jobId));
  const jobs = store.jobs.all();
  const known = new Set(idsOf(jobs));
  const own = [
    ...jobs.filter(({ jobId }) => !taken.has(jobId)).map(({ jobId, state, source }) => ({ jobId, state, source })),
    ...[...store.jobs.known()].flatMap((jobId) =>
      known.has(jobId) ? [] : { jobId, state: FORGOTTEN, source: 'command' },
    ),
  ];
  if (own.length === 0) return;
  await database.transaction(async (sql) => {
    const brought = await sql.query<{ readonly jobId: JobId }>(
      `INSERT INTO {s}.jobs (job_id, state, source, mirror, waiting_since)
       SELECT job_id, state, source, $2, CASE WHEN state IN ('watched', 'ending') THEN now() END
       FROM unnest($1::text[], $3::text[], $4::text[]) AS own (job_id, state, source)
       ON CONFLICT (job_id) DO NOTHING RETURNING job_id AS "jobId"`,
      [idsOf(own), mirror, own.map(({ state }) => state), own.map(({ source }) => source)],
    );
    for (const { jobId } of brought)
      for (const rows of slicesOf([...store.portableRows.ofJob(jobId)], ROWS_AT_ONCE)) await writeRows(sql, rows);
    await commands.notify(sql);
    if (brought.length > 0) log.info({ jobs: brought.length }, 'jobs brought into the fleet');
  });
}
