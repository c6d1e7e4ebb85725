/** Whether this agent can follow jobs. If not: none; after a growing pause one, until a poll of it succeeds. */
import fs from 'node:fs';
import type { Log } from '../../agent/ports/host.ts';
import { nominalPause } from '../../back-off.ts';
import { asJobtailError, ERROR_POLICIES, type JobtailError } from '../../errors.ts';
import { showAge } from '../../numbers.ts';
import type { JobRow } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';

interface ReadinessOptions {
  readonly store: Store;
  readonly log: Log;
  readonly monotonic: () => number;
  readonly now: () => number;
  readonly unready: () => string | undefined;
}

/** Shorter failures move no jobs. */
export const PERSISTS_MS = 10_000;
/** Pauses before trials. */
export const PAUSES = { firstMs: 30_000, maxMs: 15 * 60_000 };
const TRIAL_MS = 30_000;
/** After so long without a failure, the pauses start again at the minimum. */
const SOUND_MS = 10 * 60_000;
/** The state needs this much space to be written. */
const MIN_FREE_BYTES = 2 ** 20;
const STATE_CODES: readonly string[] = ['disk-full', 'store', 'permission', 'local-io'];

const isOfService = ({ error }: JobRow) => error !== null && ERROR_POLICIES[error.code].isOfService;

export class Readiness {
  readonly #options: ReadinessOptions;
  #stateError: string | undefined;
  #unreadySince: number | undefined;
  #failures = 0;
  #trialAt = 0;
  #soundSince = 0;
  /** Polls before it, by the wall clock, prove nothing: those of another agent, or from before the failure. */
  #pollsFrom = 0;
  /** Why this agent is not ready; null if it is ready. */
  lacks: string | null = null;

  constructor(options: ReadinessOptions) {
    this.#options = options;
  }

  /** Records that rows could not be stored; returns whether that is already logged as the missing thing. */
  failed({ code, message }: JobtailError): boolean {
    if (!STATE_CODES.includes(code)) return false;
    this.#stateError = message;
    return true;
  }

  stored(): void {
    this.#stateError = undefined;
  }

  /** Jobs were acquired, whose former owners poll no more. */
  acquired(): void {
    this.#pollsFrom = this.#options.now();
  }

  /** Maximum jobs that this agent may own now. */
  capacity(mostJobs: number): number {
    const now = this.#options.monotonic();
    const obstacle = this.#noState() ?? this.#noService(now);
    if (this.lacks === null) {
      if (obstacle !== undefined) this.#pause(obstacle, now);
      else if (now - this.#soundSince > SOUND_MS) this.#failures = 0;
    } else if (now >= this.#trialAt) {
      // Without a job, the last result of the service is old.
      const isOver = now >= this.#trialAt + TRIAL_MS;
      if (isOver && obstacle !== undefined) this.#pause(obstacle, now);
      else if (obstacle === undefined && this.#hasPolled()) {
        this.lacks = null;
        this.#soundSince = now;
        this.#options.log.info({ scope: 'the fleet' }, 'agent takes jobs again');
      }
    }
    if (this.lacks === null) return mostJobs;
    return now >= this.#trialAt ? 1 : 0;
  }

  #pause(obstacle: string, now: number): void {
    const { log } = this.#options;
    const hint = 'correct the reason; the agent then acquires jobs again by itself';
    if (this.lacks === null) log.warn({ scope: 'the fleet', reason: obstacle, hint }, 'agent not ready');
    this.lacks = obstacle;
    this.#failures += 1;
    this.#pollsFrom = this.#options.now();
    this.#trialAt = now + nominalPause(this.#failures, PAUSES);
  }

  #noState(): string | undefined {
    const { directory } = this.#options.store;
    const { bavail, bsize } = fs.statfsSync(directory);
    if (bavail * bsize < MIN_FREE_BYTES) return `no space left on device: ${directory}`;
    try {
      fs.accessSync(directory, fs.constants.W_OK);
    } catch (thrown) {
      return asJobtailError(thrown).message;
    }
    return this.#stateError;
  }

  #noService(now: number): string | undefined {
    const unready = this.#options.unready() ?? this.#failingJobs();
    if (unready === undefined) this.#unreadySince = undefined;
    else this.#unreadySince ??= now;
    return now - (this.#unreadySince ?? now) >= PERSISTS_MS ? unready : undefined;
  }

  get #jobs(): JobRow[] {
    return this.#options.store.jobs.all().filter(({ state }) => state === 'watched' || state === 'ending');
  }

  /** Whether the service fails all jobs: one working address does not help them. */
  #failingJobs(): string | undefined {
    const jobs = this.#jobs;
    const error = jobs.every(isOfService) ? jobs[0]?.error : null;
    return error == null ? undefined : `${error.message} (for ${showAge(this.#options.now() - error.since)})`;
  }

  #hasPolled(): boolean {
    return this.#jobs.some((job) => Number(job.polledAt) > this.#pollsFrom && !isOfService(job));
  }
}
