/** A wall clock that is set back or forth: what is due and what is quiet goes by one that does not jump. */
import { describe, expect, it } from 'vitest';
import { JobStage } from '../../../src/agent/loop/job-stage.ts';
import type { JobId } from '../../../src/job.ts';
import type { JobRow } from '../../../src/store/rows.ts';
import type { Clock } from '../../../src/system/clock.ts';
import { ResultsPlace } from '../results/place.ts';

const MINUTE_MS = 60_000;
const YEAR_MS = 365 * 24 * 60 * MINUTE_MS;
const WALL = Date.UTC(2026, 0, 1);

/** A job that wants to settle after an hour, and the time that passes for it. */
function followed(times: Pick<JobRow, 'grownAt' | 'watchedAt'>) {
  let [wall, passed] = [WALL, 0];
  const clock: Clock = { now: () => wall + passed, monotonic: () => passed, timer: () => () => {} };
  const row: JobRow = {
    jobId: '501' as JobId,
    source: 'config',
    state: 'watched',
    results: false,
    settleAfterMs: 60 * MINUTE_MS,
    stallAfterMs: null,
    stalledAt: null,
    polledAt: null,
    refused: 0,
    failures: 0,
    error: null,
    revision: 1,
    ...times,
  };
  const job = new JobStage(clock);
  job.follow(row, undefined);
  return {
    job,
    pass: (ms: number) => {
      passed += ms;
      for (let polls = 0; polls < 2; polls += 1) job.polled(passed, true);
    },
    jump: (ms: number) => {
      wall += ms;
    },
  };
}

describe('a job that settles after an hour without news', () => {
  it('does not do so before the service was asked for it', () => {
    const { job } = followed({ watchedAt: WALL - YEAR_MS, grownAt: null });
    for (let polls = 0; polls < 5; polls += 1) job.polled(0, false);
    expect(job.isSettled).toBe(false);
    for (let polls = 0; polls < 2; polls += 1) job.polled(0, true);
    expect(job.isSettled).toBe(true);
  });

  it.each([
    ['forth', YEAR_MS],
    ['back', -YEAR_MS],
  ])('does so after that hour, though the clock is set %s', (_, ms) => {
    const { job, pass, jump } = followed({ watchedAt: WALL, grownAt: WALL });
    pass(30 * MINUTE_MS);
    jump(ms);
    expect(job.isSettled).toBe(false);
    pass(29 * MINUTE_MS);
    expect(job.isSettled).toBe(false);
    pass(MINUTE_MS);
    expect(job.isSettled).toBe(true);
  });

  it('was quiet before a restart, too; but not for less than nothing, and not before it was watched', () => {
    const quiet = followed({ watchedAt: WALL - YEAR_MS, grownAt: WALL - 50 * MINUTE_MS });
    expect(quiet.job.isSettled).toBe(false);
    quiet.pass(10 * MINUTE_MS);
    expect(quiet.job.isSettled).toBe(true);
    const later = followed({ watchedAt: WALL - YEAR_MS, grownAt: WALL + YEAR_MS });
    later.pass(60 * MINUTE_MS);
    expect(later.job.isSettled).toBe(true);
    const again = followed({ watchedAt: WALL, grownAt: WALL - YEAR_MS });
    expect(again.job.isSettled).toBe(false);
  });

  it('begins anew when it grows, or when a visit fails', () => {
    const { job, pass } = followed({ watchedAt: WALL, grownAt: null });
    pass(59 * MINUTE_MS);
    job.endQuiet();
    pass(59 * MINUTE_MS);
    expect(job.isSettled).toBe(false);
    pass(MINUTE_MS);
    expect(job.isSettled).toBe(true);
  });
});

it('a result is looked at again, though the clock was set back since', async () => {
  const place = new ResultsPlace();
  place.remote.set('/11/a', 'before');
  await place.sync();
  place.remote.set('/11/a', 'after');
  place.now -= YEAR_MS;
  await place.sync();
  expect(place.read('11', 'a')).toBe('after');
  // Then at its intervals again.
  place.remote.downloads.length = 0;
  await place.sync();
  expect(place.remote.downloads).toEqual([]);
});
