/** Access of a command to its fleet: the client, and the jobs as a store and as a report. */
import { type Config, type FleetConfig, serviceAddress } from '../../config/config.ts';
import { fleetAddress } from '../../daemon/fleet.ts';
import { FleetClient, FleetReader } from '../../fleet/commands/client.ts';
import type { FleetAddress } from '../../fleet/database/database.ts';
import type { JobId } from '../../job.ts';
import { printable } from '../../printable.ts';
import { Secrets } from '../../redact.ts';
import { resultOf } from '../ask-agent.ts';
import { commandLog } from '../process.ts';
import { ofFleet, reportOf, viewReport, type WantedJobs } from '../show/status-report.ts';
import { type JobFollower, jobsIn, NOT_FOLLOWED, type ReadStore } from '../stored-jobs.ts';

/** For a command that places commands. @throws JobtailError */
export async function withFleet<T>(config: FleetConfig, work: (client: FleetClient) => Promise<T>): Promise<T> {
  const client = await FleetClient.open(await addressOf(config), serviceAddress(config.service));
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

async function addressOf(config: FleetConfig): Promise<FleetAddress> {
  const log = commandLog();
  const onIgnored = (what: string) => log.warn({ hint: 'another program wrote it, or a newer agent' }, what);
  return { ...(await fleetAddress(config.fleet, log, new Secrets())), onIgnored };
}

export const isAnyThere = async (client: FleetClient): Promise<boolean> =>
  (await client.agents.all()).some(({ state }) => state !== 'gone');

/** Who follows a job of the fleet, as `followerOf` for the state of one machine. */
export async function followerIn(client: FleetClient, jobId: JobId): Promise<JobFollower> {
  if (!(await isAnyThere(client))) return NOT_FOLLOWED;
  const owner = (await client.owners(jobId))[0]?.owner ?? null;
  return { by: 'fleet', text: `${owner === null ? 'the next agent with room' : printable(owner)} follows it` };
}

async function fleetReport(config: Config, client: FleetClient, wanted: WantedJobs) {
  const [agents, owners] = [await client.agents.all(), await client.owners()];
  const only = typeof wanted === 'object' && wanted.length === 1 ? wanted[0] : undefined;
  const report = reportOf(config, await client.jobs({ only }), wanted);
  return { ...report, ...ofFleet(report.jobs, agents, owners) };
}

/** As `FollowedJobs`. */
export function jobsOfFleet(config: FleetConfig) {
  const { name, separateMirrors } = config.fleet;
  const reader = new FleetReader(() => addressOf(config), serviceAddress(config.service));
  /** One after the other: they use one store. */
  const of: ReadStore = (only, work, withResults = []) =>
    reader.read(async (client) => work(await client.jobs({ only, withResults })));
  return {
    ...jobsIn(config, of),
    of,
    report: async (wanted: WantedJobs) => {
      const report = await reader.read((client) => fleetReport(config, client, wanted));
      return { ...report, view: await viewReport(config) };
    },
    follower: (jobId: JobId): Promise<JobFollower> => reader.read((client) => followerIn(client, jobId)),
    async isExecuted(commandId: string): Promise<boolean> {
      const answer = await reader.read((client) => client.commands.answerOf(commandId));
      if (answer !== undefined) resultOf(answer);
      return answer !== undefined;
    },
    async elsewhere(jobId: JobId): Promise<string | undefined> {
      const [row] = separateMirrors ? await reader.read((client) => client.owners(jobId)) : [];
      return row?.owner === name ? undefined : (row?.owner ?? undefined);
    },
    close: () => reader.close(),
  };
}
