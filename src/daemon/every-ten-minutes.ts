/** Of an event of a key, the number to log now: 1 for the first one, then a sum each ten minutes; 0 in between. */
export function everyTenMinutes(monotonic: () => number): (key: string) => number {
  /** By key: when the last line was logged, and the number of events since. */
  const keys = new Map<string, { readonly loggedAt: number; readonly count: number }>();
  return (key) => {
    const now = monotonic();
    const { loggedAt, count } = keys.get(key) ?? { loggedAt: Number.NEGATIVE_INFINITY, count: 0 };
    const isDue = now - loggedAt >= PERIOD_MS;
    if (isDue) for (const [old, last] of keys) if (last.loggedAt < now - 2 * PERIOD_MS) keys.delete(old);
    keys.set(key, isDue ? { loggedAt: now, count: 0 } : { loggedAt, count: count + 1 });
    return isDue ? count + 1 : 0;
  };
}

const PERIOD_MS = 10 * 60_000;
