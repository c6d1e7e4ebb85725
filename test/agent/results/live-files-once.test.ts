/** How often all bytes of live files are requested, which the listing names among the results. */
import { expect, it } from 'vitest';
import { keyText, LIVE_FILE_NAMES, type LiveFileName, type TaskId } from '../../../src/job.ts';
import { sleep } from '../../../src/system/clock.ts';
import { startAgent } from '../../support/composed-agent.ts';
import { JOB } from '../../support/engine.ts';
import { HeldClock } from '../../support/held-clock.ts';
import { jobOf, ModelJobService, ModelRemote, tasksOf } from '../../support/model-remote.ts';

const MINUTE_MS = 60_000;
const TASKS = Array.from({ length: 5 }, (_, at) => String(9001 + at) as TaskId);

/** A job of the middleware that is followed with the default configuration. `partsMs`: how long a call for parts takes. */
async function follow(state: string, { prefix = '', partsMs = 0 }, write: (remote: ModelRemote) => void) {
  const clock = new HeldClock();
  const remote = new ModelRemote();
  remote.prefix = prefix;
  write(remote);
  const jobService = new ModelJobService();
  const report = (reported: string) => jobService.set(jobOf(JOB, reported, { tasks: tasksOf(...TASKS) }));
  report(state);
  const downloads: string[] = [];
  const { downloadFile, readParts } = remote;
  remote.readParts = async (...call) => {
    await sleep(clock, partsMs);
    return await readParts.apply(remote, call);
  };
  remote.downloadFile = async (...call) => {
    downloads.push(call[1]);
    return await downloadFile.apply(remote, call);
  };
  const { store, watch } = await startAgent(remote, { jobService, clock, sections: '' });
  watch();
  const grow = (text: string, files: readonly LiveFileName[] = LIVE_FILE_NAMES) => {
    for (const taskId of TASKS)
      for (const file of files) {
        const name = keyText({ taskId, file });
        const before = remote.files.get(name) ?? Buffer.alloc(0);
        remote.files.set(name, Buffer.concat([before, Buffer.from(`${name}: ${text}\n`)]));
      }
  };
  const settled = () => clock.passUntil('the end', () => store.jobs.get(JOB)?.state === 'settled', 10 * MINUTE_MS);
  return { clock, store, report, downloads, grow, settled };
}

/** Of each live file of the tasks. */
const writeAll = (bytes: Buffer) => (remote: ModelRemote) => {
  for (const taskId of TASKS)
    for (const file of LIVE_FILE_NAMES)
      remote.files.set(keyText({ taskId, file }), Buffer.concat([Buffer.from(`${taskId} ${file}\n`), bytes]));
  remote.files.set('9001/other', Buffer.from('a result'));
};

it.each([
  ['at a path that is known', '', Buffer.from('ok\n'), 0, 0],
  ['whose raw bytes showed its path', '1', Buffer.from([0xe9, 0x20, 0x0a]), 0, 1],
  ['one of which shows the paths of the others', '1', Buffer.from('ok\n'), 1, 1],
])('a growing live file %s is no result until its job ends', async (_, prefix, bytes, asResults, linked) => {
  const job = await follow('Running', { prefix }, writeAll(bytes));
  const { clock, store, downloads, grow, settled } = job;
  // The raw bytes of each at most once for its first bytes, and once for the next.
  await clock.pass(MINUTE_MS / 2);
  const isRaw = bytes.includes(0xe9);
  const first = downloads.length;
  grow('first');
  await clock.pass(MINUTE_MS / 2);
  const before = downloads.length;
  expect(first).toBeLessThan(2 * (isRaw ? TASKS.length * LIVE_FILE_NAMES.length : 1));
  for (let step = 0; step < 30; step += 1) {
    grow(`${step} `.repeat(100));
    await clock.pass(MINUTE_MS / 6);
  }
  const live = downloads.slice(before).filter((name) => !name.endsWith('/other.txt'));
  expect(live).toHaveLength(asResults);
  expect(store.results.get(JOB, `/${prefix}9001/other.txt`)?.state).toBe('synced');
  expect(store.results.counts(JOB)).toMatchObject({ linked, failed: 0 });
  job.report('Finished');
  const growing = downloads.length;
  await settled();
  expect(store.results.counts(JOB)).toMatchObject({ listed: 21, synced: 21, linked: 20 });
  // Each once, for its proof.
  const proofs = downloads.slice(growing).filter((name) => !name.endsWith('/other.txt'));
  expect(proofs.toSorted()).toEqual([...new Set(proofs)].toSorted());
});

it('a large live file of a job that is over is downloaded for its mirror and for its proof, and not as a result', async () => {
  const large = Buffer.alloc(1_000_000, 'text\n');
  const write = (remote: ModelRemote) => remote.files.set('9001/stdout', large);
  const { downloads, settled } = await follow('Finished', { partsMs: 10_000 }, write);
  await settled();
  expect(downloads).toEqual(['/9001/stdout.txt', '/9001/stdout.txt']);
});
