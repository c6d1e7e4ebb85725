/** The followed jobs: in the state of this machine, from its agent, or in the database of its fleet. */
import { type Config, hasFleet } from '../config/config.ts';
import { SharedState } from '../daemon/state.ts';
import { isOfAnother, jobsOfAgent } from './agent-socket.ts';
import { reportOf, surroundingsOf } from './show/status-report.ts';
import { type FollowedJobs, followerOf, jobsIn } from './stored-jobs.ts';

/** Opens state, socket or database when `work` first reads it. */
export async function withJobs<T>(config: Config, work: (jobs: FollowedJobs) => Promise<T>): Promise<T> {
  const jobs = await followedJobs(config);
  try {
    return await work(jobs);
  } finally {
    await jobs.close();
  }
}

async function followedJobs(config: Config): Promise<FollowedJobs> {
  if (hasFleet(config)) return (await import('./fleet/client.ts')).jobsOfFleet(config);
  if (isOfAnother(config)) return jobsOfAgent(config);
  return jobsOfThisMachine(config, new SharedState(config));
}

export function jobsOfThisMachine(config: Config, state: SharedState): FollowedJobs {
  const jobs = jobsIn(config, async (_, work) => work(state.store));
  return {
    ...jobs,
    report: async (wanted) => ({ ...reportOf(config, state.store, wanted), ...(await surroundingsOf(config)) }),
    // This user may not be allowed to read the state.
    reported: () => jobs.reported(async () => state.ifReadable?.jobs.states() ?? new Map()),
    follower: async (jobId) => followerOf(config, state.store, jobId),
    close: async () => state.close(),
  };
}
