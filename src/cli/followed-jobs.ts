/** The followed jobs: in the state of this machine, from its agent, or in the database of its fleet. */
import { type Config, hasFleet } from '../config/config.ts';
import { SharedState } from '../daemon/state.ts';
import type { JobId } from '../job.ts';
import { isOfAnother, jobsOfAgent } from './agent-socket.ts';
import { followerOf, type JobFollower } from './follower.ts';
import type { DeliveryList, ListedJob, ResultList } from './show/lists.ts';
import {
  endedIn,
  type JobReport,
  jobIn,
  reportOf,
  type Surroundings,
  surroundingsOf,
  type WantedJobs,
} from './show/status-report.ts';
import type { ShownReport } from './show/status-table.ts';

export interface FollowedJobs {
  /** Undefined if it was never watched. @throws JobtailError if it was removed from the state */
  job(jobId: JobId): Promise<JobReport | undefined>;
  /** The same once the agent works on it no more. */
  ended(jobId: JobId): Promise<JobReport | undefined>;
  /** What `agent status` shows. */
  report(wanted: WantedJobs): Promise<ShownReport & Surroundings>;
  /** The user's jobs, as the middleware reports them. */
  reported(): Promise<ListedJob[]>;
  /** @throws JobtailError job-unknown */
  results(jobId: JobId): Promise<ResultList>;
  deliveries(): Promise<DeliveryList>;
  follower(jobId: JobId): Promise<JobFollower>;
  /** Whether a command for a fleet was executed. @throws JobtailError if it was refused */
  isExecuted?(commandId: string): Promise<boolean>;
  /** The agent of the fleet whose machine has the mirrors of a job; undefined if they are here. */
  elsewhere?(jobId: JobId): Promise<string | undefined>;
  close(): Promise<void>;
}

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
  return {
    job: async (jobId) => jobIn(config, state.store, jobId),
    ended: async (jobId) => endedIn(config, state.store, jobId),
    report: async (wanted) => ({ ...reportOf(config, state.store, wanted), ...(await surroundingsOf(config)) }),
    // This user may not be allowed to read the state.
    reported: async () => {
      const { reportedJobs } = await import('./job-service.ts');
      return await reportedJobs(config, async () => state.ifReadable?.jobs.states() ?? new Map());
    },
    // Loaded only here: they need the notification rules.
    results: async (jobId) => (await import('./show/lists.ts')).resultList(config, state.store, jobId),
    deliveries: async () => (await import('./show/lists.ts')).deliveryList(config, state.store),
    follower: async (jobId) => followerOf(config, state.store, jobId),
    close: async () => state.close(),
  };
}
