/** Access of a command to its fleet: the client, and the jobs as a store and as a report. */
import { type Config, type FleetConfig, serviceAddress } from '../../config/config.ts';
import { fleetAddress } from '../../daemon/fleet.ts';
import { FleetClient } from '../../fleet/client.ts';
import type { AgentRow } from '../../fleet/register.ts';
import type { JobId } from '../../job.ts';
import { Secrets } from '../../redact.ts';
import type { Store } from '../../store/store.ts';
import { commandLog } from '../process.ts';
import { type Report, reportOf } from '../show/status-report.ts';

/** For a command that places commands. @throws JobtailError */
export async function withFleet<T>(config: FleetConfig, work: (client: FleetClient) => Promise<T>): Promise<T> {
  const client = await openClient(config, 'open');
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
  return await FleetClient[open]({ ...address, onIgnored }, serviceAddress(config.service));
}

export const isAnyThere = async (client: FleetClient): Promise<boolean> =>
  (await client.agents()).some(({ state }) => state !== 'gone');

export type FleetReport = Awaited<ReturnType<typeof fleetReport>>;

async function fleetReport(config: Config, client: FleetClient, only: JobId | undefined) {
  const [agents, owners] = [await client.agents(), await client.owners()];
  const report = reportOf(config, await client.jobs({ only }), only);
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
    agents: agents.map((agent) => ({
      ...agent,
      /** Share of the calls per minute of the fleet; null without a fixed limit. */
      budgetShare: callsPerMinute === null ? null : Math.round((agent.callsLastMinute / callsPerMinute) * 1000) / 1000,
    })),
    waitingJobs: waiting.length,
    jobs: jobs.map((job) => {
      const { owner = null, attempt = null } = byJob.get(job.jobId) ?? {};
      return { ...job, owner, attempt };
    }),
  };
}

/** As `FollowedJobs`. */
export class JobsOfFleet {
  readonly #config: FleetConfig;
  #opened: FleetClient | undefined;

  constructor(config: FleetConfig) {
    this.#config = config;
  }

  async #client(): Promise<FleetClient> {
    this.#opened ??= await openClient(this.#config, 'openReadOnly');
    return this.#opened;
  }

  async read<T>(only: JobId | undefined, work: (store: Store) => T | Promise<T>, withResults = false): Promise<T> {
    const client = await this.#client();
    return await work(await client.jobs({ only, withResults: only !== undefined && withResults ? [only] : [] }));
  }

  async report(only: JobId | 'all' | undefined): Promise<FleetReport> {
    return await fleetReport(this.#config, await this.#client(), only === 'all' ? undefined : only);
  }

  async isFollowed(): Promise<boolean> {
    return await isAnyThere(await this.#client());
  }

  async elsewhere(jobId: JobId): Promise<string | undefined> {
    const { name, separateMirrors } = this.#config.fleet;
    const [row] = separateMirrors ? await (await this.#client()).owners(jobId) : [];
    return row?.owner === name ? undefined : (row?.owner ?? undefined);
  }

  async close(): Promise<void> {
    await this.#opened?.close();
  }
}
