/** The polls of one followed job: when the next one is due, and what they show of the end of the job. */
import { asJobtailError } from '../../errors.ts';
import { CallSlot, queuedRemote } from '../calls.ts';
import { needsAnotherPoll } from '../live/catch-up.ts';
import { DELETED, reportedNow } from '../pass/deleted-jobs.ts';
import type { Polled } from '../poll/poll.ts';
import { restOf, withJitter } from '../schedule/pace.ts';
import { isFollowed, overdueInMs, quietInMs } from './job-life.ts';
import type { OneJob } from './one-job.ts';

/** Lanes of the first call of a poll, and of its next ones: a begun poll ends before others begin. */
const RUNNING = ['live', 'begun'] as const;
const OVER = ['wanted', 'ending'] as const;
const PATIENT = ['patient', 'patient'] as const;

/** Maximum delay of the commit of a poll without news. */
const QUIET_COMMIT_MS = 1_000;

interface Turn {
  /** Of its first call. */
  readonly slot: CallSlot;
  readonly lanes: typeof RUNNING | typeof OVER | typeof PATIENT;
  readonly signal: AbortSignal;
  /** Lets the next poll in front of the queue. */
  readonly leave: () => void;
}

export class PollRun {
  readonly #job: OneJob;
  /** Whether the last poll found a truncated or rewritten file, maybe of the archive of a deleted job: never progress. */
  #mayBeArchive = false;
  #hasFiles = false;
  /** Whether a poll of live files that reached the service has ended, in any way. */
  hasEnded = false;

  constructor(job: OneJob) {
    this.#job = job;
  }

  /** Polls once, in its turn: thousands of jobs may be due. */
  async run(signal: AbortSignal): Promise<void> {
    const { jobId, context, due } = this.#job;
    const lanes = this.#lanes;
    const slot = new CallSlot(context.calls, lanes[0], signal);
    const leave = await context.calls.entrances[lanes[0]].enter(signal);
    let isAway = false;
    try {
      await this.#poll({ slot, lanes, signal, leave });
    } catch (thrown) {
      isAway = asJobtailError(thrown).code === 'unreachable';
      throw thrown;
    } finally {
      slot.end();
      leave();
      if (!isAway && !this.hasEnded && context.store.liveFiles.hasAny(jobId)) {
        this.hasEnded = true;
        if (isFollowed(this.#job.life)) due.plan('results');
      }
    }
  }

  /** A slow or failing job must not delay the others, and jobs that are over must not delay running ones. */
  get #lanes(): Turn['lanes'] {
    const { pace, failures, life } = this.#job;
    const isOver = life.stage === 'over' || life.stage === 'stored';
    return pace.isSlow || failures.isFailing('poll') ? PATIENT : isOver ? OVER : RUNNING;
  }

  async #poll(turn: Turn): Promise<void> {
    const { jobId, context, failures, due, pace } = this.#job;
    const { clock, random, limits } = context;
    const { signal, slot } = turn;
    if (!isFollowed(this.#job.life) || signal.aborted) return;
    if (this.#mayBeArchive && (await reportedNow(jobId, { ...context, signal }))?.state === DELETED) {
      this.#job.happened('reported deleted');
      return;
    }
    const { polled, beganAt, ofService } = await this.#request(turn);
    await this.#note(polled);
    const outcomes = [...polled.outcomes.values()];
    const hasResponse = outcomes.length > 0;
    this.#mayBeArchive = [...polled.outcomes].some(([file, is]) => is === 'changing' && !file.endsWith('/progress'));
    if (!this.#hasFiles && outcomes.some((outcome) => outcome !== 'absent')) {
      this.#hasFiles = true;
      // The first results come with the first live files.
      due.plan('results');
    }
    if (hasResponse) failures.logged.worked(ofService);
    // After a timeout, the raw bytes are tried: `raw-unavailable` may be without any response.
    if (outcomes.some((outcome) => outcome !== 'raw-unavailable')) failures.logged.responded();

    if (!isFollowed(this.#job.life)) return;
    if (polled.appended === 0) this.#job.wasQuiet(beganAt, hasResponse);
    const hasNews = polled.appended > 0 || outcomes.some(needsAnotherPoll);
    const intervalMs = withJitter(pace.polled(hasNews, slot.longestMs), random());
    const end = this.#job.checkEnd();
    const now = clock.monotonic();
    const endsInMs = end === undefined ? quietInMs(this.#job.life, now) : overdueInMs(this.#job.life, now);
    const soonMs = end === 'end due' ? intervalMs : Math.max(limits.intervals.minIntervalMs, endsInMs);
    const nextMs = hasResponse ? Math.min(intervalMs, soonMs) : intervalMs;
    due.planAgain('poll', restOf(nextMs, now - beganAt));
  }

  async #request({ slot, lanes, signal, leave }: Turn) {
    const { context, polls, failures } = this.#job;
    const { clock, bare, waiting } = context;
    const [first, next] = lanes;
    const begin = () => ({ beganAt: clock.monotonic(), ofService: failures.logged.ofService });
    let begun: ReturnType<typeof begin> | undefined;
    const waitForTurn = async () => {
      await slot.take();
      leave();
      begun ??= begin();
    };
    const remote = queuedRemote(bare.remote, slot, next);
    const whole = waiting[first === 'live' ? 'raw' : first];
    const onAppended = (bytes: number) => this.#grew(bytes);
    const polled = await polls.poll({ remote, whole, waitForTurn, onAppended, isFinal: false, signal });
    return { polled, ...(begun ?? begin()) };
  }

  #grew(bytes: number): void {
    const { jobId, context, stall } = this.#job;
    context.log.debug({ jobId, bytes }, 'grown');
    this.#job.happened('growth');
    stall.grew();
    context.events.onAppended(bytes);
  }

  /** Logs and stores the result of a poll; waits for the commit only if there was news. */
  async #note({ appended, refused, errors, outcomes }: Polled): Promise<void> {
    const { jobId, context, failures, stall } = this.#job;
    for (const [file, error] of errors) failures.logged.failed(`job ${jobId} ${file}`, error);
    for (const file of outcomes.keys()) failures.logged.cleared(`job ${jobId} ${file}`);
    const grew = appended > 0;
    if (refused > 0) context.log.warn({ jobId, refused }, 'unrequested entries ignored');
    const failed = failures.isFailing('poll');
    const stalledMs = stall.stalledMs(jobId);
    if (grew || refused > 0 || failed) await failures.succeeded(['poll'], { grew, refused, stalledMs });
    else failures.inBackground(failures.succeeded(['poll'], { grew, withinMs: QUIET_COMMIT_MS, stalledMs }));
  }
}
