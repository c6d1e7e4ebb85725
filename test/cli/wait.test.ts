/** What `agent status` and `agent wait` show of the state that an agent left. */
import { expect, it } from 'vitest';
import { despiteOutages } from '../../src/cli/commands/wait.ts';
import { endOf, exitCodeOf, withoutLost } from '../../src/cli/show/ends.ts';
import { reportOf } from '../../src/cli/show/status-report.ts';
import { JobtailError } from '../../src/errors.ts';
import type { JobId, TaskId } from '../../src/job.ts';
import { NOTHING_LISTED, unprovenIn } from '../../src/proven.ts';
import type { LiveFileRow, ResultState, WatchState } from '../../src/store/rows.ts';
import type { Store } from '../../src/store/store.ts';
import { NEW_RESULT } from '../support/live-place.ts';
import { jobOf } from '../support/model-remote.ts';
import { ownState } from './own-state.ts';

const JOB = '601' as JobId;
const NOT_FOLLOWED = 'it is not followed any more';
const NOT_REPORTED = 'it is not reported how the job ended';

const TASK = '602' as TaskId;
const NO_TASK = 'no task of the job was found, so no live file is here';
const FILE = { verified: 0, unverified: null, early: false };

it.each<[string, ResultState, WatchState, string | null, number, string[]]>([
  ['whose results are here', 'synced', 'settled', 'Finished', 0, []],
  ['that failed', 'synced', 'settled', 'Failed', 10, []],
  ['with a result in flux', 'in-flux', 'settled', 'Finished', 1, ['1 result: changed while it was fetched']],
  ['with a failed result', 'failed', 'settled', 'Finished', 1, ['1 result: not fetched, or refused']],
  ['that was unwatched', 'synced', 'ended', 'Finished', 1, [NOT_FOLLOWED]],
  ['that was unwatched, without a state', 'synced', 'ended', null, 1, [NOT_FOLLOWED, NOT_REPORTED]],
  ['without a state', 'synced', 'settled', null, 1, [NOT_REPORTED]],
])('wait reports a job %s', async (_, result, state, jobState, code, unproven) => {
  const { config, store } = await ownState();
  watch(store);
  compared(store, FILE);
  listed(store, result);
  const information = jobOf(JOB, jobState ?? '');
  if (jobState !== null) store.jobInformation.save({ jobId: JOB, information, since: 1, reportedAt: 1 });
  store.jobs.setState(JOB, state);
  const [end] = reportOf(config, store, [JOB]).jobs.map(endOf);
  expect(end?.unproven).toEqual(unproven);
  expect(end && exitCodeOf([end])).toBe(code);
});

it.each<[string, Partial<LiveFileRow>, string[]]>([
  ['verified at the end', { position: 5, verified: 5 }, []],
  ['empty, and compared', {}, []],
  ['empty, and not compared', { verified: null }, ['not verified']],
  ['found to have more bytes there', { position: 5, verified: null, unverified: 'MORE' }, ['MORE']],
  ['verified while the job ran', { early: true }, ['verified before the end of the job, and not after it']],
  ['grown since', { position: 6, verified: 5 }, ['it grew after it was verified']],
])('wait reports a settled job with a live file that is %s', async (_, row, reasons) => {
  const { config, store } = await ownState();
  watch(store);
  listed(store, 'synced');
  compared(store, { ...FILE, ...row });
  store.jobInformation.save({ jobId: JOB, information: jobOf(JOB, 'Finished'), since: 1, reportedAt: 1 });
  store.jobs.setState(JOB, 'settled');
  const unproven = reasons.map((reason) => `task 602 stdout: ${reason}`);
  const [job] = reportOf(config, store, [JOB]).jobs;
  expect(job && endOf(job)).toMatchObject({ unproven, outcome: reasons.length === 0 ? 'finished' : 'unproven' });
  // It has no mirror, as if one with bytes was removed.
  const isWhole = reasons.length === 0 && row.position === undefined;
  expect(job && endOf(withoutLost(job))?.outcome).toBe(isWhole ? 'finished' : 'unproven');
  // Every reader has the same reason.
  expect(job?.files[0]?.unproven).toBe(reasons[0] ?? null);
  expect(unprovenIn(store, JOB)).toEqual(unproven);
  // Of a job that is followed again, nothing is proven.
  for (const again of [() => store.jobs.resume(JOB), () => watch(store)]) {
    compared(store, { ...FILE, ...row });
    again();
    expect(unprovenIn(store, JOB)).toHaveLength(1);
  }
});

it('a settled job with live output, of which the service lists no file, as if its clock were ahead', async () => {
  const { config, store } = await ownState();
  watch(store);
  compared(store, { ...FILE, position: 5, verified: 5 });
  store.jobInformation.save({ jobId: JOB, information: jobOf(JOB, 'Finished'), since: 1, reportedAt: 1 });
  store.jobs.setState(JOB, 'settled');
  const [end] = reportOf(config, store, [JOB]).jobs.map(endOf);
  expect(end).toMatchObject({ outcome: 'unproven', unproven: [NOTHING_LISTED] });
  expect(unprovenIn(store, JOB)).toEqual([NOTHING_LISTED]);
  // One that wrote nothing has nothing that could be listed.
  compared(store, { ...FILE, position: 0, verified: 0 });
  expect(unprovenIn(store, JOB)).toEqual([]);
});

it('a settled job without a task', async () => {
  const { config, store } = await ownState();
  watch(store, []);
  store.jobInformation.save({ jobId: JOB, information: jobOf(JOB, 'Finished'), since: 1, reportedAt: 1 });
  store.jobs.setState(JOB, 'settled');
  const [end] = reportOf(config, store, [JOB]).jobs.map(endOf);
  expect(end).toMatchObject({ outcome: 'unproven', unproven: [NO_TASK] });
});

function watch(store: Store, tasks = [TASK]): void {
  const request = { jobId: JOB, tasks, files: ['stdout'], results: true, settleAfterMs: null } as const;
  store.jobs.watch({ ...request, source: 'command' }, 1);
}

const listed = (store: Store, state: ResultState) => store.results.saveAll([{ ...NEW_RESULT, jobId: JOB, state }]);

function compared(store: Store, changes: Partial<LiveFileRow>): void {
  for (const row of store.liveFiles.ofJob(JOB)) store.liveFiles.save({ ...row, ...changes });
}

it('a job whose first poll has committed bytes, but has not ended, has grown', async () => {
  const { config, store } = await ownState();
  const request = { jobId: JOB, tasks: ['602' as TaskId], files: ['stdout'], results: true } as const;
  store.jobs.watch({ ...request, settleAfterMs: null, source: 'command' }, 1);
  for (const row of store.liveFiles.ofJob(JOB)) store.liveFiles.save({ ...row, position: 5, grownAt: 1_000 });
  expect(reportOf(config, store, undefined).jobs).toMatchObject([{ grownAt: 1_000 }]);
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
