/** The state of a job while its mirrors are shown, and whether an agent follows it. */
import type { Config } from '../../config/config.ts';
import { sharedStoreIfReadable } from '../../daemon/state.ts';
import type { JobId, TaskId } from '../../job.ts';
import { lockHolder } from '../../store/lock.ts';
import type { JobInformationRow, WatchState } from '../../store/rows.ts';

export interface KnownJob {
  refresh(): Promise<void>;
  /** False if the user may not read the state; then everything else is undefined. */
  readonly isKnowable: boolean;
  readonly state: WatchState | undefined;
  readonly information: JobInformationRow | undefined;
  /** The known tasks. */
  readonly tasks: readonly TaskId[];
  /** Whether an agent runs that follows it, or would. */
  readonly isFollowed: boolean;
  /** The agent whose machine has the mirrors; undefined if they are here. */
  readonly elsewhere: string | undefined;
  close(): Promise<void>;
}

export function jobOfState(config: Config, jobId: JobId): KnownJob {
  const store = sharedStoreIfReadable(config);
  return {
    refresh: async () => {},
    isKnowable: store !== undefined,
    get state() {
      return store?.jobs.get(jobId)?.state;
    },
    get information() {
      return store?.jobInformation.get(jobId);
    },
    get tasks() {
      return store?.taskSearches.knownTasks(jobId) ?? [];
    },
    get isFollowed() {
      return lockHolder(config.state.directory) !== undefined;
    },
    elsewhere: undefined,
    close: async () => store?.close(),
  };
}
