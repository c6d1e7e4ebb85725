/** The end of a job whose last pass fails: it is retried with back-off, its error stays visible, and it is given up. */
import { expect, it, vi } from 'vitest';
import { type ErrorCode, EXIT, JobtailError } from '../../../src/errors.ts';
import { BEHIND_EVERY_END, keyText, type TaskId } from '../../../src/job.ts';
import { unprovenIn } from '../../../src/proven.ts';
import { sleep } from '../../../src/system/clock.ts';
import { DiskReserve } from '../../../src/system/files.ts';
import { startJob } from '../../support/composed-agent.ts';
import { JOB, STDOUT, TASK } from '../../support/engine.ts';
import { failing, jobOf, tasksOf } from '../../support/model-remote.ts';

const MINUTE_MS = 60_000;

/** The standard output of a task with the number of the job. */
const OF_ITS_NUMBER = keyText({ taskId: JOB as string as TaskId, file: 'stdout' });

const finished = (results = false, taskIds = [TASK]) => startJob({ state: 'Finished', results, taskIds });
type Place = Awaited<ReturnType<typeof finished>>;

it('a last pass that always fails is rarer each time, shows its error all the time, and ends after 15 minutes', async () => {
  const { clock, remote, job, warnings, said, ask } = await finished();
  const failed = vi.fn(failing('timeout', 'the service sent nothing new for 60000 ms'));
  remote.onDownload = failed;
  await clock.passUntil('its error', () => job()?.error !== null);
  const begunAt = clock.monotonic();
  while (job()?.state === 'watched' && clock.monotonic() - begunAt < 60 * MINUTE_MS) {
    await clock.pass(5_000);
    expect(job()?.error).toMatchObject({ code: 'timeout' });
  }
  expect(job()?.state).toBe('settled');
  expect(clock.monotonic() - begunAt).toBeGreaterThan(14 * MINUTE_MS);
  expect(clock.monotonic() - begunAt).toBeLessThan(17 * MINUTE_MS);
  expect(failed.mock.calls.length).toBeLessThan(25);
  await clock.pass(20 * MINUTE_MS);
  expect(job()?.error).toMatchObject({ code: 'timeout' });
  expect(job()?.error).not.toHaveProperty('retryAt');
  expect(warnings.filter((line) => line.startsWith('operation failed'))).toHaveLength(1);
  expect(said.filter((line) => line.startsWith('operation recovered'))).toEqual([]);
  // A later sync that works clears the error.
  remote.onDownload = () => {};
  await ask('sync');
  expect(job()).toMatchObject({ state: 'settled', error: null });
});

it.each([true, false])(
  'a job whose listing is refused for ever settles after the 15 minutes that failures may delay it, results %s',
  async (results) => {
    const reason = 'this release lists no job whose id has five digits or more';
    const { remote, job, store, warnings, ends } = await finished(results);
    remote.onListing = failing('request-too-long', reason);
    const times = { listedAt: 1, fetchedAt: 1, dueAt: 1, intervalMs: 1, hangs: 0, stamp: null, stampProven: false };
    const old = { jobId: JOB, reason: null, bytes: 1, sha256: 'x', live: null, ...times };
    if (results) store.results.saveAll([{ ...old, name: '/11/grew', state: 'in-flux' }]);
    // Three passes are refused before it is given up.
    await ends(17 * MINUTE_MS);
    // Nothing of it is in flux, and nothing that was fetched before counts as the last state.
    expect(unprovenIn(store, JOB)).toContain(`no last pass: ${reason}`);
    if (results) expect(store.results.get(JOB, '/11/grew')).toMatchObject({ state: 'failed', reason });
    expect(job()?.error).toMatchObject({ code: 'request-too-long' });
    // Nothing of it is retried, a sync of results neither.
    expect(job()?.error).not.toHaveProperty('retryAt');
    expect(warnings.filter((line) => line.startsWith('complete pass ended'))).toHaveLength(1);
  },
);

it('an outage gives no job up, however often its last pass was refused before', async () => {
  const { clock, remote, job } = await finished();
  let since: number | undefined;
  const parts = vi.spyOn(remote, 'readParts');
  remote.onListing = () => {
    since ??= clock.monotonic();
    if (clock.monotonic() - since < 15 * MINUTE_MS) throw new JobtailError('request-too-long', 'refused');
    const away = new JobtailError('unavailable', 'away');
    parts.mockRejectedValue(away);
    throw away;
  };
  await clock.passUntil('the outage', () => job()?.error?.code === 'unavailable', 17 * MINUTE_MS);
  expect(remote.listings).toBeGreaterThan(3);
  await clock.pass(30 * MINUTE_MS);
  expect(job()?.state).toBe('watched');
});

it.each<[string, (place: Place) => void]>([
  ['finds it watched once more', ({ watch }) => watch()],
  ['finds it active', ({ report }) => report('Running')],
  ['finds another task', ({ report }) => report('Finished', { tasks: tasksOf(TASK, '9002') })],
  ['brings one more byte', ({ remote }) => remote.files.set(keyText(STDOUT), Buffer.from('a line\n.'))],
])('a last pass that %s does not settle its job', async (_, changes) => {
  const place = await finished();
  const { clock, remote, said } = place;
  remote.onListing = async () => {
    remote.onListing = () => {};
    changes(place);
    await sleep(clock, MINUTE_MS);
  };
  const ends = () => said.filter((line) => line.startsWith('complete pass ended'));
  await clock.passUntil('the pass', () => ends().length > 0, 5 * MINUTE_MS);
  expect(ends()[0]).toContain('state=watched');
});

it('a job that is reported as active during the last pass that would give it up is followed on', async () => {
  const { clock, remote, job, store, report, warnings, ends } = await finished();
  const reported = () => store.jobInformation.get(JOB)?.information.state;
  remote.onListing = async () => {
    if (clock.monotonic() > 15 * MINUTE_MS) {
      report('Running');
      // On the clock that the report waits for: a real one may look only after the next report.
      while (reported() !== 'Running') await sleep(clock, 1_000);
    }
    throw new JobtailError('http-status', 'status 500');
  };
  await clock.passUntil('the report', () => reported() === 'Running', 20 * MINUTE_MS);
  await clock.pass(5 * MINUTE_MS);
  expect(job()).toMatchObject({ state: 'watched' });
  // It was never settled in between.
  expect(warnings.filter((line) => line.startsWith('complete pass ended'))).toEqual([]);
  remote.onListing = () => {};
  report('Finished');
  await ends(20 * MINUTE_MS);
  expect(unprovenIn(store, JOB)).toEqual([]);
});

it.each<[string, ErrorCode]>(
  ['whose text', 'whose raw file'].flatMap((which) =>
    (['timeout', 'interrupted', 'unavailable'] as const).map((code) => [which, code] as [string, ErrorCode]),
  ),
)(
  'a live file %s always fails with %s keeps no other file of its job waiting, and delays its end for 15 minutes',
  async (which, code) => {
    const { clock, remote, store, ends } = await finished();
    remote.files.set(keyText({ ...STDOUT, file: 'stderr' }), Buffer.from('an error\n'));
    const read = remote.readParts.bind(remote);
    const fail = (isIt: boolean) => {
      if (isIt) throw new JobtailError(code, 'the file is too heavy');
    };
    remote.readParts = async (jobId, wanted, signal) => {
      const isStdout = wanted.some((one) => keyText(one) === keyText(STDOUT) && one.offset !== BEHIND_EVERY_END);
      fail(which === 'whose text' && isStdout);
      return await read(jobId, wanted, signal);
    };
    remote.onDownload = (path) => fail(which === 'whose raw file' && path.endsWith('stdout.txt'));
    await clock.passUntil('the other file', () => store.liveFiles.ofJob(JOB).some(({ position }) => position === 9));
    await ends(30 * MINUTE_MS);
    expect(unprovenIn(store, JOB)).toContain(`task ${TASK} stdout: the file is too heavy`);
  },
);

it('a last pass that finds no room for a result is repeated until there is room', async () => {
  const { clock, remote, store, job, ends } = await finished(true);
  remote.files.set('9001/large', Buffer.from('a result'));
  const room = vi.spyOn(DiskReserve.prototype, 'hasRoomFor').mockResolvedValue(false);
  await clock.pass(60 * MINUTE_MS);
  expect(job()).toMatchObject({ state: 'watched', error: { code: 'disk-full' } });
  room.mockRestore();
  await ends(20 * MINUTE_MS);
  expect(unprovenIn(store, JOB)).toEqual([]);
});

it('a job that runs again keeps no failure of its last pass', async () => {
  const { clock, remote, report, job } = await finished();
  remote.onListing = failing('timeout', 'no response');
  await clock.passUntil('its error', () => job()?.error != null, 10 * MINUTE_MS);
  report('Running');
  await clock.pass(20 * MINUTE_MS);
  expect(job()).toMatchObject({ state: 'watched', error: null });
});

it('an unwatched job whose last pass is refused for a quarter of an hour is ended, and shows why', async () => {
  const { clock, remote, job, store, agent, grown, ends } = await finished();
  await grown();
  remote.onListing = failing('http-status', 'status 500');
  store.transaction(() => store.jobs.unwatch(JOB, 'ending'));
  agent.refresh();
  await clock.pass(14 * MINUTE_MS);
  expect(job()?.state).toBe('ending');
  await ends(3 * MINUTE_MS, 'ended');
  expect(job()?.error).toMatchObject({ code: 'http-status' });
});

it('a run that fails with a requested pause is retried after it', async () => {
  const { clock, remote, agent, job, warnings } = await finished(true, []);
  remote.onListing = failing('unavailable', 'it is down', { retryAfterMs: 10 * MINUTE_MS });
  await clock.passUntil('its error', () => job()?.error !== null);
  const { retryAt = 0 } = job()?.error ?? {};
  expect(retryAt - clock.now()).toBeGreaterThan(9 * MINUTE_MS);
  expect(job()?.failures).toBeGreaterThan(0);
  // A wait that is longer than any back-off is in the log.
  expect(warnings).toEqual([expect.stringContaining(`retryAt=${new Date(retryAt).toISOString()}`)]);
  remote.onListing = () => {};
  agent.tryAgain(({ exitCode }) => exitCode === EXIT.signIn);
  await clock.pass(MINUTE_MS);
  expect(job()?.error).not.toBeNull();
  agent.tryAgain((policy) => policy.isOfService);
  await clock.passUntil('its recovery', () => job()?.error === null, 2_000);
  expect(job()?.failures).toBe(0);
});

it.each([true, false])(
  'an outage is no quiet time of a job without a known task, which is found after it, results %s',
  async (results) => {
    const { clock, remote, job } = await startJob({ results, settleAfterMs: 60 * MINUTE_MS, text: undefined });
    await clock.pass(30 * MINUTE_MS);
    remote.beforeCall = failing('unreachable', 'connection refused');
    remote.files.set(OF_ITS_NUMBER, Buffer.from('a line\n'));
    await clock.pass(120 * MINUTE_MS);
    expect(job()?.state).toBe('watched');
    remote.beforeCall = () => {};
    await clock.passUntil('the first bytes', () => job()?.grownAt != null, 30 * MINUTE_MS);
  },
);

it('a job whose live file is found empty shortly before its end is followed on', async () => {
  const { clock, remote, store, job } = await startJob({ settleAfterMs: 60 * MINUTE_MS, text: undefined });
  await clock.pass(45 * MINUTE_MS);
  remote.files.set(OF_ITS_NUMBER, Buffer.alloc(0));
  await clock.passUntil('its task', () => store.liveFiles.hasAny(JOB), 14 * MINUTE_MS);
  await clock.pass(55 * MINUTE_MS);
  expect(job()?.state).toBe('watched');
});

it('a last pass does not settle a job that its own report shows as active', async () => {
  const { clock, service, said } = await finished();
  vi.spyOn(service, 'getJob').mockResolvedValueOnce(jobOf(JOB, 'Running', { tasks: tasksOf(TASK) }));
  const ends = () => said.filter((line) => line.startsWith('complete pass ended'));
  await clock.passUntil('the pass', () => ends().length > 0, 5 * MINUTE_MS);
  expect(ends()[0]).toContain('state=watched');
});
