/** How long to wait until a job is polled again: short while it grows, longer and longer while it is quiet. */

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
const LONGEST_STEP_MS = 256;

/** The interval after a poll; `before` is the one that led to it. */
export function nextInterval(before: number, grew: boolean, limits: IntervalLimits): number {
  if (grew) return limits.minIntervalMs;
  return Math.min(limits.maxIntervalMs, Math.max(limits.minIntervalMs, before * STRETCH));
}

/**
 * What is left of an interval when `spentMs` of it went into the poll that began it. A service that answers slowly is
 * left alone for half of it.
 */
export function restOf(intervalMs: number, spentMs: number): number {
  return Math.max(intervalMs - spentMs, intervalMs / 2);
}

/** The delay after `failures` failed visits in a row; the service's own wish counts if it is longer. */
export function backOff(failures: number, retryAfterMs: number | undefined, limits: IntervalLimits): number {
  const doubled = limits.minIntervalMs * 2 ** Math.min(failures, 20);
  return Math.max(Math.min(limits.maxIntervalMs, doubled), retryAfterMs ?? 0);
}

/** The interval with jitter, never longer than it is; `random` is in [0, 1). */
export function withJitter(intervalMs: number, random: number): number {
  return intervalMs * (1 - JITTER * random);
}

/** `dueAt`, or a little before it, where others with about the same delay are due, too. */
export function gathered(dueAt: number, delayMs: number): number {
  const stepMs = Math.min(LONGEST_STEP_MS, 2 ** Math.floor(Math.log2(delayMs * GATHERED)));
  return stepMs < 1 ? dueAt : Math.floor(dueAt / stepMs) * stepMs;
}
