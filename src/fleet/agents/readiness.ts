/** Whether this agent can follow jobs. If not: none; after a growing pause one, until that job succeeds. */
import fs from 'node:fs';
import type { Log } from '../../agent/ports/host.ts';
import { nominalPause } from '../../back-off.ts';
import { ERROR_POLICIES, type JobtailError } from '../../errors.ts';
import { showAge } from '../../numbers.ts';
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

export class Readiness {
  readonly #options: ReadinessOptions;
  #stateError: string | undefined;
  #unreadySince: number | undefined;
  #failures = 0;
  #trialAt = 0;
  #soundSince = 0;
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

  /** Maximum jobs that this agent may own now, while it owns `jobs`. */
  capacity(mostJobs: number, jobs: number): number {
    const now = this.#options.monotonic();
    const obstacle = this.#noState() ?? this.#noService(now);
    if (this.lacks === null) {
      if (obstacle !== undefined) this.#pause(obstacle, now);
      else if (now - this.#soundSince > SOUND_MS) this.#failures = 0;
    } else if (now >= this.#trialAt) {
      // Without a job, the last result of the service is old.
      const isOver = now >= this.#trialAt + TRIAL_MS;
      if (obstacle === undefined && jobs > 0) this.#resume(now);
      else if (isOver && obstacle !== undefined) this.#pause(obstacle, now);
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
    this.#trialAt = now + nominalPause(this.#failures, PAUSES);
  }

  #resume(now: number): void {
    this.lacks = null;
    this.#soundSince = now;
    this.#options.log.info({ scope: 'the fleet' }, 'agent takes jobs again');
  }

  #noState(): string | undefined {
    const { directory } = this.#options.store;
    const { bavail, bsize } = fs.statfsSync(directory);
    if (bavail * bsize < MIN_FREE_BYTES) return `no space left on device: ${directory}`;
    return this.#stateError;
  }

  #noService(now: number): string | undefined {
    const unready = this.#options.unready() ?? this.#failingJobs();
    if (unready === undefined) this.#unreadySince = undefined;
    else this.#unreadySince ??= now;
    return now - (this.#unreadySince ?? now) >= PERSISTS_MS ? unready : undefined;
  }

  /** Whether the service fails all jobs: one working address does not help them. */
  #failingJobs(): string | undefined {
    const followed = this.#options.store.jobs.all().filter(({ state }) => state === 'watched' || state === 'ending');
    const errors = followed.flatMap(({ error }) =>
      error !== null && ERROR_POLICIES[error.code].isOfService ? error : [],
    );
    const [first] = errors;
    if (first === undefined || errors.length < followed.length) return undefined;
    return `${first.message} (for ${showAge(this.#options.now() - first.since)})`;
  }
}
