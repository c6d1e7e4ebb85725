/** When the first results of a job come: with its first live files, soon without any, and at once when it ends. */
import { expect, it } from 'vitest';
import { JobtailError } from '../../../src/errors.ts';
import { keyText, type TaskId } from '../../../src/job.ts';
import { sleep } from '../../../src/system/clock.ts';
import { startJob } from '../../support/composed-agent.ts';
import { JOB, STDOUT, TASK } from '../../support/engine.ts';
import type { HeldClock } from '../../support/held-clock.ts';

const MINUTE_MS = 60_000;
const NO_PARTS = { parts: [], refused: 0 };

/** A running job that writes a result, followed with the default configuration on a busy server that lists dates. */
async function follow(tasks: readonly TaskId[] | null, taskIds: readonly string[]) {
  const { clock, remote, report, store } = await startJob({ state: 'Running', tasks, taskIds, text: undefined });
  remote.beforeCall = () => sleep(clock, 300);
  remote.date = '2026-11-05T00:00:00Z';
  const write = (name: string) => remote.files.set(name, Buffer.from(name));
  write('11/out/first');
  const comes = (name: string, withinMs: number) =>
    clock.passUntil(name, () => store.results.get(JOB, `/${name}.txt`)?.state === 'synced', withinMs);
  const hasLiveFile = () => store.liveFiles.ofJob(JOB).some(({ relativePath }) => relativePath !== null);
  return { clock, report, write, comes, hasLiveFile };
}

it.each<[string, readonly TaskId[] | null, readonly string[]]>([
  ['whose tasks cannot be found', null, []],
  ['whose task is reported, without a live file', null, [TASK]],
  ['whose named task has no live file', [TASK as TaskId], [TASK]],
])('the results of a job %s come within 10 s', async (_, tasks, reported) => {
  const { comes } = await follow(tasks, reported);
  await comes('11/out/first', 10_000);
});

it.each([
  ['hangs', (clock: HeldClock, signal: AbortSignal) => sleep(clock, 60 * MINUTE_MS, signal).then(() => NO_PARTS)],
  ['fails', async () => await Promise.reject(new JobtailError('fault', 'refused'))],
  ['finds no task', async () => NO_PARTS],
] as const)(
  'without a job service, results come within 10 s of the first listing while the search %s',
  async (_, search) => {
    const { clock, remote, store } = await startJob({ source: 'config', text: undefined });
    remote.beforeCall = () => sleep(clock, 300);
    remote.readParts = (_job, _wanted, signal) => search(clock, signal);
    for (let at = 0; at < 20; at += 1) remote.files.set(`data/out-${at}`, Buffer.from('a result'));
    await clock.passUntil('results', () => store.results.counts(JOB).synced > 0, 10_000);
  },
);

it('after an outage in its first poll, a job has its mirrors before its results, and no live file comes twice', async () => {
  const { clock, remote, store } = await startJob({ tasks: [TASK as TaskId], text: 'a line\n'.repeat(1_000) });
  let isAway = true;
  remote.beforeCall = async () => {
    await sleep(clock, 300);
    if (isAway) throw new JobtailError('unreachable', 'connection refused');
  };
  remote.files.set('11/out/first', Buffer.from('a result'));
  await clock.pass(3 * MINUTE_MS);
  // Nothing is requested besides the live files.
  expect(remote.listings).toBe(0);
  isAway = false;
  const isSynced = () => store.results.get(JOB, '/11/out/first.txt')?.state === 'synced';
  await clock.passUntil('the result', isSynced, 3 * MINUTE_MS);
  expect(remote.rawBytes).toBe('a result'.length);
});

it('the first results come with the first live files, however late those are, and more at once when the job ends', async () => {
  const { clock, write, comes, report, hasLiveFile } = await follow([TASK as TaskId], [TASK]);
  await comes('11/out/first', 10_000);
  await clock.pass(10 * MINUTE_MS);
  write(keyText(STDOUT));
  write('11/out/second');
  await clock.passUntil('the live file', hasLiveFile, MINUTE_MS);
  await comes('11/out/second', 5_000);
  await clock.pass(MINUTE_MS / 4);
  write('11/out/third');
  report('Finished');
  // The states of jobs are listed every 30 s.
  await comes('11/out/third', 35_000);
});
