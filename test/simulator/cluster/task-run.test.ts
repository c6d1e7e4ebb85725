/** States of jobs and tasks: real processes drive them, and orders (docs/dev/soap.md 10.4, docs/dev/servers.md 10.3). */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { SubmittedJob, SubmittedTask } from '../../../simulator/cluster/cluster.ts';
import { onlyTask } from '../../support/only-task.ts';
import { startSandbox, until } from '../support.ts';

/** Never reached: only an order starts such a task. */
const DAY_MS = 86_400_000;

/** Writes a line, and ends with the exit code that the file `go` holds. */
const PROGRAM =
  "const fs = require('fs'); fs.writeSync(1, 'begin\\n');" +
  "setInterval(() => { const code = fs.existsSync('go') && fs.readFileSync('go', 'utf8'); if (code) process.exit(Number(code)); }, 5)";
const COMMAND = [process.execPath, '-e', PROGRAM];

const statesOf = (job: SubmittedJob) => [job.state, ...job.tasks.map(({ run }) => run.state)];
const go = async (task: SubmittedTask | undefined, code: number) =>
  await writeFile(join(task?.directory ?? '', 'go'), String(code));
const exitOf = (task: SubmittedTask | undefined) =>
  until(() => task?.exit !== undefined && task.run.endedAtMs !== undefined);

async function startJob(spec: { readonly clock?: () => number; readonly startDelayMs?: number } = {}) {
  const sandbox = await startSandbox({ clock: spec.clock ?? Date.now });
  const tasks = [1, 2].map(() => ({ command: COMMAND, startDelayMs: spec.startDelayMs ?? 0 }));
  return { sandbox, job: await sandbox.submitJob({ jobId: '501', held: true, tasks }) };
}

describe('states', () => {
  it('are those of the processes, each with its time', async () => {
    let nowMs = 1000;
    const { job } = await startJob({ clock: () => nowMs, startDelayMs: DAY_MS });
    const [first, second] = job.tasks;
    expect(statesOf(job)).toEqual(['Configuring', 'Configuring', 'Configuring']);
    nowMs = 2000;
    await job.submit();
    expect(statesOf(job)).toEqual(['Queued', 'Queued', 'Queued']);
    expect([job.createdAtMs, job.submittedAtMs, job.startedAtMs]).toEqual([1000, 2000, undefined]);
    nowMs = 3000;
    await first?.run.start();
    expect(statesOf(job)).toEqual(['Running', 'Running', 'Queued']);
    nowMs = 4000;
    await go(first, 0);
    await exitOf(first);
    expect(statesOf(job)).toEqual(['Running', 'Finished', 'Queued']);
    await job.start();
    expect(statesOf(job)).toEqual(['Running', 'Finished', 'Running']);
    nowMs = 5000;
    await go(second, 3);
    await exitOf(second);
    expect(statesOf(job)).toEqual(['Failed', 'Finished', 'Failed']);
    expect([first?.run.errorMessage, second?.run.errorMessage]).toEqual([null, 'The program ended with exit code 3.']);
    expect([job.startedAtMs, job.endedAtMs, first?.run.endedAtMs]).toEqual([3000, 5000, 4000]);
  });

  it('say Finished when all did', async () => {
    const { job } = await startJob();
    await job.submit();
    for (const task of job.tasks) await go(task, 0);
    for (const task of job.tasks) await exitOf(task);
    expect(statesOf(job)).toEqual(['Finished', 'Finished', 'Finished']);
  });

  it('say how a program that nobody ordered to end was ended, and one that cannot be started', async () => {
    const { sandbox, job } = await startJob();
    await job.submit();
    await job.kill();
    expect(statesOf(job)).toEqual(['Failed', 'Failed', 'Failed']);
    expect(job.tasks[0]?.run.errorMessage).toBe('The program was ended by SIGKILL.');
    const tasks = [{ command: ['/no/such/program'], startDelayMs: 1 }];
    const other = await sandbox.submitJob({ tasks });
    await until(() => other.state === 'Failed');
    expect(onlyTask(other).run.errorMessage).toContain('/no/such/program');
  });

  it.each([
    ['Canceled', undefined, null],
    ['Failed', 'node 7 is gone', 'node 7 is gone'],
    ['Finished', undefined, null],
  ] as const)('are %s by order, with processes, without and before they start', async (state, message, reported) => {
    const sandbox = await startSandbox();
    const tasks = [{ command: COMMAND }, {}, { command: COMMAND, startDelayMs: DAY_MS }];
    const job = await sandbox.submitJob({ tasks });
    expect(statesOf(job)).toEqual(['Running', 'Running', 'Running', 'Queued']);
    await job.end(state, message);
    expect(statesOf(job)).toEqual([state, state, state, state]);
    expect(job.tasks.map(({ run }) => run.errorMessage)).toEqual([reported, reported, reported]);
    expect(job.tasks[0]?.exit?.signal).toBe('SIGKILL');
    await job.start();
    expect(job.tasks[2]?.pid).toBeUndefined();
  });

  it('keep the first end', async () => {
    const { job } = await startJob();
    await job.submit();
    await go(job.tasks[0], 0);
    await exitOf(job.tasks[0]);
    await job.end('Canceled');
    expect(statesOf(job)).toEqual(['Canceled', 'Finished', 'Canceled']);
  });
});

describe('a job that is queued again', () => {
  it('runs and ends anew, under its ids, and its output goes on', async () => {
    const { job } = await startJob();
    await expect(job.requeue()).rejects.toThrow('not submitted');
    await job.submit();
    const [first, second] = job.tasks;
    await go(first, 3);
    await exitOf(first);
    const running = second?.pid;
    await writeFile(join(first?.directory ?? '', 'go'), '');
    await job.requeue();
    expect(statesOf(job)).toEqual(['Running', 'Running', 'Running']);
    expect(job.endedAtMs).toBeUndefined();
    expect(second?.pid).not.toBe(running);
    const output = () => readFile(first?.files.stdout ?? '', 'utf8');
    await until(async () => (await output()) === 'begin\nbegin\n');
    await job.end('Canceled');
    expect(statesOf(job)).toEqual(['Canceled', 'Canceled', 'Canceled']);
  });

  it('is queued as long as its tasks wait', async () => {
    const { job } = await startJob({ startDelayMs: DAY_MS });
    await job.submit();
    await job.start();
    await job.requeue();
    expect(statesOf(job)).toEqual(['Queued', 'Queued', 'Queued']);
    await job.start();
    expect(statesOf(job)).toEqual(['Running', 'Running', 'Running']);
  });
});

describe('what comes late', () => {
  it('is a task that waits, with its directory and its files', async () => {
    const sandbox = await startSandbox();
    const job = await sandbox.submitJob({ tasks: [{ command: COMMAND, startDelayMs: 30 }] });
    await until(async () => (await readFile(onlyTask(job).files.stdout, 'utf8').catch(() => '')) !== '');
    expect(statesOf(job)).toEqual(['Running', 'Running']);
  });

  it('is a task that a job gets while it runs, or when all others have ended', async () => {
    const sandbox = await startSandbox();
    const job = await sandbox.submitJob({ jobId: '501', tasks: [] });
    expect(job.state).toBe('Submitted');
    await sandbox.addTask('501', { taskId: '9001', specificationId: '7', name: 'late', command: COMMAND });
    expect(statesOf(job)).toEqual(['Running', 'Running']);
    await job.end('Finished');
    await sandbox.addTask('501', { command: COMMAND });
    expect(statesOf(job)).toEqual(['Running', 'Finished', 'Running']);
    expect(job.tasks.map(({ name }) => name)).toEqual(['late', 'task 2']);
    await expect(sandbox.addTask('502', {})).rejects.toThrow('no job 502');
    await expect(sandbox.addTask('501', { taskId: '9001' })).rejects.toThrow('task 9001 exists already');
  });
});
