import { describe, expect, it } from 'vitest';
import type { JobSummary } from '../../../../src/view/contract/events.ts';
import { matches, ordered } from '../../../../src/view/page/jobs/list.ts';

const job = (jobId: string, more: Partial<JobSummary> = {}): JobSummary => ({
  jobId,
  name: null,
  jobState: null,
  phase: null,
  state: 'watched',
  source: 'command',
  tasks: 0,
  lookingForTasks: false,
  liveFiles: 0,
  liveBytes: 0,
  watchedAt: 0,
  polledAt: null,
  grownAt: null,
  stalledAt: null,
  changedAt: 0,
  growth: [],
  results: null,
  error: null,
  failingFiles: 0,
  inexactBytes: 0,
  refusedEntries: 0,
  ...more,
});

describe('the list of jobs', () => {
  it('begins with what changed last, and keeps its order while several of them grow', () => {
    const minute = 60_000;
    const jobs = [
      job('9', { changedAt: 10 * minute + 5 }),
      job('11', { changedAt: 10 * minute }),
      job('10', { changedAt: 10 * minute + 59_000 }),
      job('3', { changedAt: 12 * minute }),
      job('18446744073709551615', { changedAt: 0 }),
    ];
    expect(ordered(jobs).map(({ jobId }) => jobId)).toEqual(['3', '11', '10', '9', '18446744073709551615']);
  });

  it.each([
    ['', true],
    ['50', true],
    ['wing', true],
    ['WING running', true],
    ['wing error', true],
    ['unreachable', true],
    ['wing finished', false],
  ])('%j finds it: %s', (filter, isFound) => {
    const error = { code: 'unreachable', message: 'the service does not answer', hint: null, since: 0 };
    expect(matches(job('501', { name: 'cfd-Wing', jobState: 'Running', error }), filter)).toBe(isFound);
  });
});
