/** The complete passes of one followed job: those that end it, which are retried, and those that commands request. */
import { EXIT, type JobtailError } from '../../errors.ts';
import type { PassEnd } from '../pass/job-end.ts';
import type { JobParts } from './job-context.ts';
import type { PollRun } from './poll-run.ts';
import { DUE_RUNS } from './scheduler.ts';

export class PassRun {
  readonly #job: JobParts;
  readonly #poll: PollRun;

  constructor(job: JobParts, poll: PollRun) {
    this.#job = job;
    this.#poll = poll;
  }

  /** Undefined for an unknown job. Rejects if the pass must be retried. */
  async run(): Promise<PassEnd | undefined> {
    const { context, polls, runs, signal } = this.#job;
    const end = await context.passes.run(polls, {
      signal,
      isSettling: () => this.#poll.isSettling,
      isGivenUp: (failure) => this.#isGivenUp(failure),
      onThrough: async (appended) => {
        this.#poll.grew(appended);
        for (const kind of DUE_RUNS) runs.failures.cleared(runs.scopeOf(kind));
        await runs.succeeded(DUE_RUNS, { grew: appended > 0 });
      },
    });
    if (end?.failure === undefined) return end;
    if (!end.isLast) runs.commandFailed('pass', end.failure);
    else if (end.state === 'settled') runs.givenUp('pass', end.failure);
    else throw end.failure;
    return end;
  }

  /**
   * Whether the last pass has failed for too long by what the service answers for this job. A service that is away, or a
   * disk that is full, is waited for.
   */
  #isGivenUp({ policy }: JobtailError): boolean {
    const { jobId, context, stage } = this.#job;
    if (!stage.isOverdue || (policy.exitCode !== EXIT.service && policy.exitCode !== EXIT.notFound)) return false;
    // The polls of live files work, so the service answers.
    return !policy.isOfService || context.deps.store.liveFiles.ofJob(jobId).length > 0;
  }
}
