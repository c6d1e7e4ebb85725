import { describe, expect, it } from 'vitest';
import {
  COLUMNS,
  type ColumnName,
  countsOf,
  FAILED_FIRST,
  GROUPS,
  groupOf,
  matches,
  ordered,
} from '../../../../src/view/page/jobs/list.ts';
import { clicked } from '../../../../src/view/page/parts/sort.ts';
import { jobSummary as job } from '../../../support/view-models.ts';

const MINUTE = 60_000;
const NOW = 100 * MINUTE;
const ids = (jobs: readonly { readonly jobId: string }[]) => jobs.map(({ jobId }) => jobId);
const at = (ms: number) => ({ text: new Date(ms).toISOString(), ms });
const error = { code: 'unreachable', message: 'the service does not answer', hint: null, since: 0 };

/** One job of each group, in the order in which they need a person. */
const EACH = [
  job('1', { jobState: 'Failed', state: 'settled' }),
  job('2', { jobState: 'Running', firstError: error }),
  job('3', { jobState: 'Running', stalledAt: 5 }),
  job('4', { jobState: 'Running' }),
  job('5', { jobState: 'Queued' }),
  job('6'),
  job('7', { jobState: 'Canceled' }),
  job('8', { jobState: 'Finished', state: 'settled' }),
];

describe('the groups of jobs', () => {
  it('are those of the chips, each job in one of them', () => {
    expect(EACH.map(groupOf)).toEqual(GROUPS.map(([group]) => group));
    expect([...countsOf([...EACH, ...EACH].map(groupOf))].map(([, count]) => count)).toEqual(EACH.map(() => 2));
  });

  it('do not blame a job for a failure of the service', () => {
    expect(groupOf(job('1', { jobState: 'Running', firstError: { ...error, isOfService: true } }))).toBe('running');
  });
});

describe('the order of jobs', () => {
  it('begins with what failed', () => {
    expect(ids(ordered([...EACH].reverse(), FAILED_FIRST, NOW))).toEqual(ids(EACH));
  });

  it('is what changed last within a group, and stays while several of them grow', () => {
    const jobs = [
      job('9', { changedAt: 10 * MINUTE + 5 }),
      job('11', { changedAt: 10 * MINUTE }),
      job('10', { changedAt: 10 * MINUTE + 59_000 }),
      job('3', { changedAt: 12 * MINUTE }),
      job('18446744073709551615', { changedAt: 0 }),
    ];
    expect(ids(ordered(jobs, FAILED_FIRST, NOW))).toEqual(['3', '11', '10', '9', '18446744073709551615']);
  });

  it('is that of any column in both directions; a job without a value is last', () => {
    const jobs = [
      job('5', { startTime: at(NOW - 3 * MINUTE), liveBytes: 7, submitTime: at(2) }),
      job('40', { startTime: at(0), endTime: at(MINUTE), liveBytes: 30, submitTime: at(3) }),
      job('300', { liveBytes: 4, submitTime: { text: '1970-01-01T00:00:00.001', ms: null } }),
    ];
    const by = (name: ColumnName, isDown: boolean) => ids(ordered(jobs, { by: name, isDown }, NOW));
    expect(by('job', true)).toEqual(['300', '40', '5']);
    expect(by('job', false)).toEqual(['5', '40', '300']);
    expect(by('runTime', true)).toEqual(['5', '40', '300']);
    expect(by('runTime', false)).toEqual(['40', '5', '300']);
    expect(by('size', true)).toEqual(['40', '5', '300']);
    expect(by('submitted', false)).toEqual(['300', '5', '40']);
    for (const name of Object.keys(COLUMNS) as ColumnName[]) expect(by(name, true).sort()).toEqual(['300', '40', '5']);
  });

  it('turns round at a second click on the same head', () => {
    const first = clicked<ColumnName>(COLUMNS, FAILED_FIRST, 'size');
    expect(first).toEqual({ by: 'size', isDown: true });
    expect(clicked(COLUMNS, first, 'size')).toEqual({ by: 'size', isDown: false });
    expect(clicked(COLUMNS, first, 'state')).toEqual(FAILED_FIRST);
  });
});

describe('the filter of jobs', () => {
  it.each([
    ['', true],
    ['50', true],
    ['wing', true],
    ['WING running', true],
    ['wing error', true],
    ['unreachable', true],
    ['service answer', true],
    ['wing finished', false],
  ])('%j finds it: %s', (filter, isFound) => {
    expect(matches(job('501', { name: 'cfd-Wing', jobState: 'Running', firstError: error }), filter)).toBe(isFound);
  });
});
