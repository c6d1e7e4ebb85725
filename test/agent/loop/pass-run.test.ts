/** Which requests a complete pass answers. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { Results } from '../../../src/agent/results/results.ts';
import { JobtailError } from '../../../src/errors.ts';
import { type JobId, keyText, LIVE_FILE_NAMES, type TaskId } from '../../../src/job.ts';
import { unprovenIn } from '../../../src/proven.ts';
import { sleep } from '../../../src/system/clock.ts';
import { startAgent, startJob } from '../../support/composed-agent.ts';
import { until } from '../../support/e2e-until.ts';
import { JOB, STDOUT, TASK } from '../../support/engine.ts';
import { ModelRemote } from '../../support/model-remote.ts';

const MINUTE_MS = 60_000;

/** A job with a line of text, whose results are not fetched. */
async function place(more: Parameters<typeof startJob>[0] = {}) {
  const started = await startJob({ results: false, sections: 'results: {enabled: false}\n', ...more });
  const { agent, clock, store } = started;
  const add = () => {
    const id = store.requests.add(JOB, 'sync', clock.now());
    agent.refresh();
    return id;
  };
  const answerOf = (id: number | undefined) => (id === undefined ? null : (store.requests.get(id)?.answer ?? null));
  const answered = (id: number, maxMs?: number) => clock.passUntil('the answer', () => answerOf(id) !== null, maxMs);
  const unwatch = (as: 'ending' | 'ended') => {
    store.jobs.unwatch(JOB, as);
    agent.refresh();
  };
  return { ...started, add, answerOf, answered, unwatch };
}

const ONE_TASK = { tasks: [TASK as TaskId] };

it('a request that comes while a pass runs is answered by a pass that begins after it', async () => {
  const { clock, remote, store, grown, add } = await place(ONE_TASK);
  await grown();
  /** How many calls there were when each request was answered. */
  const answered = new Map<number, number>();
  const answer = store.requests.answer.bind(store.requests);
  store.requests.answer = (id, text) => {
    answered.set(id, remote.calls);
    answer(id, text);
  };
  let second: number | undefined;
  remote.onDownload = () => {
    second ??= add();
  };
  const first = add();
  await clock.passUntil('both answers', () => answered.has(first) && second !== undefined && answered.has(second));
  expect(answered.get(second ?? 0)).toBeGreaterThan(answered.get(first) ?? 0);
});

it('a command has its answer before the temporary key of its job is released, which may take an hour', async () => {
  const { clock, ends, add, answered } = await place({ ...ONE_TASK, state: 'Finished' });
  await ends(10 * MINUTE_MS);
  const release = vi.spyOn(Results.prototype, 'endTransfer');
  onTestFinished(() => release.mockRestore());
  release.mockImplementation((_, { signal }) => sleep(clock, 60 * MINUTE_MS, signal));
  await answered(add(), MINUTE_MS);
});

it.each(['a sync of results', 'the pass that a command requests'])(
  'live files grow while %s downloads for long',
  async (which) => {
    const sections = 'poll: {minIntervalSeconds: 0.1, maxIntervalSeconds: 0.2}\nresults: {intervalSeconds: 1}\n';
    const { clock, remote, store, add, answerOf } = await place({ ...ONE_TASK, results: true, sections });
    let log = 'a line\n';
    const write = () => {
      log += 'a line\n';
      remote.files.set(keyText(STDOUT), Buffer.from(log));
    };
    let isLarge = which === 'a sync of results';
    const listedAt: number[] = [];
    remote.onListing = () => {
      listedAt.push(clock.monotonic());
      if (isLarge) remote.files.set('large', Buffer.from('a result'));
    };
    let arrive = () => {};
    const arrived = new Promise<void>((resolve) => (arrive = resolve));
    let isDownloading = false;
    remote.onDownload = async (path) => {
      if (path !== '/large.txt') return;
      isDownloading = true;
      await arrived;
    };
    const position = () => store.liveFiles.ofJob(JOB).find(({ file }) => file === 'stdout')?.position;
    await clock.passUntil('the first bytes', () => position() === log.length);
    if (isLarge) await clock.passUntil('the download', () => isDownloading);
    isLarge = true;
    const request = add();
    await clock.passUntil('the download', () => isDownloading);
    for (let times = 0; times < 3; times++) {
      write();
      await clock.passUntil('its growth', () => position() === log.length);
    }
    expect(answerOf(request)).toBeNull();
    let answeredAt = Number.POSITIVE_INFINITY;
    const answer = store.requests.answer.bind(store.requests);
    store.requests.answer = (...args) => {
      answeredAt = clock.monotonic();
      answer(...args);
    };
    arrive();
    await clock.passUntil('the answer', () => answerOf(request) !== null);
    expect(JSON.parse(answerOf(request) ?? '')).toMatchObject({ summary: { liveFiles: 4 } });
    write();
    await clock.passUntil('growth after it', () => position() === log.length);
    // The pass listed the results just now: the next time is after their interval.
    await clock.pass(1_500);
    expect(listedAt.find((at) => at > answeredAt)).toBeGreaterThanOrEqual(answeredAt + 500);
  },
);

it('the failure of a pass that a command requested is its answer for a day, and one of its job alone, which is not retried', async () => {
  const { clock, remote, agent, warnings, said, ask, answerOf } = await place(ONE_TASK);
  const list = vi.spyOn(remote, 'listChangedFiles');
  list.mockRejectedValueOnce(new JobtailError('unreachable', 'connection refused', { hint: 'call them' }));
  const refusal = { error: 'connection refused', code: 'unreachable', hint: 'call them' };
  expect(await ask('sync')).toEqual(refusal);
  const scope = `scope="job ${JOB} pass" code=unreachable`;
  expect(warnings).toEqual([expect.stringContaining(`operation failed ${scope}`)]);
  await clock.pass(10 * 60_000);
  expect(list.mock.calls).toHaveLength(1);
  expect(await ask('sync')).toMatchObject({ summary: { verified: 4, openEnds: [] } });
  expect(said.filter((line) => line.startsWith('operation recovered'))).toEqual([expect.stringContaining(scope)]);
  const hours = (count: number) => {
    clock.stepWall(count * 3_600_000);
    agent.refresh();
  };
  hours(23);
  expect(JSON.parse(answerOf(1) ?? 'null')).toEqual(refusal);
  hours(1);
  expect(answerOf(1)).toBeNull();
});

it('a job that is unwatched during its settling pass is ended, not settled', async () => {
  const { clock, remote, store, job, ends } = await place({ ...ONE_TASK, settleAfterMs: 60_000 });
  remote.onDownload = () => store.jobs.unwatch(JOB, 'ending');
  await clock.passUntil('its end', () => job()?.state !== 'watched');
  expect(job()?.state).toBe('ending');
  await ends(MINUTE_MS, 'ended');
});

it('a job that is unwatched at once has no last pass, though one waited for its results', async () => {
  const { clock, remote, said, unwatch } = await place({ ...ONE_TASK, sections: '', results: true });
  remote.files.set('large', Buffer.from('a result'));
  let isStopped = false;
  let isDownloading = false;
  remote.onDownload = async (_path, signal) => {
    isDownloading = true;
    await sleep(clock, 60 * MINUTE_MS, signal).finally(() => (isStopped = true));
  };
  await clock.passUntil('the download', () => isDownloading, MINUTE_MS);
  for (const state of ['ending', 'ended'] as const) {
    unwatch(state);
    await clock.pass(1_000);
  }
  const { calls } = remote;
  await clock.pass(10 * MINUTE_MS);
  expect([isStopped, remote.calls - calls, said.filter((line) => line.startsWith('complete'))]).toEqual([true, 0, []]);
});

it('a sync whose pass ends as its job is unwatched at once has another one', async () => {
  const { clock, remote, grown, add, answered, unwatch } = await place(ONE_TASK);
  await grown();
  let downloads = 0;
  remote.onDownload = async (_path, signal) => {
    downloads += 1;
    if (downloads === 1) await sleep(clock, 60 * MINUTE_MS, signal);
  };
  const request = add();
  await clock.passUntil('the download', () => downloads > 0);
  unwatch('ended');
  await answered(request, 10_000);
});

it('a job that is watched again while a pass that was stopped still ends is followed on', async () => {
  const { clock, remote, watch, unwatch, ends } = await place({ ...ONE_TASK, state: 'Finished' });
  let release: (() => void) | undefined;
  remote.onDownload = () => new Promise<void>((resolve) => (release = resolve));
  await clock.passUntil('the last pass', () => release !== undefined, 10 * MINUTE_MS);
  unwatch('ended');
  await clock.pass(1_000);
  watch({ ...ONE_TASK, results: false });
  await clock.pass(1_000);
  remote.onDownload = () => {};
  release?.();
  await ends(10 * MINUTE_MS);
});

it('the last pass of an unwatched job requests its report once, and finds its tasks in it', async () => {
  const { service, observed, ends } = await place({ state: 'Running', as: 'ending' });
  await ends(MINUTE_MS, 'ended');
  expect(observed.filter((line) => !line.startsWith('jobStates'))).toEqual(['tasksFound 1 job-service', 'appended 7']);
  expect(service.questions).toBe(1);
});

it('a job that is unwatched while it runs is not proven, until a sync after its end', async () => {
  const { store, report, add, answered, ends } = await place({ state: 'Running', as: 'ending' });
  await ends(MINUTE_MS, 'ended');
  const reason = 'verified before the end of the job, and not after it';
  expect(unprovenIn(store, JOB)).toEqual(LIVE_FILE_NAMES.map((file) => `task ${TASK} ${file}: ${reason}`));
  report('Finished');
  await answered(add());
  expect(unprovenIn(store, JOB)).toEqual([]);
});

it('a job that runs again during its last pass is not proven by it', async () => {
  const { clock, remote, store, report, unwatch } = await place({ ...ONE_TASK, state: 'Finished' });
  let isHeld = true;
  let downloads = 0;
  remote.onDownload = async (_path, signal) => {
    downloads += 1;
    while (isHeld) await sleep(clock, 10, signal);
  };
  await clock.passUntil('its last pass', () => downloads > 0, 10 * MINUTE_MS);
  report('Running');
  await clock.pass(MINUTE_MS);
  isHeld = false;
  await clock.passUntil('its comparison', () => store.liveFiles.ofJob(JOB).every(({ verified }) => verified !== null));
  await clock.pass(1_000);
  unwatch('ended');
  await clock.pass(1_000);
  const reason = 'verified before the end of the job, and not after it';
  expect(unprovenIn(store, JOB)).toEqual(LIVE_FILE_NAMES.map((file) => `task ${TASK} ${file}: ${reason}`));
});

it('a pass over a job that is followed no more searches for its tasks, and says that it has none', async () => {
  const { remote, warnings, observed, ask } = await place({
    sections: '',
    as: 'ended',
    results: true,
    text: undefined,
  });
  const sync = async () => [(await ask('sync')).summary.liveFiles, warnings.splice(0)];
  const hint = `(if the job has tasks, run agent watch ${JOB} --task ID)`;
  expect(await sync()).toEqual([0, [`no task found, no live files to copy jobId=${JOB} ${hint}`]]);
  remote.files.set(keyText({ ...STDOUT, taskId: JOB as string as TaskId }), Buffer.from('a line\n'));
  expect(await sync()).toEqual([4, []]);
  expect(observed).toEqual(['tasksFound 1 probes', 'appended 7']);
  remote.rawAccess = false;
  const cause = `(agent status ${JOB} names the cause)`;
  expect(await sync()).toEqual([
    4,
    [
      `complete pass ended jobId=${JOB} state=ended verified=3 openEnds="${JOB}/stdout: the service lists no file that fits"`,
      `results may be missing: no file is listed jobId=${JOB} ${cause}`,
    ],
  ]);
});

it('a job is removed beside the request of a command that was killed, not beside one that waits, whose pass goes on', async () => {
  const { clock, remote, agent, store, ask, add, answered } = await place({ ...ONE_TASK, as: 'settled' });
  let isHeld = true;
  let downloads = 0;
  remote.onDownload = async (_path, signal) => {
    downloads += 1;
    while (isHeld) await sleep(clock, 10, signal);
  };
  const waits = add();
  await clock.passUntil('its pass', () => downloads > 0);
  const release = vi.spyOn(agent, 'release');
  expect(await ask('forget')).toEqual({
    error: `another command works on job ${JOB}`,
    code: 'unavailable',
    hint: 'run the command again when the other one (sync, wait, verify, watch --foreground) has ended',
  });
  expect(release.mock.calls).toEqual([]);
  isHeld = false;
  await answered(waits);
  expect(downloads).toBe(1);
  store.requests.add(JOB, 'sync', clock.now() - 120_000);
  expect(await ask('forget')).toMatchObject({ files: 0 });
  expect([store.jobs.get(JOB), release.mock.calls]).toEqual([undefined, [[JOB]]]);
});

it('jobs are removed each by its own requests once its notifications exist; the next agent does what a stop interrupts', async () => {
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  let caughtUp = 0;
  const catchUp = () => {
    caughtUp += 1;
    return held;
  };
  const { agent, store, said, mirrorDirectory, restart } = await startAgent(new ModelRemote(), { catchUp });
  const put = (jobId: JobId, files: number) => {
    const order = { jobId, tasks: [], files: LIVE_FILE_NAMES, results: false, settleAfterMs: null } as const;
    store.jobs.watch({ ...order, source: 'command' }, Date.now());
    store.jobs.setState(jobId, 'settled');
    fs.mkdirSync(path.join(mirrorDirectory, jobId));
    for (let file = 0; file < files; file++) fs.writeFileSync(path.join(mirrorDirectory, jobId, String(file)), '');
  };
  const [one, two] = ['501', '502'] as [JobId, JobId];
  put(one, 200);
  put(two, 1);
  const requests = [
    store.requests.add(two, 'forget', Date.now()),
    store.requests.add(one, 'forget', Date.now()),
    store.requests.add(one, 'forget-files', Date.now()),
  ];
  const answers = () => requests.map((requestId) => store.requests.get(requestId)?.answer ?? null);
  agent.refresh();
  // Also once for the changed jobs.
  await until('both to wait', () => caughtUp === 3);
  expect(store.jobs.all()).toHaveLength(2);
  const next = await restart();
  expect(answers()).toEqual([null, null, null]);
  // A stop while files are removed waits for their answer.
  const stopped = new Promise<void>((resolve) => {
    const { transaction } = store;
    store.transaction = (work) => {
      const done = transaction.call(store, work) as ReturnType<typeof work>;
      if (!fs.existsSync(path.join(mirrorDirectory, `${one}.removed`))) return done;
      if (requests.length === 3) requests.push(store.requests.add(one, 'forget', Date.now()));
      resolve(next.stop());
      return done;
    };
  });
  release();
  for (let times = 0; times < 2; times++) next.refresh();
  await stopped;
  expect(answers().slice(1), 'also of a command that came meanwhile').toEqual(
    Array.from({ length: 3 }, () => '{"files":200,"bytes":0}'),
  );
  // The other removal may not have begun when the stop came.
  (await restart()).refresh();
  await until('the other job to be removed', () => answers()[0] === '{"files":0,"bytes":0}');
  expect(said).toContain('job removed jobId=501 deleteFiles=true files=200 bytes=0');
});
