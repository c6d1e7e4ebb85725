/** The life of a job: each row of its table, and the times that it waits, as is written in job-life.txt. */
import path from 'node:path';
import { expect, it } from 'vitest';
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
import { expectCases } from '../../support/errors.ts';
import { jobOf } from '../../support/model-remote.ts';

const STAGES: readonly Stage[] = ['unclear', 'active', 'stored', 'over', 'deleted', 'ending', 'settled', 'ended'];

const lifeIn = (stage: Stage): Life => ({ ...NOT_FOLLOWED, stage, quietSince: 1, quietPolls: 1, refusedPasses: 1 });

/** In each stage, the next one, the runs that become due or end, and the times that change. */
function effectsOf(event: JobEvent): string[] {
  return STAGES.flatMap((stage) => {
    const { next = stage, due = [], endsRuns = false } = rowOf(stage, event);
    const { stage: before, ...times } = lifeIn(stage);
    const { stage: after, ...changed } = happened({ stage: before, ...times }, event, 5);
    expect(after).toBe(next);
    const others = Object.entries(changed).filter(([name, value]) => times[name as 'quietPolls'] !== value);
    const runs = [...(endsRuns ? ['ends'] : []), ...due];
    if (next === stage && runs.length === 0 && others.length === 0) return [];
    return [`${stage} -> ${[next, ...runs].join(' ')} ${JSON.stringify(Object.fromEntries(others))}`];
  });
}

/** The event of a report, and of one that was stored before a restart. */
function reportedBy(written: string): string {
  const [, state = '', start, before] = /^(.*?)(?: from (\S+) after (\S+))?$/.exec(written) ?? [];
  const startedBefore = before === undefined || before === 'null' ? null : jobTimeOf(before);
  const startTime = start === undefined ? null : jobTimeOf(start.replaceAll('_', ' '));
  const information = jobOf('501', state === 'null' ? null : state, { startTime });
  const stored = lastReported({ jobId: information.id, information, since: 7, reportedAt: 9, isFormer: false });
  return `${reportEvent(information, startedBefore)}; stored: ${stored ?? 'nothing'}`;
}

/** The event of a failure while no other job works, and while others do. */
function failuresOf(written: string): string[] {
  const [run, code] = written.split(' ') as ['poll' | 'pass', ErrorCode];
  const error = new JobtailError(code, 'it fails');
  const events = [false, true].map((others) => failureOf(run, error, others) ?? 'nothing');
  return [events.join(', beside others ')];
}

const secondsOf = (text = '') => Math.round(Number(text) * 1_000);

/** A job whose polls find nothing, step by step. */
function lived(written: string): string[] {
  const [first = '', ...steps] = written.split(', ');
  const [stage, settleAfter] = first.split(' settles after ');
  const settleAfterMs = settleAfter === undefined ? null : secondsOf(settleAfter);
  let life: Life = { ...NOT_FOLLOWED, stage: stage as Stage, settleAfterMs };
  let now = 0;
  let mayStillCome = false;
  const shown: string[] = [];
  for (const step of steps) {
    const [, seconds, polls, began, hasResponse] =
      /^(?:\+([\d.]+)|(\d+) polls?(?: of ([\d.]+))?( without a response)?)$/.exec(step) ?? [];
    if (seconds !== undefined) now += secondsOf(seconds);
    else if (polls !== undefined)
      for (let each = 0; each < Number(polls); each++) {
        const beganAt = began === undefined ? now : secondsOf(began);
        life = afterPoll(life, beganAt, hasResponse === undefined, now);
      }
    else if (step === 'end?') {
      // As the agent does after each poll.
      const end = endOf(life, now, () => mayStillCome);
      if (end !== undefined) life = happened(life, end, now);
      const waits = `quiet in ${quietInMs(life, now)} ms, retry in ${retryInMs(life, now, 540_000)} ms`;
      shown.push(`at ${now / 1_000}: ${end ?? 'no end'}, ${waits}, ${life.quietPolls} quiet polls`);
    } else if (step === 'given up?') shown.push(`at ${now / 1_000}: ${isGivenUp(life, now) ? 'given up' : 'goes on'}`);
    else if (step === 'more may come' || step === 'no more may come') mayStillCome = step === 'more may come';
    else life = happened(life, step as JobEvent, now);
  }
  return shown;
}

it('each event, report, failure and quiet time leads to what is written', async () => {
  await expectCases(path.join(import.meta.dirname, 'job-life.txt'), (written) => {
    const [, kind = '', rest = ''] = /^(\w+): (.*)$/.exec(written) ?? [];
    if (kind === 'event') return effectsOf(rest as JobEvent);
    if (kind === 'report') return [reportedBy(rest)];
    return kind === 'failure' ? failuresOf(rest) : lived(rest);
  });
});

it('a job is followed while it is watched', () => {
  const followed = STAGES.filter((stage) => isFollowed(lifeIn(stage)));
  expect(followed).toEqual(['unclear', 'active', 'stored', 'over', 'deleted']);
});

const ROW = { jobId: '501', watchedAt: 3, grownAt: null } as unknown as JobRow;

it('the quiet time of a job begins with the last news of it before this start', () => {
  const last = { jobId: ROW.jobId, information: jobOf('501', 'Finished'), since: 7, reportedAt: 9, isFormer: false };
  expect([quietBefore(ROW, undefined), lastReported(undefined)]).toEqual([3, undefined]);
  expect(quietBefore({ ...ROW, grownAt: 5 }, undefined)).toBe(5);
  expect(quietBefore({ ...ROW, grownAt: 5 }, last)).toBe(7);
});
