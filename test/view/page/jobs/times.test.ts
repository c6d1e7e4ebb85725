import { describe, expect, it } from 'vitest';
import type { JobSummary, ReportedTime } from '../../../../src/view/contract/events.ts';
import { orderMs, runText, runTime } from '../../../../src/view/page/jobs/list.ts';

const zoned = (ms: number): ReportedTime => ({ text: new Date(ms).toISOString(), ms });
const local = (ms: number): ReportedTime => ({ text: new Date(ms).toISOString().slice(0, -1), ms: null });
const run = (startTime: ReportedTime | null, endTime: ReportedTime | null, jobState: string | null = null) =>
  runTime({ startTime, endTime, jobState, jobStateSince: null } as JobSummary, 10_000);
const running = (startTime: ReportedTime | null) =>
  runText({ startTime, endTime: null, jobState: 'Running', jobStateSince: 4_000 } as JobSummary, 10_000);

describe('the times of a job', () => {
  it('give its run time, until now while it runs', () => {
    expect(run(zoned(1_000), zoned(4_000))).toBe(3_000);
    expect(run(zoned(1_000), null, 'Running')).toBe(9_000);
    expect(run(local(1_000), local(4_000))).toBe(3_000);
  });

  it('give what the agent saw of it, where they have no zone', () => {
    expect(running(local(1_000))).toBe('over 6 s');
    expect(running(null)).toBe('over 6 s');
    expect(running(zoned(1_000))).toBe('9 s');
  });

  it('give none that would be a guess', () => {
    expect(run(null, zoned(4_000))).toBeNull();
    expect(run(local(1_000), null, 'Running')).toBeNull();
    expect(run(local(1_000), zoned(4_000))).toBeNull();
    expect(run(zoned(1_000), null, 'Finished')).toBeNull();
    expect(run({ text: 'soon', ms: null }, null)).toBeNull();
  });

  it('are in order, whether they have a zone or not', () => {
    expect([zoned(3), local(2), null, { text: 'soon', ms: null }].map(orderMs)).toEqual([3, 2, null, null]);
  });
});
