/** The life of a job: each row of its table, and the times that it waits. */
import { describe, expect, it } from 'vitest';
import {
  afterPoll,
  endOf,
  failureOf,
  happened,
  isFollowed,
  isGivenUp,
  type JobEvent,
  type Life,
  lastReported,
  NOT_FOLLOWED,
  quietBefore,
  quietInMs,
  reportEvent,
  retryInMs,
  rowOf,
  type Stage,
} from '../../../src/agent/loop/job-life.ts';
import { type ErrorCode, JobtailError } from '../../../src/errors.ts';
import { jobTimeOf } from '../../../src/job-information.ts';
import type { JobRow } from '../../../src/store/rows.ts';
import { jobOf } from '../../support/model-remote.ts';

const MINUTE_MS = 60_000;
const STAGES: readonly Stage[] = ['unclear', 'active', 'stored', 'over', 'deleted', 'ending', 'settled', 'ended'];
const FOLLOWED: readonly Stage[] = ['unclear', 'active', 'stored', 'over', 'deleted'];

const lifeIn = (stage: Stage): Life => ({ ...NOT_FOLLOWED, stage, quietSince: 1, quietPolls: 1, refusedPasses: 1 });

const LIVE: readonly Stage[] = ['unclear', 'active', 'stored', 'over'];
const ANEW = 'quietSince quietPolls refusedPasses';
const DELAYED = 'delayedSince';

/** Row by row: the event, its stages, the next stage, the runs that become due or end, and the times that change. */
const ROWS: readonly (readonly [JobEvent, readonly Stage[], Stage | 'the same', runs: string, times: string])[] = [
  ['watched', ['ending', 'settled', 'ended'], 'unclear', 'poll search results', ANEW],
  ['watched', LIVE, 'the same', 'poll search results', ''],
  ['watched', ['deleted'], 'deleted', 'ends pass', ''],
  ['last reported active', ['unclear'], 'active', '', 'reportedAt'],
  ['last reported over', ['unclear'], 'stored', '', ''],
  ['last reported deleted', ['unclear'], 'deleted', 'ends pass', ''],
  ['reported active', [...LIVE, 'settled'], 'active', '', 'reportedAt'],
  ['reported over', ['unclear', 'active'], 'over', 'poll results', ANEW],
  ['reported over', ['stored'], 'over', '', ''],
  ['reported over anew', [...LIVE, 'settled'], 'over', 'poll results', ANEW],
  ['reported unclear', ['active', 'stored', 'over'], 'unclear', '', ''],
  ['reported deleted', LIVE, 'deleted', 'ends pass', ''],
  ['report refused', ['stored'], 'over', '', ''],
  ['poll failed', LIVE, 'the same', '', 'quietSince quietPolls'],
  ['poll refused', ['unclear', 'active', 'stored'], 'the same', '', 'quietSince quietPolls'],
  ['poll refused', ['over'], 'the same', '', 'quietPolls'],
  ['quiet poll', LIVE, 'the same', '', 'quietPolls'],
  ['growth', LIVE, 'the same', '', ANEW],
  ['end delayed', ['unclear', 'active', 'over'], 'the same', '', DELAYED],
  ['end due', ['unclear', 'active', 'over', 'deleted'], 'the same', 'pass', ''],
  ['pass equal', ['unclear', 'active', 'over', 'deleted'], 'settled', '', ''],
  ['pass equal', ['ending'], 'ended', '', ''],
  ['pass unequal', LIVE, 'the same', '', ANEW],
  ['pass unequal', ['ending'], 'ended', '', ''],
  ['pass refused', [...FOLLOWED, 'ending'], 'the same', '', `${DELAYED} refusedPasses`],
  ['given up', ['unclear', 'active', 'over', 'deleted'], 'settled', '', ''],
  ['given up', ['ending'], 'ended', '', ''],
  ['unwatched', [...FOLLOWED, 'settled', 'ended'], 'ending', 'pass', ''],
  ['left', [...FOLLOWED, 'ending'], 'ended', 'ends', ''],
];

/** Events that change nothing. */
const OTHERS: readonly JobEvent[] = ['not reported', 'listing refused', 'pass failed'];

const effectOf = (stage: Stage, event: JobEvent) => {
  const { next = stage, due = [], endsRuns = false } = rowOf(stage, event);
  const { stage: before, ...times } = lifeIn(stage);
  const { stage: after, ...changed } = happened({ stage: before, ...times }, event, 5);
  expect(after).toBe(next);
  const others = Object.entries(changed).flatMap(([name, value]) =>
    times[name as 'quietPolls'] === value ? [] : [name],
  );
  return [next, [...(endsRuns ? ['ends'] : []), ...due].join(' '), others.join(' ')];
};

describe('the table', () => {
  it.each(ROWS)('%s: %j', (event, stages, next, runs, times) => {
    for (const stage of stages)
      expect(effectOf(stage, event), stage).toEqual([next === 'the same' ? stage : next, runs, times]);
  });

  it('changes nothing otherwise', () => {
    for (const event of new Set([...OTHERS, ...ROWS.map(([one]) => one)])) {
      const listed = ROWS.flatMap(([one, stages]) => (one === event ? stages : []));
      for (const stage of STAGES)
        if (!listed.includes(stage)) expect(effectOf(stage, event), `${event} when ${stage}`).toEqual([stage, '', '']);
    }
  });

  it('follows a job while it is watched', () => {
    expect(STAGES.filter((stage) => isFollowed(lifeIn(stage)))).toEqual(FOLLOWED);
  });
});

describe('a report', () => {
  const START = '2026-01-01T00:00:00';

  it.each([
    ['Running', 'reported active'],
    ['WaitingForServiceAccount', 'reported active'],
    ['Canceled', 'reported over'],
    ['Deleted', 'reported deleted'],
    ['A new word', 'reported unclear'],
    [null, 'reported unclear'],
  ])('of the state %s is the event %s', (state, event) => {
    expect(reportEvent(jobOf('501', state), null)).toBe(event);
  });

  it.each([
    [`${START}Z`, START, false],
    [`${START}.000Z`, START, false],
    [`${START}.250`, START, false],
    ['2026-01-01T01:00:00+01:00', START, false],
    ['2026-01-01T09:00:00+09:00', START, false],
    ['2026-01-02T12:00:00Z', START, true],
    ['2026-01-01T00:00:01', START, true],
    ['not a time', START, true],
    [`${START}+01:00`, '2025-12-31T23:00:00.000Z', false],
    [`${START}Z`, '2026-01-01T00:00:02Z', true],
    [`${START}Z`, null, false],
  ])('with the start %s after %s is of another run: %s', (text, before, isOther) => {
    const startedBefore = before === null ? null : jobTimeOf(before);
    const event = reportEvent(jobOf('501', 'Failed', { startTime: jobTimeOf(text) }), startedBefore);
    expect(event).toBe(isOther ? 'reported over anew' : 'reported over');
  });

  it('that was stored before a restart is the last one', () => {
    const row = { jobId: ROW.jobId, since: 7, reportedAt: 9, isFormer: false };
    const eventOf = (state: string | null) => lastReported({ ...row, information: jobOf('501', state) });
    const events = ['active', 'over', 'deleted'].map((phase) => `last reported ${phase}`);
    const states = ['Running', 'Failed', 'Deleted', 'A new word', null];
    expect(states.map(eventOf)).toEqual([...events, undefined, undefined]);
    expect(lastReported(undefined)).toBe(undefined);
  });
});

const ROW = { jobId: '501', watchedAt: 3, grownAt: null } as unknown as JobRow;

it('the quiet time of a job begins with the last news of it before this start', () => {
  const last = { jobId: ROW.jobId, information: jobOf('501', 'Finished'), since: 7, reportedAt: 9, isFormer: false };
  expect(quietBefore(lifeIn('unclear'), ROW, undefined)).toBe(3);
  expect(quietBefore(lifeIn('active'), { ...ROW, grownAt: 5 }, last)).toBe(5);
  expect(quietBefore(lifeIn('stored'), { ...ROW, grownAt: 5 }, last)).toBe(7);
});

/** A job whose polls find nothing, by a clock that the test moves. */
class Quiet {
  now = 0;
  life: Life;
  mayStillCome = false;

  constructor(stage: Stage, settleAfterMs: number | null = null) {
    this.life = { ...NOT_FOLLOWED, stage, settleAfterMs };
  }

  event(...events: readonly JobEvent[]): this {
    for (const event of events) this.life = happened(this.life, event, this.now);
    return this;
  }

  pass(ms: number, polls = 2): this {
    this.now += ms;
    for (let each = 0; each < polls; each++)
      this.life = afterPoll(this.life, { beganAt: this.now, hasResponse: true }, this.now);
    return this;
  }

  /** As the agent does after each poll. */
  get end() {
    const end = endOf(this.life, this.now, () => this.mayStillCome);
    if (end !== undefined) this.event(end);
    return end;
  }
}

describe('the end of a job that is over', () => {
  it('is due after a quiet minute with two polls that began in it', () => {
    const job = new Quiet('active')
      .event('reported over')
      .pass(0, 1)
      .pass(MINUTE_MS - 1, 0);
    expect([job.end, quietInMs(job.life, job.now)]).toEqual([undefined, 1]);
    expect(job.pass(1, 1).end).toBe('end due');
    const late = new Quiet('active').event('reported over');
    late.now += 2 * MINUTE_MS;
    late.event('growth').pass(2 * MINUTE_MS, 1);
    late.life = afterPoll(late.life, { beganAt: MINUTE_MS, hasResponse: true }, late.now);
    expect(late.end).toBe(undefined);
    expect(late.pass(0, 1).end).toBe('end due');
  });

  it('is due by polls that had no file to ask for, but for a job whose state is not known only by answers', () => {
    const polls = (stage: Stage) => {
      const job = new Quiet(stage, MINUTE_MS);
      for (const beganAt of [MINUTE_MS, MINUTE_MS]) job.life = afterPoll(job.life, { beganAt, hasResponse: false }, 0);
      job.now = MINUTE_MS;
      return job.end;
    };
    expect([polls('over'), polls('unclear')]).toEqual(['end due', undefined]);
  });

  it('is not due by a report from before this start, until that is repeated or refused', () => {
    const job = new Quiet('stored').pass(10 * MINUTE_MS);
    expect([job.end, quietInMs(job.life, job.now)]).toEqual([undefined, Number.POSITIVE_INFINITY]);
    expect(new Quiet('stored').pass(10 * MINUTE_MS).event('reported over').end).toBe('end due');
    expect(job.event('report refused').end).toBe('end due');
    expect(new Quiet('over').event('reported deleted').end, 'at once').toBe('end due');
  });

  it.each(['growth', 'pass unequal', 'poll failed'] as const)('waits anew after the event %s', (event) => {
    const job = new Quiet('over')
      .pass(MINUTE_MS)
      .event(event)
      .pass(MINUTE_MS - 1);
    expect(job.end).toBe(undefined);
    expect(job.pass(1).end).toBe('end due');
  });
});

describe('what fails and may still come', () => {
  const delayed = () => {
    const job = new Quiet('over').pass(MINUTE_MS);
    job.mayStillCome = true;
    expect(job.end).toBe('end delayed');
    return job;
  };

  it('delays the end for a quarter of an hour', () => {
    const job = delayed().pass(15 * MINUTE_MS - 1);
    expect(job.end).toBe('end delayed');
    expect(retryInMs(job.life, job.now, 9 * MINUTE_MS)).toBe(1);
    expect(job.pass(1).end).toBe('end due');
    expect(retryInMs(job.life, job.now, 9 * MINUTE_MS)).toBe(9 * MINUTE_MS);
    const come = delayed().pass(MINUTE_MS);
    come.mayStillCome = false;
    expect(come.end).toBe('end due');
  });

  it('is shown by a poll that times out only while others work', () => {
    const eventOf = (code: ErrorCode, others: boolean) => failureOf('poll', new JobtailError(code, 'it fails'), others);
    expect([eventOf('timeout', true), eventOf('timeout', false)]).toEqual(['poll refused', undefined]);
    expect([eventOf('unreachable', true), eventOf('fault', false)]).toEqual(['poll failed', 'poll refused']);
  });

  it('is also a poll that the service refuses: it counts for the end, and delays it', () => {
    const job = new Quiet('over', null).pass(MINUTE_MS, 0).event('poll refused').event('poll refused');
    job.mayStillCome = true;
    expect([job.end, job.pass(15 * MINUTE_MS, 0).end]).toEqual(['end delayed', 'end due']);
    expect(new Quiet('active').pass(MINUTE_MS).event('poll refused').life.quietPolls).toBe(0);
  });

  it('delays it once: a failed poll starts that time not anew, as in an outage', () => {
    const job = delayed()
      .pass(10 * MINUTE_MS)
      .event('poll failed')
      .pass(4 * MINUTE_MS);
    expect(job.end).toBe('end delayed');
    expect(job.pass(MINUTE_MS).end).toBe('end due');
  });

  it('delays it anew after new bytes', () => {
    const job = delayed()
      .pass(10 * MINUTE_MS)
      .event('growth')
      .pass(14 * MINUTE_MS);
    expect(job.end).toBe('end delayed');
    expect(job.pass(14 * MINUTE_MS).end).toBe('end delayed');
    expect(job.pass(MINUTE_MS).end).toBe('end due');
  });
});

describe('a job whose state is not known, or not reported for ten minutes', () => {
  it.each(['unclear', 'active'] as const)('ends after its quiet time: %s', (stage) => {
    const job = new Quiet(stage, 60 * MINUTE_MS).pass(60 * MINUTE_MS - 1);
    expect([job.end, quietInMs(job.life, job.now)]).toEqual([undefined, 1]);
    expect(job.pass(1).end).toBe('end due');
  });

  it('does not end while it is reported as active, nor without such a time', () => {
    expect(
      new Quiet('active', MINUTE_MS)
        .pass(9 * MINUTE_MS)
        .event('reported active')
        .pass(9 * MINUTE_MS).end,
    ).toBe(undefined);
    expect(new Quiet('active', MINUTE_MS).pass(10 * MINUTE_MS).end).toBe('end due');
    expect(new Quiet('unclear', null).pass(1_000 * MINUTE_MS).end).toBe(undefined);
  });

  it('waits anew when a poll fails', () => {
    const job = new Quiet('unclear', 60 * MINUTE_MS)
      .pass(59 * MINUTE_MS)
      .event('poll failed')
      .pass(59 * MINUTE_MS);
    expect(job.end).toBe(undefined);
    expect(job.pass(MINUTE_MS).end).toBe('end due');
  });
});

/** Responses of the service, not an outage, nor a failure of this machine. */
const REFUSALS: readonly ErrorCode[] = [
  'http-status',
  'fault',
  'not-found',
  'malformed',
  'request-too-long',
  'redirected',
];

describe('a last pass', () => {
  it.each<ErrorCode>([
    ...REFUSALS,
    ...(['unreachable', 'timeout', 'interrupted', 'unavailable', 'rate-limited', 'tls', 'session-lost'] as const),
    ...(['sign-in-refused', 'disk-full', 'permission', 'local-io', 'store', 'fleet', 'internal'] as const),
  ])('that fails is refused by a response only, or by a timeout or no session while others work: %s', (code) => {
    const failure = new JobtailError(code, 'it fails');
    const event = REFUSALS.includes(code) ? 'pass refused' : 'pass failed';
    expect(failureOf('pass', failure, false)).toBe(event);
    const isOfOneJob = code === 'timeout' || code === 'session-lost';
    expect(failureOf('pass', failure, true)).toBe(isOfOneJob ? 'pass refused' : event);
  });

  it.each(['over', 'ending'] as const)('is given up when three were refused in a quarter of an hour: %s', (stage) => {
    const job = new Quiet(stage).event('pass refused');
    const isGivenUpAfter = (ms: number, event: JobEvent) => {
      job.now += ms;
      return isGivenUp(job.event(event).life, job.now);
    };
    expect(isGivenUpAfter(14 * MINUTE_MS, 'pass refused')).toBe(false);
    // Two answers, and an outage of any length.
    expect(isGivenUpAfter(100 * MINUTE_MS, 'pass failed')).toBe(false);
    expect(isGivenUpAfter(0, 'pass refused')).toBe(true);
  });

  it('is not given up before that time, however often it is refused', () => {
    const job = new Quiet('over').event('pass refused', 'pass refused', 'pass refused', 'pass refused');
    job.now += 15 * MINUTE_MS - 1;
    expect(isGivenUp(job.life, job.now)).toBe(false);
  });
});
