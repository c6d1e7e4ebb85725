/** What the state has of a job while its mirrors are shown, and whether an agent follows it. */
import type { Config } from '../../config/config.ts';
import { sharedStoreIfReadable } from '../../daemon/state.ts';
import type { JobId, TaskId } from '../../job.ts';
import { lockHolder } from '../../store/lock.ts';
import type { JobInformationRow, WatchState } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';

/** Without `isKnowable`, the user may not read the state; then everything else is empty. */
export interface JobSeen {
  readonly isKnowable: boolean;
  readonly state?: WatchState | undefined;
  readonly information?: JobInformationRow | undefined;
  /** The known tasks. */
  readonly tasks: readonly TaskId[];
  /** Whether an agent runs that follows it, or would. */
  readonly isFollowed: boolean;
  /** The agent whose machine has the mirrors; undefined if they are here. */
  readonly elsewhere?: string | undefined;
}

export interface SeenJob {
  read(): Promise<JobSeen>;
  close(): Promise<void>;
}

export const UNSEEN: JobSeen = { isKnowable: false, tasks: [], isFollowed: false };

export const jobIn = (store: Store, jobId: JobId, isFollowed: boolean): JobSeen => ({
  ...{ isKnowable: true, isFollowed, tasks: store.taskSearches.knownTasks(jobId) },
  ...{ state: store.jobs.get(jobId)?.state, information: store.jobInformation.get(jobId) },
});

export function jobOfState(config: Config, jobId: JobId): SeenJob {
  const store = sharedStoreIfReadable(config);
  const isFollowed = () => lockHolder(config.state.directory) !== undefined;
  return {
    read: async () => (store === undefined ? UNSEEN : jobIn(store, jobId, isFollowed())),
    close: async () => store?.close(),
  };
}
