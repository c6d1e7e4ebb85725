/** Since when a running job has not grown: kept in its row, from which status, metrics and notifications read it. */
import { describe, expect, it } from 'vitest';
import { JobtailError } from '../../../src/errors.ts';
import { keyText, type TaskId } from '../../../src/job.ts';
import { startAgent } from '../../support/composed-agent.ts';
import { JOB, STDOUT, TASK } from '../../support/engine.ts';
import { HeldClock } from '../../support/held-clock.ts';
import { jobOf, ModelJobService, ModelRemote, tasksOf } from '../../support/model-remote.ts';

const MINUTE_MS = 60_000;

/** An agent with `stallAfterMinutes: 30` that follows a running job, by a clock that the test holds. */
async function follow({ state = 'Running', stallAfterMs = undefined as number | undefined } = {}) {
  const clock = new HeldClock();
  const remote = new ModelRemote();
  const jobService = new ModelJobService();
  const report = (jobState: string) => jobService.set(jobOf(JOB, jobState, { tasks: tasksOf(TASK) }));
  report(state);
  const grow = (text: string) => {
    const before = remote.files.get(keyText(STDOUT)) ?? Buffer.alloc(0);
    remote.files.set(keyText(STDOUT), Buffer.concat([before, Buffer.from(text)]));
  };
  grow('a line\n');
  const started = await startAgent(remote, {
    ...{ jobService, clock, sections: 'results: {enabled: false}\nstallAfterMinutes: 30\n' },
  });
  const { store, watch } = started;
  watch({ tasks: [TASK as TaskId], results: false, ...(stallAfterMs !== undefined && { stallAfterMs }) });
  const job = () => store.jobs.get(JOB);
  const reported = (jobState: string) =>
    clock.passUntil(`${jobState} to be reported`, () => store.jobInformation.get(JOB)?.information.state === jobState);
  await clock.passUntil('the first bytes', () => job()?.grownAt != null);
  await reported(state);
  const isStalled = () => (job()?.stalledAt ?? null) !== null;
  return { ...started, clock, remote, report, reported, grow, job, isStalled };
}

describe('a running job', () => {
  it('is stalled once it has not grown for stallAfterMinutes, and until it grows', async () => {
    const { clock, job, isStalled, grow, store, warnings, ask } = await follow();
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
    grow('and on\n');
    await clock.passUntil('its end', () => !isStalled(), 3 * MINUTE_MS);
    expect(store.totals.read().stalledJobs).toBe(0);
    await clock.passUntil('the next stall', isStalled, 34 * MINUTE_MS);
    // A poll just found the stall: the requested pass appends before the next poll.
    grow('the rest\n');
    expect(await ask('sync')).toMatchObject({ summary: { appended: 9 } });
    await clock.passUntil('its end', () => !isStalled(), 3 * MINUTE_MS);
  });

  it('is stalled by the limit of its own command', async () => {
    const { clock, isStalled } = await follow({ stallAfterMs: 5 * MINUTE_MS });
    await clock.pass(4 * MINUTE_MS);
    expect(isStalled()).toBe(false);
    await clock.passUntil('the stall', isStalled, 3 * MINUTE_MS);
  });

  it('is not stalled while polls fail, for it may grow', async () => {
    const { clock, remote, isStalled } = await follow();
    await clock.pass(20 * MINUTE_MS);
    remote.failures.push(...Array.from({ length: 10_000 }, () => new JobtailError('unavailable', 'it is down')));
    await clock.pass(35 * MINUTE_MS);
    expect(isStalled()).toBe(false);
    remote.failures.length = 0;
    await clock.passUntil('the stall', isStalled, 10 * MINUTE_MS);
  });

  it('keeps the time over a restart, and is not stalled any more once it is over', async () => {
    const { clock, job, isStalled, report, reported, restart, warnings } = await follow();
    await clock.passUntil('the stall', isStalled, 35 * MINUTE_MS);
    const since = job()?.stalledAt;
    await restart();
    await clock.pass(5 * MINUTE_MS);
    expect(job()?.stalledAt).toBe(since);
    expect(warnings.filter((line) => line.startsWith('job stalled'))).toHaveLength(1);
    report('Failed');
    await reported('Failed');
    await clock.passUntil('its end', () => !isStalled(), 2 * MINUTE_MS);
  });
});

it('a job that waits in the queue is never stalled, and counts from its start', async () => {
  const { clock, isStalled, report, reported } = await follow({ state: 'Queued' });
  await clock.pass(45 * MINUTE_MS);
  expect(isStalled()).toBe(false);
  report('Running');
  await reported('Running');
  await clock.pass(28 * MINUTE_MS);
  expect(isStalled()).toBe(false);
  await clock.passUntil('the stall', isStalled, 5 * MINUTE_MS);
});
