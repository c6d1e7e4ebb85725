/** The followed jobs as commands read them, and who follows them. */
import type { Config } from '../config/config.ts';
import type { JobId } from '../job.ts';
import { lockHolder } from '../store/lock.ts';
import type { Store } from '../store/store.ts';
import type { DeliveryList, ListedJob, ResultList } from './show/lists.ts';
import { endedIn, type JobReport, jobIn, type ShownReport, type WantedJobs } from './show/status-report.ts';

export interface FollowedJobs {
  /** Undefined if it was never watched. @throws JobtailError if it was removed from the state */
  job(jobId: JobId): Promise<JobReport | undefined>;
  /** The same once the agent works on it no more. */
  ended(jobId: JobId): Promise<JobReport | undefined>;
  /** What `agent status` shows. */
  report(wanted: WantedJobs): Promise<ShownReport>;
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

/** Calls `work` with a store that has the job, or all jobs; of a fleet's, results are only counted unless `withResults` names it. */
export type ReadStore = <T>(
  only: JobId | undefined,
  work: (store: Store) => T | Promise<T>,
  withResults?: JobId[],
) => Promise<T>;

/** What a store of jobs answers, that of this machine or a copy of a fleet's. */
export const jobsIn = (config: Config, read: ReadStore) => ({
  job: (jobId: JobId) => read(jobId, (store) => jobIn(config, store, jobId)),
  ended: (jobId: JobId) => read(jobId, (store) => endedIn(config, store, jobId)),
  // Loaded only here: lists need the notification rules, and the service its protocols.
  async reported(states = () => read(undefined, (store) => store.jobs.states())): Promise<ListedJob[]> {
    const [{ listJobs }, { listedJobs }] = await Promise.all([import('./job-service.ts'), import('./show/lists.ts')]);
    return listedJobs(await listJobs(config), await states());
  },
  async results(jobId: JobId): Promise<ResultList> {
    const { resultList } = await import('./show/lists.ts');
    return await read(jobId, (store) => resultList(config, store, jobId), [jobId]);
  },
  async deliveries(): Promise<DeliveryList> {
    const { deliveryList } = await import('./show/lists.ts');
    return await read(undefined, (store) => deliveryList(config, store));
  },
});

/** command: another one that has the lock of the state, while a command waits for the job. fleet: an agent of the fleet. */
export interface JobFollower {
  readonly by: 'nobody' | 'this' | 'command' | 'agent' | 'fleet';
  /** What a command prints about it. */
  readonly text: string;
}

export const NOT_FOLLOWED: JobFollower = {
  by: 'nobody',
  text: 'no agent is running: it is followed once one is started (agent run)',
};

/** Who follows a job of the state of this machine: the one answer for every command and message. */
export function followerOf({ state }: Config, store: Store, jobId: JobId): JobFollower {
  const holder = lockHolder(state.directory);
  if (holder === undefined) return NOT_FOLLOWED;
  if (holder.role === 'agent') return { by: 'agent', text: 'the running agent follows it' };
  if (!store.requests.open('follow').some((request) => request.jobId === jobId)) return NOT_FOLLOWED;
  if (holder.pid === process.pid) return { by: 'this', text: 'this command follows it' };
  return { by: 'command', text: `another command (pid ${holder.pid}${holder.host}) follows it, while a command waits` };
}
