/** Access of a command to its fleet: the client, the jobs as a store, the report, and one job. */
import { type Config, type FleetConfig, serviceAddress } from '../../config/config.ts';
import { fleetAddress } from '../../daemon/fleet.ts';
import { FleetClient } from '../../fleet/client.ts';
import { FleetCopy } from '../../fleet/copy.ts';
import type { AgentRow } from '../../fleet/register.ts';
import type { JobId } from '../../job.ts';
import { Secrets } from '../../redact.ts';
import type { Store } from '../../store/store.ts';
import { commandLog } from '../process.ts';
import { jobIn, type SeenJob, UNSEEN } from '../show/known-job.ts';
import { type Report, reportOf } from '../show/status-report.ts';

/** For a command that only reads. @throws JobtailError */
export async function readFleet<T>(config: FleetConfig, work: (client: FleetClient) => Promise<T>): Promise<T> {
  return await withFleet(config, work, 'openReadOnly');
}

/** For a command that places commands. @throws JobtailError */
export async function withFleet<T>(
  config: FleetConfig,
  work: (client: FleetClient) => Promise<T>,
  open: 'open' | 'openReadOnly' = 'open',
): Promise<T> {
  const client = await openClient(config, open);
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

async function openClient(config: FleetConfig, open: 'open' | 'openReadOnly'): Promise<FleetClient> {
  const log = commandLog();
  const address = await fleetAddress(config, log, new Secrets());
  const onIgnored = (what: string) => log.warn({ hint: 'another program wrote it, or a newer agent' }, what);
  return await FleetClient[open]({ ...address, onIgnored });
}

export interface ViewOptions {
  readonly config: Config;
  readonly client: FleetClient;
  readonly only?: JobId | undefined;
  /** With the results one by one; otherwise they are counted. */
  readonly withResults?: boolean;
}

/** Runs `work` on a store with the rows of all jobs, or of one. */
export async function withView<T>(
  { config, client, only, withResults = false }: ViewOptions,
  work: (store: Store) => T | Promise<T>,
): Promise<T> {
  const copy = new FleetCopy(serviceAddress(config.service));
  try {
    await copy.refresh(client, { only, withResults: only !== undefined && withResults ? [only] : [] });
    return await work(copy.store);
  } finally {
    copy.close();
  }
}

export type FleetReport = Awaited<ReturnType<typeof fleetReport>>;

export async function fleetReport(config: Config, client: FleetClient, only: JobId | undefined) {
  const [agents, owners] = [await client.agents(), await client.owners()];
  const report = await withView({ config, client, only }, (store) => reportOf(config, store, only));
  return { ...report, ...ofFleet(report, agents, owners, config.service.requestsPerMinute, only) };
}

/** What the report of a fleet has besides that of one agent. */
export function ofFleet(
  { jobs }: Pick<Report, 'jobs'>,
  agents: readonly AgentRow[],
  owners: Awaited<ReturnType<FleetClient['owners']>>,
  callsPerMinute: number | null,
  only: JobId | undefined,
) {
  const byJob = new Map(owners.map((row) => [row.jobId, row]));
  const waiting = owners.filter(({ isWaiting, jobId }) => isWaiting && (only ?? jobId) === jobId);
  return {
    agents: agents.map((agent) => agentReport(agent, callsPerMinute)),
    waitingJobs: waiting.length,
    jobs: jobs.map((job) => {
      const { owner = null, attempt = null } = byJob.get(job.jobId) ?? {};
      return { ...job, owner, attempt };
    }),
  };
}

function agentReport(agent: AgentRow, callsPerMinute: number | null) {
  const { lacks, notFollowed } = agent;
  const { name, state, jobs, maxJobs, lagMs, callsLastMinute, startedAt, seenAt, host, pid, version, view } = agent;
  return {
    ...{ name, state, jobs, maxJobs, lagMs, callsLastMinute, lacks, notFollowed },
    /** Share of the calls per minute of the fleet; null without a fixed limit. */
    budgetShare: callsPerMinute === null ? null : Math.round((callsLastMinute / callsPerMinute) * 1000) / 1000,
    ...{ startedAt: Math.round(startedAt), seenAt: Math.round(seenAt), host, pid, version, view },
  };
}

/** Unseen while the database is away: the mirrors are shown anyway. */
export function jobOfFleet(config: FleetConfig, only: JobId): SeenJob {
  let client: FleetClient | undefined;
  const read = async () => {
    client ??= await openClient(config, 'openReadOnly');
    const { name, separateMirrors } = config.fleet;
    const owner = separateMirrors ? ((await client.owners(only))[0]?.owner ?? name) : name;
    const isFollowed = (await client.agents()).some(({ state }) => state !== 'gone');
    const seen = await withView({ config, client, only }, (store) => jobIn(store, only, isFollowed));
    return { ...seen, elsewhere: owner === name ? undefined : owner };
  };
  return { read: () => read().catch(() => UNSEEN), close: async () => await client?.close() };
}
