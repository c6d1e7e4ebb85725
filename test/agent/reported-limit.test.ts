/** A limit of the server is spread over its period: three jobs that grow, polled each two seconds, at 60 calls a minute. */
import { expect, it } from 'vitest';
import { ServerShare } from '../../src/agent/server-share.ts';

const MINUTE_MS = 60_000;
const PER_MINUTE = 60;
const ANSWER_MS = 10;

/** Polls for so long; returns, for each 200 ms after `fromMs`, how old the last poll of each job is. */
function agesOf(fromMs: number, forMs: number): number[] {
  let now = 0;
  const share = new ServerShare({ requestsPerMinute: null, monotonic: () => now });
  const window = { endsAt: 0, calls: 0 };
  const jobs = [0, 1, 2].map((index) => ({ dueAt: index, polledAt: 0 }));
  const ages: number[] = [];
  let sampledAt = fromMs;
  while (now < forMs) {
    const job = jobs.reduce((first, other) => (other.dueAt < first.dueAt ? other : first));
    now = Math.max(now, job.dueAt, share.opensAt);
    for (; sampledAt < now; sampledAt += 200) for (const { polledAt } of jobs) ages.push(sampledAt - polledAt);
    share.begun();
    const begunAt = now;
    now += ANSWER_MS;
    if (now >= window.endsAt) Object.assign(window, { endsAt: now + MINUTE_MS, calls: 0 });
    window.calls += 1;
    const resetMs = window.endsAt - now;
    const times = { firstByteMs: ANSWER_MS, workMs: ANSWER_MS };
    if (window.calls > PER_MINUTE) {
      share.responded({ status: 429, ...times, retryAfterMs: Math.ceil(resetMs / 1000) * 1000 });
    } else {
      const quota = { remaining: PER_MINUTE - window.calls, resetMs };
      share.responded({ status: 200, ...times, retryAfterMs: undefined, quota });
      job.polledAt = begunAt;
    }
    share.ended();
    job.dueAt = now + 2_000;
  }
  return ages.toSorted((a, b) => a - b);
}

const ninetyFifth = (ages: readonly number[]) => ages[Math.floor(ages.length * 0.95)] ?? Number.NaN;

it('where responses report the rest of the limit, 95 % of the ages of polls are below 6 s from the start', () => {
  const ages = agesOf(10_000, 20 * MINUTE_MS);
  expect(ninetyFifth(ages)).toBeLessThan(6_000);
  expect(ages.at(-1)).toBeLessThan(8_000);
});
