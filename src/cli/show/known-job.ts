/** The state of a job while its mirrors are shown, and whether an agent follows it. */
import type { Config } from '../../config/config.ts';
import { sharedStoreIfReadable } from '../../daemon/state.ts';
import type { JobId } from '../../job.ts';
import { lockHolder } from '../../store/lock.ts';
import type { JobInformationRow, WatchState } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';

export interface KnownJob {
  refresh(): Promise<void>;
  /** False if the user may not read the state; then everything else is undefined. */
  readonly isKnowable: boolean;
  readonly state: WatchState | undefined;
  readonly information: JobInformationRow | undefined;
  /** Whether an agent runs that follows it, or would. */
  readonly isFollowed: boolean;
  /** The agent whose machine has the mirrors; undefined if they are here. */
  readonly elsewhere: string | undefined;
  close(): Promise<void>;
}

export class JobOfState implements KnownJob {
  readonly #config: Config;
  readonly #jobId: JobId;
  readonly #store: Store | undefined;
  readonly elsewhere = undefined;

  constructor(config: Config, jobId: JobId) {
    this.#config = config;
    this.#jobId = jobId;
    this.#store = sharedStoreIfReadable(config);
  }

  async refresh(): Promise<void> {}

  get isKnowable(): boolean {
    return this.#store !== undefined;
  }

  get state(): WatchState | undefined {
    return this.#store?.jobs.get(this.#jobId)?.state;
  }

  get information(): JobInformationRow | undefined {
    return this.#store?.jobInformation.get(this.#jobId);
  }

  get isFollowed(): boolean {
    return lockHolder(this.#config.state.directory) !== undefined;
  }

  async close(): Promise<void> {
    this.#store?.close();
  }
}
