/** The followed jobs, in the state of this machine or in the database of its fleet. */
import { type Config, hasFleet } from '../config/config.ts';
import { SharedState } from '../daemon/state.ts';
import type { JobId } from '../job.ts';
import type { Store } from '../store/store.ts';
import { followerOf, type JobFollower } from './follower.ts';
import { reportOf } from './show/status-report.ts';
import type { ShownReport } from './show/status-table.ts';

export interface FollowedJobs {
  /**
   * Runs `work` on the rows of all jobs, or of one; one read after the other, because in a fleet they use one store. There,
   * results are counted, or those of one job listed.
   */
  read<T>(only: JobId | undefined, work: (store: Store) => T | Promise<T>, withResults?: boolean): Promise<T>;
  report(only: JobId | 'all' | undefined): Promise<ShownReport>;
  follower(jobId: JobId): Promise<JobFollower>;
  /** Whether a command for a fleet was executed. @throws JobtailError if it was refused */
  isExecuted(commandId: string): Promise<boolean>;
  /** The agent whose machine has the mirrors of a job; undefined if they are here. */
  elsewhere(jobId: JobId): Promise<string | undefined>;
  close(): Promise<void>;
}

/** Opens state or database when `work` first reads it. */
export async function withJobs<T>(config: Config, work: (jobs: FollowedJobs) => Promise<T>): Promise<T> {
  const jobs: FollowedJobs = hasFleet(config)
    ? (await import('./fleet/client.ts')).jobsOfFleet(config)
    : jobsOfThisMachine(config, new SharedState(config));
  try {
    return await work(jobs);
  } finally {
    await jobs.close();
  }
}

export function readJobs<T>(config: Config, only: JobId | undefined, work: (store: Store) => T | Promise<T>) {
  return withJobs(config, (jobs) => jobs.read(only, work, true));
}

export function jobsOfThisMachine(config: Config, state: SharedState): FollowedJobs {
  return {
    read: async (_, work) => await work(state.store),
    report: async (only) => reportOf(config, state.store, only),
    follower: async (jobId) => followerOf(config, state.store, jobId),
    isExecuted: async () => true,
    elsewhere: async () => undefined,
    close: async () => state.close(),
  };
}
