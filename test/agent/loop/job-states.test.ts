/** What a job state leads to: the job ends by itself, after what is flushed late, and goes on if it is started again. */
import fs from 'node:fs';
import { describe, expect, it, vi } from 'vitest';
import { mirrorPath } from '../../../src/agent/live/mirror/mirror.ts';
import { EXIT, JobtailError } from '../../../src/errors.ts';
import { type JobId, keyText, LIVE_FILE_NAMES, type LiveFileKey, type TaskId } from '../../../src/job.ts';
import { jobTimeOf } from '../../../src/job-information.ts';
import { sleep } from '../../../src/system/clock.ts';
import { startAgent, startJob } from '../../support/composed-agent.ts';
import { JOB, STDOUT, TASK } from '../../support/engine.ts';
import { HeldClock } from '../../support/held-clock.ts';
import { failing, jobOf, ModelJobService, ModelRemote, tasksOf } from '../../support/model-remote.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const DOWN = new JobtailError('unavailable', 'it is down');

/** A running job whose first bytes are here. */
async function follow({ sections = '', ...more }: Parameters<typeof startJob>[0] = {}) {
  const usual = { state: 'Running', results: false, sections: `results: {enabled: false}\n${sections}` };
  const started = await startJob({ ...usual, ...more });
  const { clock, remote, mirrorDirectory } = started;
  const grow = (text: string) => {
    const before = remote.files.get(keyText(STDOUT)) ?? Buffer.alloc(0);
    remote.files.set(keyText(STDOUT), Buffer.concat([before, Buffer.from(text)]));
  };
  const mirror = (key: LiveFileKey = STDOUT) => {
    const file = mirrorPath(mirrorDirectory, JOB, key);
    return fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : undefined;
  };
  await clock.passUntil('the first bytes', () => mirror() === 'a line\n');
  return { ...started, grow, mirror };
}

it('a job that is over has its end in a start that follows, for the minute goes on', async () => {
  const { clock, report, reported, job, restart, said, ends } = await follow();
  report('Finished');
  await reported('Finished');
  await clock.pass(50 * SECOND_MS);
  await restart();
  expect(job()?.state).toBe('watched');
  await ends(30 * SECOND_MS);
  // Nothing is logged as new that was reported before the start.
  expect(said.filter((line) => line.startsWith('job state changed'))).toHaveLength(2);
});

it('a job that runs again is quiet since then, although the service no longer reports it', async () => {
  const { clock, service, reported, report, ends, job } = await follow({ settleAfterMs: 60 * MINUTE_MS });
  report('Finished');
  await ends(5 * MINUTE_MS);
  await clock.pass(120 * MINUTE_MS);
  report('Queued');
  await reported('Queued');
  service.failure = DOWN;
  await clock.pass(50 * MINUTE_MS);
  expect(job()?.state).toBe('watched');
});

it('a settled job whose next run was over at once is followed again, although the state failed at that moment', async () => {
  const { clock, store, grow, mirror, ends, report } = await follow();
  const over = (startTime: string) => report('Finished', { startTime: jobTimeOf(startTime) });
  over('2026-11-05T10:00:00Z');
  await ends(5 * MINUTE_MS);
  vi.spyOn(store.jobs, 'resume').mockImplementationOnce(() => {
    throw new JobtailError('store', 'the database is locked');
  });
  grow('and again\n');
  over('2026-11-05T11:00:00Z');
  await clock.passUntil('its next run', () => mirror() === 'a line\nand again\n', 30 * MINUTE_MS);
});

it('a job that is not submitted, so that its raw bytes are refused, ends before the first byte that is not shown, and ends whole', async () => {
  const { clock, remote, store, reported, report, grow, mirror, ends } = await follow({ state: 'Configuring' });
  await reported('Configuring');
  remote.rawAccess = false;
  const lines = Array.from({ length: 10 }, (_, line) => `line ${line} \xff\xfe\x80 and on\n`).join('');
  let polls = 0;
  const readParts = remote.readParts.bind(remote);
  remote.readParts = async (jobId, wanted, signal) => {
    polls += wanted.length === LIVE_FILE_NAMES.length ? 1 : 0;
    return await readParts(jobId, wanted, signal);
  };
  const before = remote.calls;
  for (let times = 0; times < 5; times++) {
    const bytes = remote.files.get(keyText(STDOUT)) ?? Buffer.alloc(0);
    remote.files.set(keyText(STDOUT), Buffer.concat([bytes, Buffer.from(lines, 'latin1')]));
    await clock.pass(MINUTE_MS);
  }
  expect(polls).toBeGreaterThan(5);
  // A listing, three downloads and a second text for each attempt, with pauses.
  expect(remote.calls - before).toBeLessThanOrEqual(4 * polls);
  expect(mirror()).toBe('a line\nline 0 ');
  const row = () => store.liveFiles.ofJob(JOB).find(({ file }) => file === 'stdout');
  expect(row()?.error?.message).toMatch(/^the mirror ends at byte 14: the service does not show what follows/);

  remote.rawAccess = true;
  report('Running');
  await reported('Running');
  grow('the end\n');
  report('Finished');
  await ends(5 * MINUTE_MS);
  expect(mirror()).toBe(remote.files.get(keyText(STDOUT))?.toString());
  expect(row()).toMatchObject({ generation: 1, error: null });
});

describe('while the service that tells of jobs is down', () => {
  it('it is asked again no sooner than it wants', async () => {
    const { clock, service, store, watch, observed } = await follow();
    service.failure = new JobtailError('unavailable', 'it is down', { retryAfterMs: 5 * MINUTE_MS });
    await clock.passUntil('the failure', () => store.jobInformation.lastListing()?.error !== null);
    const { requestedAt = 0, nextRequestAt } = store.jobInformation.lastListing() ?? {};
    expect(nextRequestAt).toBe(requestedAt + 5 * MINUTE_MS);
    expect(observed.filter((line) => line === 'jobStatesRead failed')).toHaveLength(1);
    expect(observed).toContain('jobStatesRead ok');
    const { lists } = service;
    // Another job does not change that.
    watch({ jobId: '77' as JobId, tasks: [], files: [], results: false });
    await clock.pass(4 * MINUTE_MS);
    expect(service.lists).toBe(lists);
    await clock.passUntil('the next list', () => service.lists > lists);
  });

  it('a job whose tasks are not reported is searched for them, and what is found is polled at once', async () => {
    const { clock, remote, service, store, mirrorDirectory } = await startJob({ state: 'Running' });
    service.failure = DOWN;
    await clock.passUntil('the task', () => store.taskSearches.knownTasks(JOB).length > 0);
    expect(store.taskSearches.get(JOB)).toMatchObject({ foundBy: 'probes' });
    expect(service.lists, 'after the second failure').toBe(2);
    await clock.pass(2 * SECOND_MS);
    expect(fs.readFileSync(mirrorPath(mirrorDirectory, JOB, STDOUT), 'utf8')).toBe('a line\n');
    // One that is found does not end the search.
    remote.files.set(keyText({ taskId: '9002' as TaskId, file: 'stderr' }), Buffer.from('late\n'));
    await clock.passUntil('a later task', () => store.taskSearches.knownTasks(JOB).length > 1);
  });
});

it('a first sign-in that fails has the jobs requested, and is logged by that unless the whole service failed', async () => {
  const { clock, agent, service, warnings } = await follow();
  const after = async (code: 'http-status' | 'unreachable') => {
    const { lists } = service;
    agent.serviceFailed(new JobtailError(code, 'no session'));
    await clock.pass(5 * SECOND_MS);
    return [service.lists - lists, warnings.splice(0).map((line) => / scope=.* code=[a-z-]+/.exec(line)?.[0])];
  };
  warnings.length = 0;
  await clock.pass(5 * SECOND_MS);
  expect(await after('http-status')).toEqual([1, []]);
  expect(await after('unreachable')).toEqual([1, [' scope="the service" code=unreachable']]);
  const none = new ModelJobService();
  const idle = new HeldClock();
  await startAgent(new ModelRemote(), { clock: idle, jobService: none });
  await idle.pass(5 * SECOND_MS);
  expect(none.lists, 'an agent without jobs requests nothing').toBe(0);
  const without = await startAgent(new ModelRemote(), { clock: new HeldClock() });
  without.agent.serviceFailed(new JobtailError('http-status', 'no session'));
  expect(without.warnings).toEqual([expect.stringContaining('scope="the sign-in" code=http-status')]);
});

it('a stop ends a request for the jobs that has no response', async () => {
  const { clock, service } = await follow();
  const listJobs = vi.fn((signal: AbortSignal) => sleep(clock, 24 * 60 * MINUTE_MS, signal).then(() => []));
  Object.assign(service, { listJobs });
  await clock.passUntil('a request', () => listJobs.mock.calls.length > 0);
  // The end of the test stops the agent, and sees how long that takes.
});

it('a list that a refused secret failed is requested again at once when that is mended, and not before', async () => {
  const { clock, agent, service } = await follow();
  service.failure = new JobtailError('sign-in-refused', 'wrong password');
  await clock.pass(10 * MINUTE_MS);
  const { lists } = service;
  await clock.passUntil('a list that fails', () => service.lists > lists, 30 * MINUTE_MS);
  agent.tryAgain(() => false);
  await clock.pass(SECOND_MS);
  expect(service.lists).toBe(lists + 1);
  agent.tryAgain(({ exitCode }) => exitCode === EXIT.signIn);
  await clock.pass(SECOND_MS);
  expect(service.lists).toBe(lists + 2);
});

it('a quiet job costs no calls but its polls, and one list for all jobs every half minute', async () => {
  const { clock, remote, service, agent, store } = await follow();
  // Who says that something changed asks for one look, not for more ever after.
  for (let times = 0; times < 20; times++) agent.refresh();
  await clock.pass(10 * MINUTE_MS);
  const before = { calls: remote.calls, lists: service.lists };
  const looks = vi.spyOn(store.jobs, 'changedSince');
  await clock.pass(10 * MINUTE_MS);
  expect(looks.mock.calls.length).toBeLessThanOrEqual(11);
  // Polls come once a minute, or a tenth oftener.
  expect(remote.calls - before.calls).toBeLessThanOrEqual(12);
  expect(service.lists - before.lists).toBeLessThanOrEqual(23);
  expect(service.questions).toBe(0);
  // What brings no news is committed later, with others: at once only if a list is stored just then.
  const polledAt = () => store.jobs.get(JOB)?.polledAt ?? 0;
  const isLate = async () => {
    const calls = remote.calls;
    while (remote.calls === calls) await clock.pass(100);
    await clock.pass(500);
    return polledAt() < clock.now() - 5_000;
  };
  for (let polls = 1; !(await isLate()); polls++) expect(polls).toBeLessThan(5);
  await clock.pass(1_000);
  expect(polledAt()).toBeGreaterThan(clock.now() - 5_000);
});

describe('a job that no list names, and whose own report fails', () => {
  const BAD = ['90', '91', '92', '93', '94', '95', '96', '97', '98', '99'] as JobId[];
  const failure = new JobtailError('http-status', 'status 500');

  /** Ten such jobs, more than are asked for in one round, beside one that is listed and `others` that are not. */
  async function beside(others: readonly JobId[]) {
    const started = await follow();
    const { service, store, watch } = started;
    const getJob = service.getJob.bind(service);
    service.getJob = async (jobId) => {
      if (BAD.includes(jobId)) throw failure;
      return await getJob(jobId);
    };
    for (const jobId of others) {
      service.set(jobOf(jobId, 'Running'));
      service.unlisted.add(jobId);
    }
    for (const jobId of [...BAD, ...others]) watch({ jobId, tasks: ['101' as TaskId], results: false });
    const stateOf = (id: string) => store.jobInformation.get(id as JobId)?.information.state;
    return { ...started, stateOf };
  }

  it('keeps no other job from its end, and no job of the user from being followed', async () => {
    // More than are asked for in two rounds.
    const others = Array.from({ length: 17 }, (_, each) => String(100 + each) as JobId);
    const { clock, service, store, agent, report, stateOf, warnings, ends } = await beside(others);
    await clock.passUntil('the others', () => others.every((jobId) => stateOf(jobId) === 'Running'), 5 * MINUTE_MS);
    report('Finished');
    service.set(jobOf('100', 'Finished'));
    service.set(jobOf('700', 'Running', { tasks: tasksOf('701') }));
    const rule = { include: ['**'], exclude: [], maxAgeMs: 1, maxJobs: 9, source: 'command' } as const;
    store.watchMine.save({ ...rule, since: clock.now() });
    agent.refresh();
    const areOver = () => [JOB, '100'].every((jobId) => stateOf(jobId) === 'Finished');
    await clock.passUntil('both reports', areOver, 5 * MINUTE_MS);
    await ends(3 * MINUTE_MS);
    expect(stateOf('700')).toBe('Running');
    expect(store.jobInformation.lastListing()).toMatchObject({ failures: 0, error: null });
    const named = (jobId: JobId) => warnings.filter((line) => line.includes(`scope="job ${jobId} report"`)).length;
    expect(BAD.map(named)).toEqual(BAD.map(() => 1));
  });

  it('is settled after a start, if its last report was its end', async () => {
    const { clock, service, report, reported, restart, job } = await follow();
    service.set(jobOf('100', 'Running'));
    report('Finished');
    await reported('Finished');
    const getJob = service.getJob.bind(service);
    service.unlisted.add(JOB);
    service.getJob = async (jobId) => {
      if (jobId === JOB) throw failure;
      return await getJob(jobId);
    };
    await restart();
    await clock.pass(5 * MINUTE_MS);
    expect(job()?.state).toBe('watched');
    await clock.passUntil('its end', () => job()?.state === 'settled', 30 * MINUTE_MS);
    const { lists } = service;
    await restart();
    await clock.pass(SECOND_MS);
    expect(service.lists, 'it may have been started again').toBe(lists + 1);
  });

  it.each<[string, ModelJobService['getJob'] | undefined, boolean]>([
    ['is refused', undefined, true],
    ['fails', () => Promise.reject(failure), false],
  ])('is named in the log once, also if it %s, until it works or a list names it', async (_, getJob, isUnlisted) => {
    const { clock, service, report, said, warnings } = await follow();
    const ofJob = (lines: readonly string[]) => lines.filter((line) => line.includes(`scope="job ${JOB} report"`));
    service.unlisted.add(JOB);
    service.jobs.delete(JOB);
    if (getJob !== undefined) service.getJob = getJob;
    await clock.pass(5 * MINUTE_MS);
    expect(ofJob(warnings)).toEqual([expect.stringContaining(isUnlisted ? `there is no job ${JOB}` : 'status 500')]);
    report('Running');
    if (!isUnlisted) service.unlisted.delete(JOB);
    await clock.pass(MINUTE_MS);
    expect(ofJob(said)).toEqual([expect.stringContaining('operation recovered')]);
  });

  it('is requested at its own back-off, and at once and named again if it is followed again', async () => {
    const { clock, service, store, agent, watch, warnings } = await follow();
    const named = () => warnings.filter((line) => line.includes(`scope="job ${JOB} report"`)).length;
    service.unlisted.add(JOB);
    const getJob = vi.spyOn(service, 'getJob').mockRejectedValue(failure);
    await clock.pass(30 * MINUTE_MS);
    expect(getJob.mock.calls.length).toBeGreaterThanOrEqual(8);
    expect(getJob.mock.calls.length).toBeLessThanOrEqual(13);
    store.jobs.unwatch(JOB, 'ended');
    agent.refresh();
    await clock.pass(SECOND_MS);
    const calls = getJob.mock.calls.length;
    watch({ jobId: JOB });
    await clock.pass(10 * SECOND_MS);
    expect([getJob.mock.calls.length - calls, named()]).toEqual([1, 2]);
  });

  it('is searched for its tasks after the second failure', async () => {
    const { clock, service, store, watch } = await follow();
    const getJob = vi.spyOn(service, 'getJob').mockRejectedValue(failure);
    watch({ jobId: '90' as JobId, results: false });
    await clock.passUntil('its task', () => store.taskSearches.knownTasks('90' as JobId).length > 0, 5 * MINUTE_MS);
    expect(getJob).toHaveBeenCalledTimes(2);
  });

  it('has its tasks followed also if they could not be stored at first', async () => {
    const { remote, service, store, report, mirror, ends } = await follow();
    service.unlisted.add(JOB);
    const late: LiveFileKey = { taskId: '9002' as TaskId, file: 'stdout' };
    remote.files.set(keyText(late), Buffer.from('late\n'));
    vi.spyOn(store.taskSearches, 'addTasks').mockImplementationOnce(() => {
      throw new JobtailError('disk-full', 'no space left on device');
    });
    report('Finished', { tasks: tasksOf(TASK, late.taskId) });
    await ends(30 * MINUTE_MS);
    expect(mirror(late)).toBe('late\n');
  });

  it('is of no use once the job has settled: the next list shows that it ran again', async () => {
    const { clock, service, store, watch, report, reported, ends, job } = await follow();
    const over = (startTime: string) => report('Finished', { startTime: jobTimeOf(startTime) });
    service.unlisted.add(JOB);
    over('2026-11-05T10:00:00Z');
    await reported('Finished');
    let answer = () => {};
    const other = new Promise<void>((resolve) => (answer = resolve));
    const getJob = service.getJob.bind(service);
    service.getJob = async (jobId) => {
      if (jobId === '100') await other;
      return jobId === '100' ? jobOf('100', 'Running') : await getJob(jobId);
    };
    watch({ jobId: '100' as JobId, results: false });
    await ends(5 * MINUTE_MS);
    over('2026-11-05T11:00:00Z');
    answer();
    await clock.pass(SECOND_MS);
    service.unlisted.delete(JOB);
    await clock.passUntil('its next run', () => job()?.state === 'watched', 5 * MINUTE_MS);
    expect(store.jobs.get(JOB)?.state).toBe('watched');
  });
});

describe('a report that is the same as the one before', () => {
  it('is stored every five minutes, and sooner if that failed', async () => {
    const { clock, store, report, warnings, ends } = await follow();
    const save = vi.spyOn(store.jobInformation, 'save');
    await clock.pass(10 * MINUTE_MS);
    expect(save.mock.calls.length).toBeLessThanOrEqual(3);
    save.mockImplementationOnce(() => {
      throw new JobtailError('store', 'it is locked');
    });
    report('Finished');
    await ends(3 * MINUTE_MS);
    expect(warnings).toEqual([expect.stringContaining('operation failed scope="the state" code=store')]);
    expect(store.jobInformation.get(JOB)?.information.state).toBe('Finished');
  });

  it('brings the tasks that only the next request wants', async () => {
    const { clock, remote, service, watch, mirror } = await follow();
    watch({ tasks: [STDOUT.taskId], results: false });
    const late: LiveFileKey = { taskId: '9002' as TaskId, file: 'stderr' };
    remote.files.set(keyText(late), Buffer.from('late\n'));
    service.set(jobOf(JOB, 'Running', { tasks: tasksOf(TASK, late.taskId) }));
    await clock.pass(2 * MINUTE_MS);
    expect(mirror(late)).toBeUndefined();
    watch({ results: false });
    await clock.pass(MINUTE_MS);
    expect(mirror(late)).toBe('late\n');
  });
});

/** With `stallAfterMinutes: 30`; the row of the job has since when it has not grown: status and notifications read it. */
async function stalling(more: Parameters<typeof startJob>[0] = {}) {
  const started = await follow({ sections: 'stallAfterMinutes: 30\n', tasks: [STDOUT.taskId], ...more });
  await started.reported(more.state ?? 'Running');
  return { ...started, isStalled: () => (started.job()?.stalledAt ?? null) !== null };
}

describe('a running job', () => {
  it('is stalled once it has not grown for stallAfterMinutes, and until it grows', async () => {
    const { clock, job, isStalled, grow, store, warnings, ask } = await stalling();
    await clock.pass(29 * MINUTE_MS);
    expect(isStalled()).toBe(false);
    await clock.passUntil('the stall', isStalled, 3 * MINUTE_MS);
    const since = job()?.stalledAt ?? 0;
    // Since the growth, or the first report of the state, and not since the moment at which it was found.
    expect(Math.abs(since - (job()?.grownAt ?? 0))).toBeLessThan(2 * MINUTE_MS);
    expect(store.totals.read().stalledJobs).toBe(1);
    await clock.pass(20 * MINUTE_MS);
    expect(job()?.stalledAt).toBe(since);
    expect(warnings.filter((line) => line.startsWith(`job stalled jobId=${JOB} `))).toHaveLength(1);
    grow('\n');
    await clock.passUntil('its end', () => !isStalled(), 3 * MINUTE_MS);
    expect(store.totals.read().stalledJobs).toBe(0);
    expect(job()?.grownAt).toBeGreaterThan(since + 20 * MINUTE_MS);
    await clock.passUntil('the next stall', isStalled, 34 * MINUTE_MS);
    // A poll just found the stall: the requested pass appends before the next poll.
    grow('the rest\n');
    expect(await ask('sync')).toMatchObject({ summary: { appended: 9 } });
    await clock.passUntil('its end', () => !isStalled(), 3 * MINUTE_MS);
  });

  it('is stalled by the limit of its own command', async () => {
    const { clock, isStalled } = await stalling({ stallAfterMs: 5 * MINUTE_MS });
    await clock.pass(4 * MINUTE_MS);
    expect(isStalled()).toBe(false);
    await clock.passUntil('the stall', isStalled, 3 * MINUTE_MS);
  });

  it('is not stalled while polls fail, for it may grow', async () => {
    const { clock, remote, isStalled } = await stalling();
    await clock.pass(20 * MINUTE_MS);
    remote.beforeCall = failing('unavailable', 'it is down');
    await clock.pass(35 * MINUTE_MS);
    expect(isStalled()).toBe(false);
    remote.beforeCall = () => {};
    await clock.passUntil('the stall', isStalled, 10 * MINUTE_MS);
  });
});

it('a job that waits in the queue is never stalled, and counts from its start', async () => {
  const { clock, isStalled, report, reported } = await stalling({ state: 'Queued' });
  await clock.pass(45 * MINUTE_MS);
  expect(isStalled()).toBe(false);
  report('Running');
  await reported('Running');
  await clock.pass(28 * MINUTE_MS);
  expect(isStalled()).toBe(false);
  await clock.passUntil('the stall', isStalled, 5 * MINUTE_MS);
});
