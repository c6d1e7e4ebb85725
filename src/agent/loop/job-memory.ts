/** All that is remembered of a job from visit to visit, wherever it is kept: nothing stays of a job that is given up. */
import type { JobId } from '../../job.ts';
import type { PollContext } from '../poll/poll-context.ts';

/** Remembers something of jobs. */
export interface Memory {
  forgetJob(jobId: JobId): void;
}

export class JobMemory {
  readonly #mirrors: PollContext['liveFiles']['mirrors'];
  readonly #memories: readonly (Memory | undefined)[];

  /** `others`: besides what the polls remember. */
  constructor(polls: PollContext, others: readonly Memory[]) {
    const { quietFiles, witnesses, rawBytes, backlogs, batches, liveFiles } = polls;
    this.#mirrors = liveFiles.mirrors;
    this.#memories = [quietFiles, witnesses, rawBytes, backlogs, batches, liveFiles.settled, ...others];
  }

  /** Also closes its mirrors. */
  async forget(jobId: JobId): Promise<void> {
    for (const memory of this.#memories) memory?.forgetJob(jobId);
    await this.closeMirrors(jobId);
  }

  /** Closes those that were kept open and that no visit has in use. */
  async closeMirrors(jobId: JobId): Promise<void> {
    await this.#mirrors.closeJob(jobId);
  }
}
