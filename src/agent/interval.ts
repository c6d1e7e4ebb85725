/** How long to wait until a job is polled again: short while it grows, longer and longer while it is quiet. */

export interface IntervalLimits {
  readonly minIntervalMs: number;
  readonly maxIntervalMs: number;
}

const STRETCH = 1.5;
/** Jobs that were watched together shall not be polled together for ever. */
const JITTER = 0.1;

/** The interval after a poll; `before` is the one that led to it, undefined for a first poll. */
export function nextInterval(before: number | undefined, grew: boolean, limits: IntervalLimits): number {
  if (grew || before === undefined) return limits.minIntervalMs;
  return Math.min(limits.maxIntervalMs, Math.max(limits.minIntervalMs, before * STRETCH));
}

/** The delay after `failures` failed visits in a row; the service's own wish counts if it is longer. */
export function backOff(failures: number, retryAfterMs: number | undefined, limits: IntervalLimits): number {
  const doubled = limits.minIntervalMs * 2 ** Math.min(failures, 20);
  return Math.max(Math.min(limits.maxIntervalMs, doubled), retryAfterMs ?? 0);
}

/** The interval with jitter; `random` is in [0, 1). */
export function withJitter(intervalMs: number, random: number): number {
  return intervalMs * (1 - JITTER + 2 * JITTER * random);
}
