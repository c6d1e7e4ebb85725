/** How a fleet stands: what `agent status --json` prints where there is one. */
import type { Config } from '../../config/config.ts';
import type { FleetClient } from '../../fleet/client.ts';
import type { AgentRow } from '../../fleet/register.ts';
import type { JobId } from '../../job.ts';
import { reportOf } from '../show/status-report.ts';
import { withView } from './view.ts';

export type FleetReport = Awaited<ReturnType<typeof fleetReport>>;

/** The report of one agent, with whose each job is, and with the agents. */
export async function fleetReport(config: Config, client: FleetClient, only: JobId | undefined) {
  const [agents, owners] = [await client.agents(), await client.owners()];
  const report = await withView({ config, client, only }, (store) => reportOf(config, store, only));
  const byJob = new Map(owners.map((row) => [row.jobId, row]));
  const waiting = owners.filter(
    ({ jobId, owner, state }) => owner === null && isWork(state) && (only ?? jobId) === jobId,
  );
  return {
    ...report,
    agents: agents.map((agent) => agentReport(agent, config.service.requestsPerMinute)),
    waitingJobs: waiting.length,
    jobs: report.jobs.map((job) => {
      const { owner = null, attempt = null } = byJob.get(job.jobId) ?? {};
      return { ...job, owner, attempt };
    }),
  };
}

const isWork = (state: string) => state !== 'ended' && state !== 'settled';

function agentReport(agent: AgentRow, callsPerMinute: number | null) {
  const { lacks, notFollowed } = agent;
  const { name, state, jobs, mostJobs, lagMs, callsLastMinute, startedAt, seenAt, host, pid, version } = agent;
  return {
    ...{ name, state, jobs, mostJobs, lagMs, callsLastMinute, lacks, notFollowed },
    /** Of the calls a minute that all may make together; null without a fixed limit. */
    budgetShare: callsPerMinute === null ? null : Math.round((callsLastMinute / callsPerMinute) * 1000) / 1000,
    ...{ startedAt: Math.round(startedAt), seenAt: Math.round(seenAt), host, pid, version },
  };
}
