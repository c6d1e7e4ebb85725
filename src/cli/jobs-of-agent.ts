/** The followed jobs, as their agent reports them over its socket. */
import type { Config } from '../config/config.ts';
import { isOver, type JobId } from '../job.ts';
import { askSocket } from './agent-socket.ts';
import type { JobFollower } from './follower.ts';
import type { DeliveryList, ListedJob, ResultList } from './show/lists.ts';
import type { Surroundings } from './show/status-report.ts';
import type { ShownReport } from './show/status-table.ts';

/** As `FollowedJobs`. */
export function jobsOfAgent(config: Config) {
  const get = <T extends object>(path: string) => askSocket<T>(config, { path });
  const report = (only: JobId | 'all' | undefined) => {
    const path = only === undefined ? 'jobs' : only === 'all' ? 'jobs?all=1' : `jobs/${only}`;
    return get<ShownReport & Surroundings>(path);
  };
  return {
    job: async (jobId: JobId) => (await report(jobId)).jobs[0],
    ended: async (jobId: JobId) => (await report(jobId)).jobs.find(isOver),
    report,
    surroundings: async () => {
      const { disks = [], view } = await report(undefined);
      return { disks, view };
    },
    reported: async () => (await get<{ readonly jobs: ListedJob[] }>('reported-jobs')).jobs,
    results: (jobId: JobId) => get<ResultList>(`jobs/${jobId}/results`),
    deliveries: () => get<DeliveryList>('notifications'),
    follower: async (): Promise<JobFollower> => ({ by: 'agent', text: 'the running agent follows it' }),
    isExecuted: async () => true,
    elsewhere: async () => undefined,
    close: async () => {},
  };
}
