/** `agent jobs`: the user's jobs as the middleware tells them, and which of them are followed. */
import { type Config, type FleetConfig, hasFleet } from '../../config/config.ts';
import { sharedStoreIfReadable } from '../../daemon/state.ts';
import { compareIds, type JobId } from '../../job.ts';
import { printableJson } from '../../printable.ts';
import type { WatchState } from '../../store/rows.ts';
import { listJobs } from '../job-service.ts';
import { jobsTable, type ListedJob } from '../show/jobs-table.ts';
import { columnsOfTerminal } from '../show/table.ts';
import { jobFields, taskFields } from '../show/told-report.ts';
import { type ConfigOption, configurationAsOwner } from './configuration.ts';

export async function jobs(options: ConfigOption & { readonly json?: boolean }): Promise<void> {
  const config = await configurationAsOwner(options);
  const told = await listJobs(config);
  const states = hasFleet(config) ? await statesInFleet(config) : statesHere(config);
  const listed = told.map((job) => ({
    jobId: job.id,
    ...jobFields(job),
    /** What it is to the agent; null if it was never watched. */
    watchState: states.get(job.id) ?? null,
    tasks: job.tasks.map(taskFields),
  }));
  // The youngest ones stand at the prompt.
  listed.sort((a, b) => compareIds(a.jobId, b.jobId));
  if (options.json === true) process.stdout.write(`${printableJson({ version: 1, jobs: listed }, 2)}\n`);
  else process.stdout.write(jobsTable(listed satisfies readonly ListedJob[], columnsOfTerminal()));
}

function statesHere(config: Config): Map<JobId, WatchState> {
  const store = sharedStoreIfReadable(config);
  try {
    return store?.jobs.states() ?? new Map();
  } finally {
    store?.close();
  }
}

async function statesInFleet(config: FleetConfig): Promise<Map<JobId, WatchState>> {
  const { lookAtFleet } = await import('../fleet/client.ts');
  const owners = await lookAtFleet(config, (client) => client.owners());
  return new Map(owners.flatMap(({ jobId, state }) => (state === 'ordered' ? [] : [[jobId, state as WatchState]])));
}
