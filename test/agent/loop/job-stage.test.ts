/** The stages of a job in the agent: each stage with each event. */
import { describe, expect, it } from 'vitest';
import { JobStage, NEXT, type Stage } from '../../../src/agent/loop/job-stage.ts';
import type { JobId } from '../../../src/job.ts';
import type { JobRow } from '../../../src/store/rows.ts';

const ROW: JobRow = {
  ...{ jobId: '501' as JobId, source: 'command', state: 'watched', results: true, settleAfterMs: null },
  ...{ stallAfterMs: null, stalledAt: null },
  ...{ watchedAt: 0, grownAt: null, polledAt: null, refused: 0, failures: 0, error: null, revision: 1 },
};

const STATES = { unclear: 'A new word', unsubmitted: 'Configuring', active: 'Running', over: 'Finished' } as const;

/** A job that was brought to a stage by the events that lead there. */
function jobIn(stage: Stage): JobStage {
  const job = new JobStage({ now: () => 0, monotonic: () => 0, timer: () => () => {} });
  if (stage === 'stopped') job.send('stop');
  if (stage === 'unfollowed' || stage === 'stopped') return job;
  job.follow(ROW, undefined);
  job.report(stage === 'deleted' ? 'Deleted' : STATES[stage]);
  return job;
}

const STAGES = Object.keys(NEXT) as Stage[];
const EVENTS: Readonly<Record<string, (job: JobStage) => void>> = {
  ...{
    follow: (job) => job.follow(ROW, undefined),
    leave: (job) => job.send('leave'),
    stop: (job) => job.send('stop'),
  },
  ...{ null: (job) => job.report(null), Configuring: (job) => job.report('Configuring') },
  ...{ Running: (job) => job.report('Running'), Finished: (job) => job.report('Finished') },
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
      ['', 'follow', 'leave', 'stop', 'null', 'Configuring', 'Running', 'Finished', 'Deleted'],
      ['unfollowed', 'unclear', 'unfollowed', 'stopped', ...Array(5).fill('unfollowed')],
      ['unclear', 'unclear', 'unfollowed', 'stopped', 'unclear', 'unsubmitted', 'active', 'over', 'deleted'],
      ['unsubmitted', 'unsubmitted', 'unfollowed', 'stopped', 'unclear', 'unsubmitted', 'active', 'over', 'deleted'],
      ['active', 'active', 'unfollowed', 'stopped', 'unclear', 'unsubmitted', 'active', 'over', 'deleted'],
      ['over', 'over', 'unfollowed', 'stopped', 'unclear', 'unsubmitted', 'active', 'over', 'deleted'],
      ['deleted', 'deleted', 'unfollowed', 'stopped', ...Array(5).fill('deleted')],
      ['stopped', ...Array(8).fill('stopped')],
    ]);
  });

  it('goes on where it was when it is followed', () => {
    const information = { id: ROW.jobId, name: null, tasks: [] };
    const times = { creationTime: null, submitTime: null, startTime: null, endTime: null };
    for (const [stage, state] of Object.entries({ ...STATES, deleted: 'Deleted' })) {
      const job = jobIn('unfollowed');
      job.follow(ROW, { jobId: ROW.jobId, information: { ...information, ...times, state }, since: 0, toldAt: 0 });
      expect(job.current).toBe(stage);
    }
  });
});
