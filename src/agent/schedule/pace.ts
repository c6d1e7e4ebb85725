/** How often a job is polled: short intervals while it grows, longer and longer ones while it is quiet. */
export interface IntervalLimits {
  readonly minIntervalMs: number;
  readonly maxIntervalMs: number;
}

const STRETCH = 1.5;
/** Jobs that were watched together must not be polled together for ever. */
const JITTER = 0.1;
/** Runs due within this share of their delay start together: each wakeup costs more than its work. */
const GATHERED = 1 / 16;
/** Larger groups save little, and are a burst for the service. */
const MAX_STEP_MS = 256;
/** After a poll with a longer call, the next poll of the job goes to the low-priority queue. */
const SLOW_MS = 5_000;

export class Pace {
  readonly #limits: IntervalLimits;
  #intervalMs: number;
  #isSlow = false;

  constructor(limits: IntervalLimits) {
    this.#limits = limits;
    this.#intervalMs = limits.minIntervalMs;
  }

  /** Records a successful poll whose longest call took `longestMs`; returns the interval to the next one, short after news. */
  polled(hasNews: boolean, longestMs: number): number {
    const { minIntervalMs, maxIntervalMs } = this.#limits;
    this.#isSlow = longestMs > SLOW_MS;
    this.#intervalMs = hasNews ? minIntervalMs : Math.min(maxIntervalMs, this.#intervalMs * STRETCH);
    return this.#intervalMs;
  }

  /** Returns to short intervals: bytes are expected. */
  quicken(): void {
    this.#intervalMs = this.#limits.minIntervalMs;
  }

  get isSlow(): boolean {
    return this.#isSlow;
  }
}

/** The rest of an interval after a poll of `spentMs`. A slow service gets a pause of at least half the interval. */
export function restOf(intervalMs: number, spentMs: number): number {
  return Math.max(intervalMs - spentMs, intervalMs / 2);
}

export function withJitter(intervalMs: number, random: number): number {
  return intervalMs * (1 - JITTER * random);
}

/** `dueAt`, or a little earlier, together with other runs of about the same delay. */
export function gathered(dueAt: number, delayMs: number): number {
  const stepMs = Math.min(MAX_STEP_MS, 2 ** Math.floor(Math.log2(delayMs * GATHERED)));
  return stepMs < 1 ? dueAt : Math.floor(dueAt / stepMs) * stepMs;
}
