/** The stages of a job in the agent: each stage with each event. */
import { describe, expect, it } from 'vitest';
import { JobStage, type Stage } from '../../../src/agent/loop/job-stage.ts';
import type { JobId } from '../../../src/job.ts';
import type { JobRow } from '../../../src/store/rows.ts';

const ROW: JobRow = {
  ...{ jobId: '501' as JobId, source: 'command', state: 'watched', results: true, settleAfterMs: null },
  ...{ stallAfterMs: null, stalledAt: null },
  ...{ watchedAt: 0, grownAt: null, polledAt: null, refused: 0, failures: 0, error: null, revision: 1 },
};

const STATES = { unclear: 'A new word', active: 'Running', over: 'Finished' } as const;

/** A job that was brought to a stage by the events that lead there. */
function jobIn(stage: Stage): JobStage {
  const job = new JobStage({ now: () => 0, monotonic: () => 0, timer: () => () => {} });
  if (stage === 'stopped') job.stop();
  if (stage === 'unfollowed' || stage === 'stopped') return job;
  job.follow(ROW, undefined);
  job.report(stage === 'deleted' ? 'Deleted' : STATES[stage]);
  return job;
}

const STAGES: Stage[] = ['unfollowed', 'unclear', 'active', 'over', 'deleted', 'stopped'];
const EVENTS: Readonly<Record<string, (job: JobStage) => void>> = {
  ...{
    follow: (job) => job.follow(ROW, undefined),
    leave: (job) => job.leave(),
    stop: (job) => job.stop(),
  },
  ...{ null: (job) => job.report(null), Running: (job) => job.report('Running') },
  Finished: (job) => job.report('Finished'),
  Deleted: (job) => job.report('Deleted'),
};

describe('a job', () => {
  it.each(STAGES)('can be %s', (stage) => {
    const job = jobIn(stage);
    expect(job.current).toBe(stage);
    expect(job.isFollowed).toBe(!['unfollowed', 'stopped'].includes(stage));
    expect(job.isSettled).toBe(stage === 'deleted');
  });

  it('goes from stage to stage', () => {
    const table = STAGES.map((stage) => {
      const reached = Object.values(EVENTS).map((event) => {
        const job = jobIn(stage);
        event(job);
        return job.current;
      });
      return [stage, ...reached];
    });
    expect([['', ...Object.keys(EVENTS)], ...table]).toEqual([
      ['', 'follow', 'leave', 'stop', 'null', 'Running', 'Finished', 'Deleted'],
      ['unfollowed', 'unclear', 'unfollowed', 'stopped', ...Array(4).fill('unfollowed')],
      ['unclear', 'unclear', 'unfollowed', 'stopped', 'unclear', 'active', 'over', 'deleted'],
      ['active', 'active', 'unfollowed', 'stopped', 'unclear', 'active', 'over', 'deleted'],
      ['over', 'over', 'unfollowed', 'stopped', 'unclear', 'active', 'over', 'deleted'],
      ['deleted', 'deleted', 'unfollowed', 'stopped', ...Array(4).fill('deleted')],
      ['stopped', ...Array(7).fill('stopped')],
    ]);
  });

  it('goes on where it was when it is followed', () => {
    const information = { id: ROW.jobId, name: null, tasks: [] };
    const times = { creationTime: null, submitTime: null, startTime: null, endTime: null };
    for (const [stage, state] of Object.entries({ ...STATES, deleted: 'Deleted' })) {
      const job = jobIn('unfollowed');
      job.follow(ROW, { jobId: ROW.jobId, information: { ...information, ...times, state }, since: 0, reportedAt: 0 });
      expect(job.current).toBe(stage);
    }
  });
});

describe('the end of a job that is over', () => {
  const MINUTE_MS = 60_000;

  /** By a clock that the test moves. */
  function over() {
    const time = { ms: 0 };
    const job = new JobStage({ now: () => time.ms, monotonic: () => time.ms, timer: () => () => {} });
    job.follow(ROW, undefined);
    job.report('Finished');
    const poll = (times: number) => {
      for (let each = 0; each < times; each++) job.polled(time.ms, true);
    };
    return { time, job, poll };
  }

  it('is delayed by failing files for 15 minutes after the last news', () => {
    const { time, job, poll } = over();
    const isSettling = () => {
      poll(2);
      return job.isSettling(() => true);
    };
    time.ms += 2 * MINUTE_MS;
    expect(isSettling()).toBe(false);
    time.ms += 10 * MINUTE_MS;
    job.grew();
    time.ms += 2 * MINUTE_MS;
    expect(isSettling()).toBe(false);
    time.ms += 14 * MINUTE_MS;
    expect(isSettling()).toBe(false);
    time.ms += MINUTE_MS;
    expect(isSettling()).toBe(true);
  });

  it('waits for two polls that began after the last news', () => {
    const { time, job, poll } = over();
    job.grew();
    const before = time.ms;
    time.ms += 1;
    job.grew();
    time.ms += 2 * MINUTE_MS;
    job.polled(before, true);
    job.polled(before, true);
    expect(job.isSettled).toBe(false);
    poll(1);
    expect(job.isSettled).toBe(false);
    poll(1);
    expect(job.isSettled).toBe(true);
  });

  it('waits for a minute after the last news', () => {
    const { time, job, poll } = over();
    time.ms += MINUTE_MS - 1;
    poll(2);
    expect(job.isSettled).toBe(false);
    time.ms += 1;
    expect(job.isSettled).toBe(true);
  });

  it('needs a report since the job is followed', () => {
    const { time } = over();
    const job = new JobStage({ now: () => time.ms, monotonic: () => time.ms, timer: () => () => {} });
    const information = { id: ROW.jobId, name: null, tasks: [], state: 'Finished' };
    const times = { creationTime: null, submitTime: null, startTime: null, endTime: null };
    job.follow(ROW, { jobId: ROW.jobId, information: { ...information, ...times }, since: 0, reportedAt: 0 });
    time.ms += 10 * MINUTE_MS;
    for (let each = 0; each < 2; each++) job.polled(time.ms, true);
    expect(job.isSettled).toBe(false);
    job.refused();
    expect(job.isSettled).toBe(true);
  });
});
