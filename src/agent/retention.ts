/** Removes old jobs by the rule of the configuration: one after the other, so that a stop waits for one at most. */
import { eachAlone } from '../each-alone.ts';
import { asJobtailError, JobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import { unprovenIn } from '../proven.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../system/clock.ts';
import type { RemovedFiles } from '../system/remove-tree.ts';
import { Elsewhere, lastWorkOn } from './forget.ts';
import type { Log } from './ports/host.ts';
import { MAX_OFF_MS, SENDS_NO_TIME, type ServiceClock } from './service-clock.ts';

export interface RetentionRule {
  /** Null: no job is old. */
  readonly settledMs: number | null;
  readonly deleteFiles: boolean;
}

export type RemoveJob = (jobId: JobId, deleteFiles: boolean) => Promise<RemovedFiles>;

interface RetentionOptions {
  readonly rule: RetentionRule;
  readonly clock: Clock;
  readonly log: Log;
  readonly serviceAheadMs: () => ServiceClock['aheadMs'];
  /** Runs `work` on the rows of all jobs. `remove` rejects unless the job is over. */
  readonly withJobs: (work: (store: Store, remove: RemoveJob) => Promise<void>) => Promise<void>;
}

const INTERVAL_MS = 60 * 60_000;
/** Until the clock of the service is known. */
const WAIT_MS = 10_000;

export class Retention {
  readonly #options: RetentionOptions;
  readonly #stop = new AbortController();
  /** Jobs that stay, and why that was logged. */
  readonly #logged = new Map<JobId, string>();
  #isOffLogged = false;
  #cancelTimer = () => {};
  #running = Promise.resolve();

  constructor(options: RetentionOptions) {
    this.#options = options;
  }

  /** Removes old jobs, now and every hour. */
  start(): void {
    if (this.#options.rule.settledMs === null || this.#stop.signal.aborted) return;
    this.#running = this.#round().finally(() => {
      const delayMs = this.#options.serviceAheadMs() === undefined ? WAIT_MS : INTERVAL_MS;
      this.#cancelTimer = this.#stop.signal.aborted ? () => {} : this.#options.clock.timer(delayMs, () => this.start());
    });
  }

  /** Resolves when the job that is being removed is gone. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#cancelTimer();
    await this.#running;
  }

  async #round(): Promise<void> {
    const { withJobs, log } = this.#options;
    if (!this.#isClockTrusted()) return;
    try {
      await withJobs(async (store, remove) => {
        const old = this.#oldIn(store);
        const failed = await eachAlone(old, (jobId) => this.#remove(jobId, remove), this.#stop.signal);
        for (const { thing: jobId, error } of failed) this.#stays(jobId, error.message);
      });
    } catch (thrown) {
      if (!this.#stop.signal.aborted) log.warn({ err: asJobtailError(thrown).message }, 'old jobs not read');
    }
  }

  #oldIn(store: Store): JobId[] {
    const { rule, clock } = this.#options;
    return store.jobs.all().flatMap((job) => {
      const { jobId, state } = job;
      if (state !== 'settled' || clock.now() - lastWorkOn(job) < (rule.settledMs ?? 0)) return [];
      const [reason] = unprovenIn(store, jobId);
      if (reason === undefined) return [jobId];
      this.#stays(jobId, reason);
      return [];
    });
  }

  async #remove(jobId: JobId, remove: RemoveJob): Promise<void> {
    const { rule, log } = this.#options;
    const { deleteFiles } = rule;
    // A clock may be set at any time.
    if (!this.#isClockTrusted()) return;
    try {
      log.info({ jobId, deleteFiles, ...(await remove(jobId, deleteFiles)) }, 'job removed');
    } catch (thrown) {
      // Another agent removed it, or is to do it.
      const isOthers = thrown instanceof Elsewhere || (thrown instanceof JobtailError && thrown.code === 'job-unknown');
      if (!isOthers) throw thrown;
    }
  }

  #stays(jobId: JobId, reason: string): void {
    if (this.#logged.get(jobId) !== reason) this.#options.log.warn({ jobId, reason }, 'old job not removed');
    this.#logged.set(jobId, reason);
  }

  /** The clock of this machine decides what is old, so another one must agree with it. */
  #isClockTrusted(): boolean {
    const aheadMs = this.#options.serviceAheadMs();
    if (aheadMs === undefined) return false;
    const isOff = aheadMs === null || Math.abs(aheadMs) > MAX_OFF_MS;
    if (isOff && !this.#isOffLogged) {
      const { log } = this.#options;
      if (aheadMs === null) log.warn({ hint: SENDS_NO_TIME }, 'old jobs kept, no time of the service');
      else log.warn({ aheadMs: Math.round(aheadMs) }, 'old jobs kept, clocks differ');
    }
    this.#isOffLogged = isOff;
    return !isOff;
  }
}
