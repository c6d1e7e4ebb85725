import { expect, it } from 'vitest';
import { passOfDeleted } from '../../../src/agent/pass/complete-pass.ts';
import { reportedNow } from '../../../src/agent/pass/deleted-jobs.ts';
import { JobtailError } from '../../../src/errors.ts';
import { keyText } from '../../../src/job.ts';
import { NO_LIVE_FILES, reasonsAgainst, unprovenIn } from '../../../src/proven.ts';
import { JOB, polledPlace, STDOUT } from '../../support/engine.ts';
import { HeldClock } from '../../support/held-clock.ts';
import { NEW_RESULT } from '../../support/live-place.ts';
import { jobOf, ModelJobService, type ModelRemote } from '../../support/model-remote.ts';

const NAME = keyText(STDOUT);
const LINE = 'the first line\n';

function place() {
  const { remote, engine } = polledPlace({ keys: [STDOUT, { ...STDOUT, file: 'stderr' }] });
  const clock = new HeldClock();
  const pass = (isLast: boolean) => clock.passWhile(engine.pass(clock, isLast).catch((error: unknown) => error));
  return { remote, engine, pass, unproven: () => unprovenIn(engine.store, JOB) };
}

it.each<[string, (remote: ModelRemote) => void, string]>([
  ['has more bytes', (remote) => append(remote, 'THE RESULT IS 42\n'), 'the server has 17 bytes more of it'],
  ['has another last byte', (remote) => append(remote, '!', 1), 'byte 14 differs from /9001/stdout.txt'],
  ['is refused', (remote) => fail(remote, 'fault'), 'status'],
  ['cannot be downloaded', (remote) => fail(remote, 'http-status'), 'status'],
  ['cannot be downloaded now', (remote) => fail(remote, 'timeout'), 'status'],
  ['is nowhere', (remote) => (remote.rawAccess = false), 'the service lists no file that fits'],
  ['has no text', (remote) => remote.poisoned.add(NAME), 'one of the files cannot be read'],
])('a file that %s in the last pass is not proven by the pass before', async (_, change, reason) => {
  const { remote, engine, pass, unproven } = place();
  remote.files.set(NAME, Buffer.from(LINE));
  await pass(true);
  expect(unproven()).toEqual([]);
  change(remote);
  await pass(true);
  expect(unproven()).toEqual([`task 9001 stdout: ${reason}`]);
  expect(engine.store.liveFiles.get(JOB, STDOUT)).toMatchObject({ position: 15, verified: null });
});

/** Texts show the old file, as a cache of the cluster's file system does; downloads show all of it. */
function append(remote: ModelRemote, text: string, from = 0): void {
  remote.decodeWith = (_, offset) => LINE.slice(offset);
  remote.files.set(NAME, Buffer.from(`${from === 0 ? LINE : LINE.slice(0, -from)}${text}`));
}

function fail(remote: ModelRemote, code: 'fault' | 'http-status' | 'timeout'): void {
  remote.downloadFile = () => Promise.reject(new JobtailError(code, 'status'));
}

it('a comparison before the end verifies, and proves nothing', async () => {
  const { remote, engine, pass, unproven } = place();
  remote.files.set(NAME, Buffer.from(LINE));
  expect(await pass(false)).toMatchObject({ verified: 2 });
  const early = 'verified before the end of the job, and not after it';
  expect(unproven()).toEqual([`task 9001 stdout: ${early}`, `task 9001 stderr: ${early}`]);
  await pass(true);
  expect(unproven()).toEqual([]);
  // A sync of a job that is settled, or was unwatched, is made after its end, too.
  for (const state of ['settled', 'ended'] as const) {
    engine.store.jobs.setState(JOB, state);
    await pass(false);
    expect(unproven(), state).toEqual([]);
  }
});

it('a deletion takes back each comparison but those after the end of the job, and ends the results that wait', async () => {
  const { remote, engine, pass, unproven } = place();
  const { store } = engine;
  remote.files.set(NAME, Buffer.from(LINE));
  const reason = 'the job was deleted before it was verified';
  const deleted = (state: 'watched' | 'settled' | 'ended') => {
    store.jobs.setState(JOB, state);
    const { verified, liveFiles, openEnds } = passOfDeleted(JOB, store);
    expect(liveFiles).toBe(2);
    expect(new Set(unproven())).toEqual(
      new Set(openEnds.map(({ taskId, file }) => `task ${taskId} ${file}: ${reason}`)),
    );
    return [verified, openEnds.map((end) => end.reason)];
  };
  await pass(false);
  expect(deleted('settled')).toEqual([0, [reason, reason]]);
  for (const [state, expected] of [
    ['watched', [0, [reason, reason]]],
    ['settled', [2, []]],
    ['ended', [2, []]],
  ] as const) {
    await pass(true);
    expect(deleted(state)).toEqual(expected);
  }
  remote.files.set(NAME, Buffer.from(`${LINE}more\n`));
  await engine.poll();
  store.results.saveAll([{ ...NEW_RESULT, state: 'listed' }]);
  expect(deleted('settled')).toEqual([1, [reason]]);
  expect(store.results.get(JOB, NEW_RESULT.name)).toMatchObject({
    state: 'failed',
    reason: expect.stringMatching(/deleted/),
  });
});

it('a deleted job is known from the first report of it on, and a report that fails decides nothing, but a stop does', async () => {
  const { engine } = place();
  const jobService = new ModelJobService();
  const stop = new AbortController();
  const clock = new HeldClock();
  const reported = () => reportedNow(JOB, { store: engine.store, clock, jobService, signal: stop.signal });
  jobService.failure = new JobtailError('unavailable', 'it is down');
  expect(await reported()).toBeUndefined();
  stop.abort();
  await expect(reported()).rejects.toMatchObject({ code: 'unavailable' });
  jobService.failure = undefined;
  jobService.set(jobOf(JOB, 'Running'));
  expect(await reported()).toMatchObject({ state: 'Running' });
  expect(engine.store.jobInformation.get(JOB)).toBeUndefined();
  jobService.set(jobOf(JOB, 'Deleted'));
  for (let times = 0; times < 2; times += 1) expect(await reported()).toMatchObject({ state: 'Deleted' });
  expect(engine.store.jobInformation.get(JOB)).toMatchObject({ since: clock.now(), reportedAt: clock.now() });
  expect(jobService.questions).toBe(4);
});

it('a file whose first bytes could not be brought is not proven, though nothing of it is here', async () => {
  const { remote, pass, unproven } = place();
  remote.rawAccess = false;
  remote.files.set(NAME, Buffer.from([0xe2, 0x82]));
  await pass(true);
  expect(unproven()).toHaveLength(1);
});

it('results that are not wanted any more are no reason against a job', () => {
  const reasons = (results: boolean) =>
    reasonsAgainst({ error: null, results }, [], { listed: 3, failed: 1, inFlux: 0, queued: 2 });
  expect(reasons(false)).toEqual([NO_LIVE_FILES]);
  expect(reasons(true)).toHaveLength(3);
});
