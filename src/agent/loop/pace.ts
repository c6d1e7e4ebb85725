/** How often a job is polled: short intervals while it grows, longer and longer ones while it is quiet. */
export interface IntervalLimits {
  readonly minIntervalMs: number;
  readonly maxIntervalMs: number;
}

const STRETCH = 1.5;
/** Jobs that were watched together shall not be polled together for ever. */
const JITTER = 0.1;
/** What is due within this share of its delay is done together: to wake up for each would cost more than the work. */
const GATHERED = 1 / 16;
/** More at a time would save little, and be a burst for the service. */
const MAX_STEP_MS = 256;
/** A poll that took longer makes the next one of its job patient. */
const SLOW_MS = 5_000;

export class Pace {
  readonly #limits: IntervalLimits;
  #intervalMs: number;
  #isSlow = false;

  constructor(limits: IntervalLimits) {
    this.#limits = limits;
    this.#intervalMs = limits.minIntervalMs;
  }

  /** Records a successful poll; after news, the next one is due soon. Returns the interval to it. */
  polled(hasNews: boolean, tookMs: number): number {
    const { minIntervalMs, maxIntervalMs } = this.#limits;
    this.#isSlow = tookMs > SLOW_MS;
    this.#intervalMs = hasNews
      ? minIntervalMs
      : Math.min(maxIntervalMs, Math.max(minIntervalMs, this.#intervalMs * STRETCH));
    return this.#intervalMs;
  }

  /** Something is to be expected: short intervals again. */
  quicken(): void {
    this.#intervalMs = this.#limits.minIntervalMs;
  }

  /** Its last poll took long. */
  get isSlow(): boolean {
    return this.#isSlow;
  }
}

/**
 * What is left of an interval when `spentMs` of it went into the poll that began it. A service that answers slowly is
 * left alone for half of it.
 */
export function restOf(intervalMs: number, spentMs: number): number {
  return Math.max(intervalMs - spentMs, intervalMs / 2);
}

/** The interval with jitter, never longer than it is; `random` is in [0, 1). */
export function withJitter(intervalMs: number, random: number): number {
  return intervalMs * (1 - JITTER * random);
}

/** `dueAt`, or a little before it, where others with about the same delay are due, too. */
export function gathered(dueAt: number, delayMs: number): number {
  const stepMs = Math.min(MAX_STEP_MS, 2 ** Math.floor(Math.log2(delayMs * GATHERED)));
  return stepMs < 1 ? dueAt : Math.floor(dueAt / stepMs) * stepMs;
}
