/** Joins an agent to its fleet: opens the database, and brings the agent's own jobs. */
import type { Log } from '../agent/ports.ts';
import type { JobId } from '../job.ts';
import type { Store } from '../store/store.ts';
import { Claims } from './claims.ts';
import { COMMANDS_CHANNEL, Commands } from './commands.ts';
import type { Listener } from './connections.ts';
import { Database, type FleetAddress } from './database.ts';
import { KeptRows } from './handover.ts';
import { type Member, Register } from './register.ts';
import { requireCurrent } from './tables.ts';

export interface Joined {
  close(): Promise<void>;
  readonly database: Database;
  readonly claims: Claims;
  readonly commands: Commands;
  readonly register: Register;
}

type AgentConnection = Pick<Member, 'instance'> & Pick<Listener, 'onNotice' | 'onConnect'>;

/**
 * For a command, or for an agent: its heartbeats have their own connection, which receives the notices of commands and of
 * released jobs. @throws JobtailError fleet, config
 */
export async function openFleet(address: FleetAddress, name: string, agent?: AgentConnection): Promise<Joined> {
  return await orClose(await Database.open(address, name), async (database) => {
    if (agent === undefined) return joinedBy(database, name);
    const listener = { ...agent, channel: `${address.schema}_${COMMANDS_CHANNEL}` };
    const heartbeats = await Database.connect(address, { name: `${name} heartbeats`, max: 1, listener });
    return joinedBy(database, name, agent.instance, heartbeats);
  });
}

/** For commands that only read: it needs no right but SELECT. @throws JobtailError fleet, config */
export async function openFleetReadOnly(address: FleetAddress): Promise<Joined> {
  return await orClose(await Database.connect(address, { name: 'command', max: 1 }), async (database) => {
    await requireCurrent(database);
    return joinedBy(database, 'command');
  });
}

async function orClose(database: Database, join: (database: Database) => Promise<Joined>): Promise<Joined> {
  try {
    return await join(database);
  } catch (error) {
    await database.close();
    throw error;
  }
}

function joinedBy(database: Database, owner: string, instance = '', heartbeats = database): Joined {
  const [register, commands] = [new Register(heartbeats), new Commands(database)];
  const claims = new Claims({ database, register, owner, instance });
  const close = async () => void (await Promise.all([...new Set([database, heartbeats])].map((one) => one.close())));
  return { database, claims, commands, register, close };
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
  const brought: JobId[] = [];
  for (const { jobId } of own) {
    await database.transaction(async (sql) => {
      const rows = await sql.query(
        `INSERT INTO {s}.jobs (job_id, mirror, waiting_since) VALUES ($1, $2, now()) ON CONFLICT (job_id) DO NOTHING RETURNING 1`,
        [jobId, mirror],
      );
      if (rows.length === 0) return;
      await KeptRows.write(sql, [...store.portableRows.ofJob(jobId)]);
      await commands.notify(sql);
      brought.push(jobId);
    });
  }
  if (brought.length > 0) log.info({ jobs: brought.length }, 'jobs brought into the fleet');
}
