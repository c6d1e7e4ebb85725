/** A deleted job is at its end: nothing that the service still returns for it changes its files here. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { mirrorPath } from '../../../src/agent/live/mirror/mirror.ts';
import { JobtailError } from '../../../src/errors.ts';
import { type JobId, keyText } from '../../../src/job.ts';
import { startAgent } from '../../support/composed-agent.ts';
import { JOB, STDOUT, TASK } from '../../support/engine.ts';
import { HeldClock } from '../../support/held-clock.ts';
import { jobOf, ModelJobService, ModelRemote, tasksOf } from '../../support/model-remote.ts';

const MINUTE_MS = 60_000;
const WHOLE = 'line 1\nline 2\nline 3\n';
const ARCHIVED = 'line 1\nli';

/** A service whose listing fails as that of an older release does for a deleted job. */
class RefusingRemote extends ModelRemote {
  listings = 0;
  refuses = false;
  refusal = new JobtailError('http-status', 'Problem occured! Contact the administrators.');

  override async listChangedFiles(jobId: JobId, signal: AbortSignal): Promise<readonly string[]> {
    this.listings += 1;
    if (this.refuses) throw this.refusal;
    return await super.listChangedFiles(jobId, signal);
  }
}

/** With tasks, stdout of the first one is there, and mirrored; `withoutFiles`: none is. */
async function follow(results = false, withoutFiles?: readonly string[]) {
  const clock = new HeldClock();
  const remote = new RefusingRemote();
  const service = new ModelJobService();
  const tell = (state: string) => service.set(jobOf(JOB, state, { tasks: tasksOf(...(withoutFiles ?? [TASK])) }));
  tell('Running');
  remote.files.set(withoutFiles === undefined ? keyText(STDOUT) : 'earlier', Buffer.from(WHOLE));
  const started = await startAgent(remote, { jobService: service, clock, sections: '' });
  const { store, watch, mirrorDirectory } = started;
  watch({ results });
  const mirror = mirrorPath(mirrorDirectory, JOB, STDOUT);
  const bytes = () => (fs.existsSync(mirror) ? fs.readFileSync(mirror, 'utf8') : undefined);
  if (withoutFiles === undefined) await clock.passUntil('the mirror', () => bytes() === WHOLE);
  else await clock.passUntil('a listing', () => remote.listings > 0);
  const state = () => store.jobs.get(JOB)?.state;
  const expectUnchanged = () => {
    expect(bytes()).toBe(WHOLE);
    expect(fs.existsSync(`${mirror}.1`)).toBe(false);
    expect(store.liveFiles.ofJob(JOB).find(({ file }) => file === 'stdout')).toMatchObject({ generation: 1 });
  };
  return { ...started, clock, remote, service, tell, state, expectUnchanged };
}

it('a deleted job keeps its mirrors while the service returns older copies, before its state is listed', async () => {
  const { clock, remote, store, tell, state, warnings, expectUnchanged } = await follow(true);
  const result = () => store.results.get(JOB, `/${keyText(STDOUT)}.txt`);
  await clock.passUntil('a result', () => result() !== undefined);
  store.results.saveAll(
    [result()].flatMap((row) => (row ? [{ ...row, name: 'waits', state: 'listed' as const }] : [])),
  );
  tell('Deleted');
  remote.files.set(keyText(STDOUT), Buffer.from(ARCHIVED));
  await clock.passUntil('its end', () => state() === 'settled', 2 * MINUTE_MS);
  // With the name of the live file, which is not compared any more.
  expect(store.results.counts(JOB)).toMatchObject({ queued: 0, failed: 2 });
  expectUnchanged();
  expect(warnings).toContainEqual(`job deleted, its files stay here jobId=${JOB}`);
  const { calls } = remote;
  await clock.pass(20 * MINUTE_MS);
  expect(remote.calls).toBe(calls);
});

it.each(['a sync', 'its last pass'])('a deletion ends the results that %s is fetching', async (run) => {
  const { clock, remote, store, tell, state } = await follow(true);
  for (let result = 0; result < 100; result += 1) remote.files.set(`result-${result}`, Buffer.from('x'));
  const download = remote.downloadFile.bind(remote);
  let [begun, requests] = [false, 0];
  remote.downloadFile = async (...call) => {
    requests += 1;
    if (begun || !call[1].includes('result')) return await download(...call);
    // The first one is on its way while the job is deleted, and the others wait.
    begun = true;
    tell('Deleted');
    return await new Promise((_, reject) => {
      call[3].addEventListener('abort', () => reject(new JobtailError('aborted', 'it was stopped')));
    });
  };
  if (run === 'its last pass') tell('Finished');
  await clock.passUntil('a download', () => begun, 10 * MINUTE_MS);
  await clock.passUntil('the report', () => store.jobInformation.get(JOB)?.information.state === 'Deleted', MINUTE_MS);
  await clock.passUntil('its end', () => state() === 'settled', 2_000);
  const asked = requests;
  await clock.pass(20 * MINUTE_MS);
  expect(requests).toBe(asked);
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
  const { clock, remote, store, tell, state, ask, expectUnchanged } = await follow();
  tell('Finished');
  await clock.passUntil('its end', () => state() === 'settled', 5 * MINUTE_MS);
  remote.refuses = true;
  expect(await ask('sync')).toMatchObject({ code: 'http-status' });
  const { listings } = remote;
  await clock.pass(20 * MINUTE_MS);
  expect(remote.listings).toBe(listings);
  expect(store.jobs.get(JOB)).toMatchObject({ state: 'settled', error: null });
  tell('Deleted');
  remote.files.set(keyText(STDOUT), Buffer.from(ARCHIVED));
  expect(await ask('sync')).toMatchObject({ summary: { appended: 0, liveFiles: 4, results: null } });
  expectUnchanged();
  const { calls } = remote;
  await clock.pass(20 * MINUTE_MS);
  expect(remote.calls).toBe(calls);
});

it('a deleted job that is watched again, also while its pass runs, has no request for its files', async () => {
  const { clock, remote, watch, store, tell, state, expectUnchanged } = await follow();
  tell('Deleted');
  await clock.passUntil('its end', () => state() === 'settled', 2 * MINUTE_MS);
  remote.files.set(keyText(STDOUT), Buffer.from(ARCHIVED));
  const { calls } = remote;
  const { endUnfinished } = store.results;
  store.results.endUnfinished = (...call) => {
    store.results.endUnfinished = endUnfinished;
    watch({ results: false });
    endUnfinished.apply(store.results, call);
  };
  watch();
  await clock.passUntil('its end', () => state() === 'settled', 5 * MINUTE_MS);
  expect(remote.calls).toBe(calls);
  expectUnchanged();
});

it('a running job whose deletion a requested sync finds is at its end at once', async () => {
  const { clock, remote, tell, state, ask, warnings, expectUnchanged } = await follow(true);
  tell('Deleted');
  remote.files.set(keyText(STDOUT), Buffer.from(ARCHIVED));
  const { calls, listings } = remote;
  expect(await ask('sync')).toMatchObject({ summary: { verified: 0, results: null } });
  await clock.passUntil('its end', () => state() === 'settled', 1_000);
  expectUnchanged();
  expect(warnings).toContainEqual(`job deleted, its files stay here jobId=${JOB}`);
  expect([remote.calls, remote.listings]).toEqual([calls, listings]);
});

it('an unwatched job without a known task ends when it is deleted, though its listing looks like an outage', async () => {
  const { clock, remote, agent, store, tell, state } = await follow(true, []);
  remote.refuses = true;
  remote.refusal = new JobtailError('unavailable', 'SSH Problem: No such file');
  store.transaction(() => store.jobs.unwatch(JOB, 'ending'));
  agent.refresh();
  await clock.pass(20 * MINUTE_MS);
  expect(state()).toBe('ending');
  tell('Deleted');
  await clock.passUntil('its end', () => state() === 'ended', 3 * MINUTE_MS);
});

it('a deleted job is at its end where its state stays Canceled, but its live files and its listing are gone', async () => {
  const { clock, remote, tell, state, store, expectUnchanged } = await follow(true);
  remote.files.clear();
  remote.refuses = true;
  tell('Canceled');
  await clock.passUntil('its end', () => state() === 'settled', 60 * MINUTE_MS);
  expect(store.jobInformation.get(JOB)?.information.state).toBe('Canceled');
  expectUnchanged();
  const { calls, listings } = remote;
  await clock.pass(30 * MINUTE_MS);
  expect([remote.calls, remote.listings]).toEqual([calls, listings]);
});

it.each(['no task', 'a task without files'])(
  'the results of a job with %s are fetched although its listing was refused for some seconds',
  async (tasks) => {
    const { clock, remote, tell, state, store, mirrorDirectory } = await follow(
      true,
      tasks === 'no task' ? [] : [TASK],
    );
    remote.files.set('result', Buffer.from('the result'));
    remote.refuses = true;
    tell('Finished');
    const { listings } = remote;
    await clock.passUntil('two refused listings', () => remote.listings >= listings + 2);
    remote.refuses = false;
    await clock.passUntil('its end', () => state() === 'settled', 60 * MINUTE_MS);
    expect(store.jobInformation.get(JOB)?.information.state).toBe('Finished');
    expect(fs.readFileSync(path.join(mirrorDirectory, JOB, 'results', 'result.txt'), 'utf8')).toBe('the result');
  },
);

it('a job that does not exist fails without working again in between', async () => {
  const { clock, remote, service, said, store } = await follow(true);
  service.jobs.clear();
  remote.files.clear();
  remote.refuses = true;
  await clock.passUntil('the failure', () => store.jobs.get(JOB)?.error !== null);
  await clock.pass(30 * MINUTE_MS);
  expect(said.filter((line) => line.includes('operation recovered'))).toEqual([]);
});

it('the pass of a deleted job waits longer and longer while the state fails', async () => {
  const { clock, store, tell, state } = await follow();
  const end = store.results.endUnfinished.bind(store.results);
  let attempts = 0;
  store.results.endUnfinished = (...call) => {
    attempts += 1;
    // Without a pause, it is tried for ever in the same moment.
    if (attempts > 100) return end(...call);
    throw new JobtailError('disk-full', 'no space left on device');
  };
  tell('Deleted');
  await clock.passUntil('its pass', () => attempts > 0, 2 * MINUTE_MS);
  await clock.pass(10 * MINUTE_MS);
  expect(attempts).toBeLessThan(50);
  expect(state()).toBe('watched');
  store.results.endUnfinished = end;
  await clock.passUntil('its end', () => state() === 'settled', 2 * MINUTE_MS);
});
