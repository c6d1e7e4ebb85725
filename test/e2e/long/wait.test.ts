/** `agent wait` as other programs use it: exit codes, `--json`, `--any`, `--timeout`, with and without a running agent. */
import { expect, it } from 'vitest';
import { endOf, exitCodeOf } from '../../../src/cli/commands/wait.ts';
import { reportOf } from '../../../src/cli/show/status-report.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { openOwnStore } from '../../../src/daemon/own-state.ts';
import { type JobId, LIVE_FILE_NAMES, type TaskId } from '../../../src/job.ts';
import type { WatchState } from '../../../src/store/rows.ts';
import type { Store } from '../../../src/store/store.ts';
import { placeWithJob } from '../../support/e2e-job.ts';
import { jobOf } from '../../support/model-job-service.ts';
import { SILENT } from '../../support/silent-log.ts';

const TASK = '9001' as TaskId;

type Left = readonly [id: string, jobState: string | null, state?: WatchState, verified?: number];

/** Jobs as an agent left them. */
async function leave(configFile: string, jobs: readonly Left[]): Promise<void> {
  const config = await loadConfig(configFile);
  const { store, close } = openOwnStore(config, SILENT);
  for (const [id, jobState, state = 'settled', verified = 5] of jobs)
    leaveOne(store, id as JobId, jobState, { state, verified });
  close();
}

function leaveOne(
  store: Store,
  jobId: JobId,
  jobState: string | null,
  { state, verified }: { readonly state: WatchState; readonly verified: number },
): void {
  const order = { jobId, tasks: [TASK], files: LIVE_FILE_NAMES, results: true, settleAfterMs: null } as const;
  store.transaction(() => {
    store.jobs.watch({ ...order, source: 'command' }, 1);
    for (const row of store.liveFiles.ofJob(jobId))
      store.liveFiles.save(row.file === 'stdout' ? { ...row, position: 5, verified } : { ...row, verified: 0 });
    if (jobState !== null)
      store.jobInformation.save({ jobId, information: jobOf(jobId, jobState), since: 1, reportedAt: 1 });
    store.jobs.setState(jobId, state);
  });
}

it('agent wait ends with how the jobs ended', async (context) => {
  const { place } = await placeWithJob(context);
  await leave(place.configFile, [
    ...([
      ['601', 'Finished'],
      ['602', 'Failed'],
      ['603', 'Canceled'],
    ] as const),
    ...([
      ['604', 'Finished', 'settled', 3],
      ['605', 'Finished', 'ended'],
      ['606', null],
      ['607', 'Deleted'],
    ] as const),
  ]);
  const wait = (...args: string[]) => place.agent('wait', ...args);
  expect(await wait('601')).toMatchObject({
    code: 0,
    stderr: '',
    stdout: expect.stringMatching(/^job 601 is Finished: 4 of 4/),
  });
  const config = await loadConfig(place.configFile);
  const { store, close } = openOwnStore(config, SILENT);
  const ends = new Map(reportOf(config, store, undefined).jobs.map((job) => [job.jobId as string, endOf(job)]));
  const ended = reportOf(config, store, '605' as JobId).jobs.map(endOf);
  close();
  const outcomes = [...ends].map(([id, end]) => `${id} ${end?.outcome} ${end && exitCodeOf([end])}`);
  expect(outcomes).toEqual([
    ...['601 finished 0', '602 failed 10', '603 canceled 11', '604 unproven 1', '606 unproven 1', '607 unproven 1'],
  ]);
  expect(ended[0]).toMatchObject({
    outcome: 'unproven',
    unproven: expect.arrayContaining(['it is not followed any more']),
  });
  expect(await wait('602')).toMatchObject({ code: 10 });
  expect(await wait('603')).toMatchObject({ code: 11 });
  expect(await wait('604')).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('not proven: task 9001 stdout: it grew after it was verified'),
  });
  // Of several, the worst; with --any, the first that is over.
  expect(await wait('603', '602', '601', '601')).toMatchObject({ code: 10 });
  const any = await wait('--any', '--json', '603', '501');
  expect(any.code).toBe(11);
  expect(JSON.parse(any.stdout)).toMatchObject({
    ...{ version: 2, exitCode: 11, timedOut: false, waitingFor: ['501'] },
    jobs: [{ jobId: '603', outcome: 'canceled', jobState: 'Canceled', state: 'settled', unproven: [] }],
  });
});

it('agent wait ends with 12 when the time is up, prints lines meanwhile, and leaves the job watched', async (context) => {
  const spec = { tasks: [{ command: ['sh', '-c', 'echo begun; while :; do echo on; sleep 0.1; done'] }] };
  const { place, job } = await placeWithJob(context, { spec });
  /** A busy machine needs a longer time until the first lines are there. */
  const waitUntilPrinted = async (name: 'stdout' | 'stderr', line: RegExp, ...options: string[]) => {
    for (let seconds = 2; ; seconds *= 4) {
      const ended = await place.agent('wait', job.jobId, '--tail', '--timeout', `${seconds}s`, ...options);
      expect(ended.code).toBe(12);
      if (line.test(ended[name])) return ended;
      expect(seconds, `${ended.stdout}${ended.stderr}`).toBeLessThan(60);
    }
  };
  const here = await waitUntilPrinted('stdout', /stdout +\| begun\n/);
  expect(here.stderr).toContain(`job ${job.jobId} is not over`);
  expect((await place.status()).jobs).toMatchObject([{ jobId: job.jobId, state: 'watched' }]);
  const agent = await place.run();
  const beside = await waitUntilPrinted('stderr', /stdout +\| on\n/, '--json');
  expect(JSON.parse(beside.stdout)).toMatchObject({ timedOut: true, jobs: [], waitingFor: [job.jobId] });
  await agent.kill();
});

it('watches a job that is not watched yet, by the running agent, and ends at a signal', async (context) => {
  const { place, job } = await placeWithJob(context);
  const agent = await place.run();
  const waiting = place.start(['wait', job.jobId]);
  await agent.logs('job followed', { jobId: job.jobId });
  waiting.signal('SIGINT');
  expect(await waiting.ended).toMatchObject({ code: 130 });
  // The agent goes on.
  expect((await place.status()).jobs).toMatchObject([{ jobId: job.jobId, state: 'watched' }]);
});
