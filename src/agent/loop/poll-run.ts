/** The polls of one followed job: when the next one is due, and what they show of the end of the job. */

import type { JobRow } from '../../store/rows.ts';
import { CallSlot, type Entrance, queuedRemote } from '../calls.ts';
import { needsAnotherPoll } from '../live/steps.ts';
import { isDeleted } from '../pass/deleted-jobs.ts';
import type { Polled } from '../poll/poll.ts';
import type { OneJob } from './one-job.ts';
import { restOf, withJitter } from './pace.ts';

/** Lanes of the first call of a poll, and of its next ones: a begun poll ends before others begin. */
const RUNNING = ['live', 'begun'] as const;
const OVER = ['wanted', 'ending'] as const;
const PATIENT = ['patient', 'patient'] as const;

/** Maximum delay of the commit of a poll without news. */
const QUIET_COMMIT_MS = 1_000;

export class PollRun {
  readonly #job: OneJob;
  /** Whether the last poll found a truncated or rewritten file, maybe of the archive of a deleted job: never progress. */
  #mayBeArchive = false;
  #hasFiles = false;
  #stallAfterMs: number | null = null;
  #isStalled = false;
  #lanes: typeof RUNNING | typeof OVER | typeof PATIENT = RUNNING;
  #entrance: Entrance | undefined;

  constructor(job: OneJob) {
    this.#job = job;
  }

  followed({ stallAfterMs, stalledAt }: JobRow): void {
    this.#stallAfterMs = stallAfterMs ?? this.#job.context.limits.stallAfterMs;
    this.#isStalled = stalledAt !== null;
  }

  /** Waits until the poll may begin: thousands of jobs may be due. */
  enter(): Promise<void> {
    const { context, pace, failures, stage, signal } = this.#job;
    // A slow or failing job must not delay the others, and jobs that are over must not delay running ones.
    const isPatient = pace.isSlow || failures.isFailing('poll');
    this.#lanes = isPatient ? PATIENT : stage.current === 'over' ? OVER : RUNNING;
    this.#entrance = context.calls.entrances[this.#lanes[0]];
    return this.#entrance.enter(signal);
  }

  /** Lets a poll that waits begin: its job is stopped, so it ends at once. */
  stop(): void {
    this.#entrance?.admit(this.#job.signal);
  }

  leave(): void {
    this.#entrance?.leave();
    this.#entrance = undefined;
  }

  /** Polls once; returns false if the job turns out to be deleted. */
  async run(): Promise<boolean> {
    const { jobId, context, stage, failures, due, pace, signal } = this.#job;
    const { clock, random } = context;
    if (this.#mayBeArchive && (await isDeleted(jobId, { ...context, signal }))) return false;
    const { polled, startedAt, longestMs, ofService } = await this.#poll();
    await this.#note(polled);
    const ends = [...polled.ends.values()];
    const isAnswered = ends.length > 0;
    this.#mayBeArchive = [...polled.ends].some(([name, end]) => end === 'different' && !name.endsWith('/progress'));
    if (!this.#hasFiles && ends.some((end) => end !== 'absent')) {
      this.#hasFiles = true;
      // The first results come with the first live files.
      due.plan('results', 0);
    }
    if (isAnswered) failures.worked('poll', ofService);

    if (!stage.isFollowed) return true;
    if (polled.appended === 0) stage.polled(startedAt, isAnswered);
    const hasNews = polled.appended > 0 || ends.some(needsAnotherPoll);
    const intervalMs = withJitter(pace.polled(hasNews, longestMs), random());
    if (this.isSettling) {
      const waitMs = failures.remainingMs('pass');
      due.plan('pass', waitMs);
      if (waitMs === 0) return true;
    }
    const { minIntervalMs } = context.limits.intervals;
    const endsInMs = stage.isSettled ? stage.overdueInMs : stage.settlesInMs;
    const nextMs = isAnswered ? Math.min(intervalMs, Math.max(minIntervalMs, endsInMs)) : intervalMs;
    due.planAgain('poll', restOf(nextMs, clock.monotonic() - startedAt));
    return true;
  }

  get isSettling(): boolean {
    const { jobId, context, stage, failures } = this.#job;
    return stage.isSettling(() => {
      const { liveFiles, results, jobs } = context.store;
      if (liveFiles.ofJob(jobId).some(({ error }) => error !== null)) return true;
      if (jobs.get(jobId)?.results !== true) return false;
      const { failed, refused } = results.counts(jobId);
      return failed > refused || failures.isFailing('results');
    });
  }

  grew(bytes: number): void {
    if (bytes === 0) return;
    this.#job.stage.grew();
    this.#job.context.events.onAppended(bytes);
  }

  /** `longestMs`: how long its longest call took, without its time in the queue. */
  async #poll() {
    const { context, polls, failures, signal } = this.#job;
    const { calls, clock, bare, waiting } = context;
    const [first, next] = this.#lanes;
    const whole = waiting[first === 'live' ? 'raw' : first];
    const slot = new CallSlot(calls, first, signal);
    const slotted = queuedRemote(bare.remote, slot, next);
    const begin = () => ({ startedAt: clock.monotonic(), ofService: failures.logged.ofService });
    let begun: ReturnType<typeof begin> | undefined;
    const waitForTurn = async () => {
      slot.end();
      await slot.take();
      this.leave();
      begun ??= begin();
    };
    const polled = await polls
      .poll({ remote: slotted, whole, waitForTurn, isFinal: false, signal })
      .finally(() => slot.end());
    return { polled, longestMs: slot.longestMs, ...(begun ?? begin()) };
  }

  /** Logs and stores the result of a poll; waits for the commit only if there was news. */
  async #note({ appended, refused, errors, ends }: Polled): Promise<void> {
    const { jobId, context, failures } = this.#job;
    const { log } = context;
    for (const [file, error] of errors) failures.logged.failed(`job ${jobId} ${file}`, error);
    for (const file of ends.keys()) failures.logged.cleared(`job ${jobId} ${file}`);
    const grew = appended > 0;
    if (grew) log.debug({ jobId, bytes: appended }, 'grown');
    this.grew(appended);
    if (refused > 0) log.warn({ jobId, refused }, 'unrequested entries ignored');
    const failed = failures.isFailing('poll');
    const stalledMs = this.#noteStall();
    if (grew || refused > 0 || failed) await failures.succeeded(['poll'], { grew, refused, stalledMs });
    else failures.inBackground(failures.succeeded(['poll'], { grew, withinMs: QUIET_COMMIT_MS, stalledMs }));
  }

  /** Milliseconds of running without growth, if the job is stalled. */
  #noteStall(): number | null {
    const { jobId, context, stage } = this.#job;
    const stalledMs = stage.stalledMs(this.#stallAfterMs);
    if (stalledMs !== null && !this.#isStalled)
      context.log.warn({ jobId, quietMs: Math.round(stalledMs) }, 'job stalled');
    this.#isStalled = stalledMs !== null;
    return stalledMs;
  }
}
