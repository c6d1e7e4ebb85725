/** What `agent status` and `agent wait` show of the state that an agent left. */
import { expect, it } from 'vitest';
import { despiteOutages } from '../../src/cli/commands/wait.ts';
import { type Ended, endOf, exitCodeOf } from '../../src/cli/show/ends.ts';
import { reportOf } from '../../src/cli/show/status-report.ts';
import { JobtailError } from '../../src/errors.ts';
import type { JobId, TaskId } from '../../src/job.ts';
import { NOTHING_LISTED, unprovenIn } from '../../src/proven.ts';
import type { LiveFileRow, ResultState, WatchState } from '../../src/store/rows.ts';
import { NEW_RESULT } from '../support/live-place.ts';
import { jobOf } from '../support/model-remote.ts';
import { ownState } from './own-state.ts';

const JOB = '601' as JobId;
const NOT_FOLLOWED = 'it is not followed any more';
const NOT_REPORTED = 'it is not reported how the job ended';

const TASK = '602' as TaskId;
const NO_TASK = 'no task of the job was found, so no live file is here';
const STDOUT = `task ${TASK} stdout`;
const EARLY = 'verified before the end of the job, and not after it';
const GREW = 'it grew after it was verified';
const COMPARED = { verified: 0, unverified: null, early: false };

interface Ending {
  readonly tasks?: readonly TaskId[];
  readonly file?: Partial<LiveFileRow>;
  readonly result?: ResultState | null;
  readonly state?: WatchState;
  readonly jobState?: string | null;
}

/** A job with one live file and one result that the agent left so. */
async function ended({
  tasks = [TASK],
  file = {},
  result = 'synced',
  state = 'settled',
  jobState = 'Finished',
}: Ending) {
  const { config, store } = await ownState();
  const request = { jobId: JOB, tasks, files: ['stdout'], results: true, settleAfterMs: null } as const;
  const watch = () => store.jobs.watch({ ...request, source: 'command' }, 1);
  const compare = (changes: Partial<LiveFileRow>) => {
    for (const row of store.liveFiles.ofJob(JOB)) store.liveFiles.save({ ...row, ...COMPARED, ...changes });
  };
  watch();
  compare(file);
  if (result !== null) store.results.saveAll([{ ...NEW_RESULT, jobId: JOB, state: result }]);
  const information = jobOf(JOB, jobState ?? '');
  if (jobState !== null) store.jobInformation.save({ jobId: JOB, information, since: 1, reportedAt: 1 });
  store.jobs.setState(JOB, state);
  const [job] = reportOf(config, store, [JOB]).jobs;
  if (job === undefined) throw new Error('it is not watched');
  const end = endOf(job, { hasMirrors: false });
  return { config, store, job, end, code: end && exitCodeOf([end]), watch, compare };
}

it.each<[string, Ending, number, string[]]>([
  ['whose results are here', {}, 0, []],
  ['that failed', { jobState: 'Failed' }, 10, []],
  ['with a result in flux', { result: 'in-flux' }, 1, ['1 result: changed while it was fetched']],
  ['with a failed result', { result: 'failed' }, 1, ['1 result: not fetched, or refused']],
  ['that was unwatched', { state: 'ended' }, 1, [NOT_FOLLOWED]],
  ['that was unwatched, without a state', { state: 'ended', jobState: null }, 1, [NOT_FOLLOWED, NOT_REPORTED]],
  ['without a state', { jobState: null }, 1, [NOT_REPORTED]],
  ['without a task', { tasks: [], result: null }, 1, [NO_TASK]],
  // As if the clock of the service were ahead.
  ['of which no file is listed', { file: { position: 5, verified: 5 }, result: null }, 1, [NOTHING_LISTED]],
  ['that wrote nothing that could be listed', { result: null }, 0, []],
  ['with a verified file', { file: { position: 5, verified: 5 } }, 0, []],
  ['with a file that was not compared', { file: { verified: null } }, 1, [`${STDOUT}: not verified`]],
  ['with more bytes there', { file: { position: 5, verified: null, unverified: 'MORE' } }, 1, [`${STDOUT}: MORE`]],
  ['with a file that was compared while it ran', { file: { early: true } }, 1, [`${STDOUT}: ${EARLY}`]],
  ['with a file that grew since', { file: { position: 6, verified: 5 } }, 1, [`${STDOUT}: ${GREW}`]],
])('wait reports a job %s', async (_, ending, expected, unproven) => {
  const { store, end, code, watch, compare } = await ended(ending);
  expect([end?.unproven, code]).toEqual([unproven, expected]);
  // Every reader has the same reasons.
  const reasons = unproven.filter((reason) => reason !== NOT_FOLLOWED && reason !== NOT_REPORTED);
  expect(unprovenIn(store, JOB)).toEqual(reasons);
  // Of a job that is followed again, nothing is proven.
  for (const again of [() => store.jobs.resume(JOB), watch]) {
    compare(ending.file ?? {});
    again();
    expect(unprovenIn(store, JOB)).not.toEqual([]);
  }
});

it('of several ends, the worst one decides: unproven, failed, canceled', () => {
  const codeOf = (...outcomes: Ended['outcome'][]) => exitCodeOf(outcomes.map((outcome) => ({ outcome }) as Ended));
  const codes = [codeOf('finished', 'canceled'), codeOf('canceled', 'failed'), codeOf('failed', 'unproven')];
  expect(codes).toEqual([11, 10, 1]);
});

it('a job whose first poll has committed bytes, but has not ended, has grown', async () => {
  const { job } = await ended({ state: 'watched', file: { position: 5, grownAt: 1_000 } });
  expect(job).toMatchObject({ grownAt: 1_000 });
});

it('an outage of the database of a fleet of two minutes ends the command as another failure does, and a shorter one does not', async () => {
  let now = 5_000;
  let failure: JobtailError | undefined;
  const isOver = despiteOutages(
    () => (failure === undefined ? Promise.resolve(true) : Promise.reject(failure)),
    'fleet',
    () => now,
  );
  const at = async (time: number, code?: 'fleet' | 'store') => {
    now = time;
    failure = code && new JobtailError(code, 'it is away');
    return await isOver();
  };
  expect(await at(5_000, 'fleet')).toBe(false);
  expect(await at(124_900, 'fleet')).toBe(false);
  expect(await at(124_950)).toBe(true);
  expect(await at(125_000, 'fleet')).toBe(false);
  await expect(at(245_000, 'fleet')).rejects.toBe(failure);
  await expect(at(245_000, 'store')).rejects.toBe(failure);
});
