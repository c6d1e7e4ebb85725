/** A deleted job is at its end: nothing that the service still returns for it changes its files here. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { mirrorPath } from '../../../src/agent/live/mirror/mirror.ts';
import { JobtailError } from '../../../src/errors.ts';
import { keyText } from '../../../src/job.ts';
import { sleep } from '../../../src/system/clock.ts';
import { startJob } from '../../support/composed-agent.ts';
import { JOB, STDOUT, TASK } from '../../support/engine.ts';
import { failing } from '../../support/model-remote.ts';

const MINUTE_MS = 60_000;
const WHOLE = 'line 1\nline 2\nline 3\n';
const ARCHIVED = 'line 1\nli';

/** As that of an older release fails for a deleted job. */
const refused = failing('http-status', 'Problem occured! Contact the administrators.');

/** With tasks, stdout of the first one is there, and mirrored; `withoutFiles`: none is. */
async function follow(results = false, withoutFiles?: readonly string[]) {
  const text = withoutFiles === undefined ? WHOLE : undefined;
  const started = await startJob({ state: 'Running', results, text, taskIds: withoutFiles ?? [TASK] });
  const { clock, remote, store, mirrorDirectory } = started;
  if (withoutFiles !== undefined) remote.files.set('earlier', Buffer.from(WHOLE));
  const mirror = mirrorPath(mirrorDirectory, JOB, STDOUT);
  const bytes = () => (fs.existsSync(mirror) ? fs.readFileSync(mirror, 'utf8') : undefined);
  if (withoutFiles === undefined) await clock.passUntil('the mirror', () => bytes() === WHOLE);
  else await clock.passUntil('a listing', () => remote.listings > 0);
  const expectUnchanged = () => {
    expect(bytes()).toBe(WHOLE);
    expect(fs.existsSync(`${mirror}.1`)).toBe(false);
    expect(store.liveFiles.ofJob(JOB).find(({ file }) => file === 'stdout')).toMatchObject({ generation: 1 });
  };
  /** From here on, it makes no request. */
  const expectSilence = async () => {
    const before = [remote.calls, remote.listings];
    await clock.pass(20 * MINUTE_MS);
    expect([remote.calls, remote.listings]).toEqual(before);
  };
  return { ...started, expectUnchanged, expectSilence };
}

it('a deleted job keeps its mirrors while the service returns older copies, before its state is listed', async () => {
  const { clock, remote, store, report, warnings, expectUnchanged, ends, expectSilence } = await follow(true);
  const result = () => store.results.get(JOB, `/${keyText(STDOUT)}.txt`);
  await clock.passUntil('a result', () => result() !== undefined);
  store.results.saveAll(
    [result()].flatMap((row) => (row ? [{ ...row, name: 'waits', state: 'listed' as const }] : [])),
  );
  report('Deleted');
  remote.files.set(keyText(STDOUT), Buffer.from(ARCHIVED));
  await ends(2 * MINUTE_MS);
  // With the name of the live file, which is not compared any more.
  expect(store.results.counts(JOB)).toMatchObject({ queued: 0, failed: 2 });
  expectUnchanged();
  expect(warnings).toContainEqual(`job deleted, its files stay here jobId=${JOB}`);
  await expectSilence();
});

it.each(['a sync', 'its last pass'])('a deletion ends the results that %s is fetching', async (run) => {
  const { clock, remote, store, report, ends } = await follow(true);
  for (let result = 0; result < 100; result += 1) remote.files.set(`result-${result}`, Buffer.from('x'));
  let requests = 0;
  // The first one is on its way while the job is deleted, and the others wait.
  remote.onDownload = async (path, signal) => {
    if (!path.includes('result')) return;
    requests += 1;
    report('Deleted');
    await sleep(clock, 60 * MINUTE_MS, signal);
  };
  if (run === 'its last pass') report('Finished');
  await clock.passUntil('a download', () => requests > 0, 10 * MINUTE_MS);
  await clock.passUntil('the report', () => store.jobInformation.get(JOB)?.information.state === 'Deleted', MINUTE_MS);
  await ends(2_000);
  const before = requests;
  await clock.pass(20 * MINUTE_MS);
  expect(requests).toBe(before);
});

it('a rewritten progress file makes no request about the job: no archive has one', async () => {
  const { clock, remote, service, store } = await follow();
  const progress = { ...STDOUT, file: 'progress' as const };
  const generation = () => store.liveFiles.ofJob(JOB).find(({ file }) => file === 'progress')?.generation;
  for (const [percent, number] of ['25 %', '50 %', '75 %'].entries()) {
    remote.files.set(keyText(progress), Buffer.from(number));
    await clock.passUntil('the new content', () => generation() === percent + 1);
    await clock.pass(MINUTE_MS);
  }
  expect(service.questions).toBe(0);
});

it('a settled job stays so after a sync that failed, and keeps its mirrors when the next one finds it deleted', async () => {
  const { remote, store, report, ask, expectUnchanged, ends, expectSilence } = await follow();
  report('Finished');
  await ends(5 * MINUTE_MS);
  remote.onListing = refused;
  expect(await ask('sync')).toMatchObject({ code: 'http-status' });
  await expectSilence();
  expect(store.jobs.get(JOB)).toMatchObject({ state: 'settled', error: null });
  report('Deleted');
  remote.files.set(keyText(STDOUT), Buffer.from(ARCHIVED));
  expect(await ask('sync')).toMatchObject({ summary: { appended: 0, liveFiles: 4, results: null } });
  expectUnchanged();
  await expectSilence();
});

it('a deleted job that is watched again, also while its pass runs, has no request for its files', async () => {
  const { remote, watch, store, report, expectUnchanged, ends } = await follow();
  report('Deleted');
  await ends(2 * MINUTE_MS);
  remote.files.set(keyText(STDOUT), Buffer.from(ARCHIVED));
  const { calls } = remote;
  const { endUnfinished } = store.results;
  store.results.endUnfinished = (...call) => {
    store.results.endUnfinished = endUnfinished;
    watch({ results: false });
    endUnfinished.apply(store.results, call);
  };
  watch();
  await ends(5 * MINUTE_MS);
  expect(remote.calls).toBe(calls);
  expectUnchanged();
});

it('a running job whose deletion a requested sync finds is at its end at once', async () => {
  const { remote, report, ask, warnings, expectUnchanged, ends } = await follow(true);
  report('Deleted');
  remote.files.set(keyText(STDOUT), Buffer.from(ARCHIVED));
  const { calls, listings } = remote;
  expect(await ask('sync')).toMatchObject({ summary: { verified: 0, results: null } });
  await ends(1_000);
  expectUnchanged();
  expect(warnings).toContainEqual(`job deleted, its files stay here jobId=${JOB}`);
  expect([remote.calls, remote.listings]).toEqual([calls, listings]);
});

it('an unwatched job without a known task ends when it is deleted, though its listing looks like an outage', async () => {
  const { clock, remote, agent, store, report, ends, job } = await follow(true, []);
  remote.onListing = failing('unavailable', 'SSH Problem: No such file');
  store.transaction(() => store.jobs.unwatch(JOB, 'ending'));
  agent.refresh();
  await clock.pass(20 * MINUTE_MS);
  expect(job()?.state).toBe('ending');
  report('Deleted');
  await ends(3 * MINUTE_MS, 'ended');
});

it('a deleted job is at its end where its state stays Canceled, but its live files and its listing are gone', async () => {
  const { remote, report, store, expectUnchanged, ends, expectSilence } = await follow(true);
  remote.files.clear();
  remote.onListing = refused;
  report('Canceled');
  await ends(60 * MINUTE_MS);
  expect(store.jobInformation.get(JOB)?.information.state).toBe('Canceled');
  expectUnchanged();
  await expectSilence();
});

it.each(['no task', 'a task without files'])(
  'the results of a job with %s are fetched although its listing was refused for some seconds',
  async (tasks) => {
    const { clock, remote, report, store, mirrorDirectory, ends } = await follow(
      true,
      tasks === 'no task' ? [] : [TASK],
    );
    remote.files.set('result', Buffer.from('the result'));
    remote.onListing = refused;
    report('Finished');
    const { listings } = remote;
    await clock.passUntil('two refused listings', () => remote.listings >= listings + 2);
    remote.onListing = () => {};
    await ends(60 * MINUTE_MS);
    expect(store.jobInformation.get(JOB)?.information.state).toBe('Finished');
    expect(fs.readFileSync(path.join(mirrorDirectory, JOB, 'results', 'result.txt'), 'utf8')).toBe('the result');
  },
);

it('a job that does not exist fails without working again in between', async () => {
  const { clock, remote, service, said, store } = await follow(true);
  service.jobs.clear();
  remote.files.clear();
  remote.onListing = refused;
  await clock.passUntil('the failure', () => store.jobs.get(JOB)?.error !== null);
  await clock.pass(30 * MINUTE_MS);
  expect(said.filter((line) => line.includes('operation recovered'))).toEqual([]);
});

it('the pass of a deleted job waits longer and longer while the state fails', async () => {
  const { clock, store, report, ends, job } = await follow();
  const end = store.results.endUnfinished.bind(store.results);
  let attempts = 0;
  store.results.endUnfinished = (...call) => {
    attempts += 1;
    // Without a pause, it is tried for ever in the same moment.
    if (attempts > 100) return end(...call);
    throw new JobtailError('disk-full', 'no space left on device');
  };
  report('Deleted');
  await clock.passUntil('its pass', () => attempts > 0, 2 * MINUTE_MS);
  await clock.pass(10 * MINUTE_MS);
  expect(attempts).toBeLessThan(50);
  expect(job()?.state).toBe('watched');
  store.results.endUnfinished = end;
  await ends(2 * MINUTE_MS);
});
