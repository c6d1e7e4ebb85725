/** A job that is followed by its number alone: in the foreground, and after one of its tasks was named. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { placeWithJob } from '../../support/e2e-job.ts';
import { until } from '../../support/e2e-until.ts';

describe.concurrent('watch --foreground', () => {
  it.for([true, false])('follows tasks as they are found (unreported: %s)', async (unreported, context) => {
    const habits = { specificationIds: 'task' } as const;
    const { place, job } = await placeWithJob(context, { unreported, habits });
    for (const { files, taskId } of job.tasks) fs.writeFileSync(files.stdout, `from ${taskId}\n`);
    const watching = place.start(['watch', job.jobId, '--foreground']);
    for (const { taskId } of job.tasks)
      await until('its lines', () => watching.stdout.includes(`${taskId} stdout   | from ${taskId}\n`));
    const isRunning = `job ${job.jobId} is Running\n`;
    const expected = unreported ? ['tasks: 2, found by probes for their files'] : ['tasks: 2, reported', isRunning];
    for (const text of expected) await until(text, () => watching.stderr.includes(text));
    expect(watching.stderr.includes(isRunning)).toBe(!unreported);
    expect(watching.stdout, 'nothing but lines of the job').toMatch(/^(\d+ stdout {3}\| from \d+\n){2}$/);
    watching.signal('SIGINT');
    expect(await watching.ended).toMatchObject({ code: 130 });
  });

  it('begins with the last lines of what a job wrote before, and prints all that comes', async (context) => {
    const { place, job } = await placeWithJob(context, {});
    const [task] = job.tasks;
    if (task === undefined) throw new Error('it has a task');
    fs.writeFileSync(task.files.stdout, Array.from({ length: 5_000 }, (_, at) => `line ${at}\n`).join(''));
    // Of an earlier watch, which chose more.
    const other = place.mirrorOf(job.jobId, task.taskId, 'stderr');
    fs.mkdirSync(path.dirname(other), { recursive: true });
    fs.writeFileSync(other, 'not chosen\n');
    const chosen = ['--task', task.taskId, '--file', 'stdout'];
    const watching = place.start(['watch', job.jobId, ...chosen, '--foreground', '-n', '3']);
    const linesIn = () => watching.stdout.match(/\| .*/g) ?? [];
    await until('the last lines', () => linesIn().length > 0);
    fs.appendFileSync(task.files.stdout, 'one\ntwo\nthree\nfour\n');
    await until('the next lines', () => linesIn().at(-1) === '| four');
    expect(linesIn()).toEqual(
      ['line 4997', 'line 4998', 'line 4999', 'one', 'two', 'three', 'four'].map((each) => `| ${each}`),
    );
    watching.signal('SIGINT');
    expect(await watching.ended).toMatchObject({ code: 130 });
    expect(await place.agent('watch', job.jobId, '-n', '3')).toMatchObject({ code: 2 });
  });
});

/** What would steer a terminal. */
const ACTS = /[\p{Cc}\p{Cf}\u2028\u2029]/u;
const NAME = 'heat \u001b[31m\u202e│ žluť';

it.concurrent('watch, jobs, status and tail show what the middleware reports', async (context) => {
  const spec = { name: NAME, tasks: [{}, {}] };
  const { place, sandbox, job, mirrors, look } = await placeWithJob(context, {
    spec,
    habits: { specificationIds: 'irregular' },
  });
  const { jobId, tasks } = job;
  const other = await sandbox.submit({ name: 'cold', tasks: [{}], ageSeconds: 90_000 });
  await sandbox.change(other.jobId, 'fail', { message: 'node 7\u001b[2J is gone' });
  await place.run();

  // watch: the mirrors of all tasks are there when it returns, and their paths alone are on the standard output.
  const watched = await place.agent('watch', jobId);
  expect(watched).toMatchObject({ code: 0, stderr: expect.stringContaining('tasks: 2, reported by the middleware\n') });
  expect(watched.stdout.trim().split('\n')).toEqual(mirrors());
  for (const mirror of mirrors()) expect(fs.statSync(mirror).size).toBe(0);
  expect((await place.agent('watch', jobId, '--file', 'log')).stdout.trim().split('\n')).toEqual(mirrors(['log']));

  // jobs: for people, whatever their names, and for programs.
  const shown = await place.agent('jobs');
  expect(shown).toMatchObject({ code: 0, stderr: '' });
  expect(shown.stdout.replaceAll('\n', '')).not.toMatch(ACTS);
  expect(shown.stdout).toMatch(new RegExp(`^${jobId} +heat .* žluť +Running .* watched$`, 'm'));
  expect(shown.stdout).toMatch(new RegExp(`^${other.jobId} +cold +Failed .* 505$`, 'm'));
  expect(shown.stdout).toMatch(new RegExp(`job ${other.jobId}, task .* Failed: node 7.* is gone`));
  const listed = await place.agent('jobs', '--json');
  expect(listed.stdout.replaceAll('\n', '')).not.toMatch(ACTS);
  expect(JSON.parse(listed.stdout).jobs).toMatchObject([
    { jobId, name: NAME },
    { jobId: other.jobId, tasks: [{ errorMessage: 'node 7\u001b[2J is gone' }] },
  ]);

  // tail takes up a task that comes later, and says the state beside the lines.
  const tail = place.start(['tail', jobId, '-f']);
  for (const { files, taskId } of tasks) fs.writeFileSync(files.stdout, `from ${taskId}\n`);
  await until('the lines', () => tasks.every(({ taskId }) => tail.stdout.includes(`from ${taskId}\n`)));
  await until('the state', () => tail.stderr.includes(`job ${jobId} is Running\n`));
  const grown = await sandbox.addTask(jobId, {});
  const late = grown.tasks[2];
  fs.writeFileSync(late?.files.stdout ?? '', 'from one that came late\n');
  await look();
  await until('a line of the late task', () =>
    tail.stdout.includes(`${late?.taskId} stdout   | from one that came late\n`),
  );
  await sandbox.change(jobId, 'fail', { message: 'out of memory\u0007' });
  await look();
  await until('the end', () => tail.stderr.includes(`job ${jobId} is Failed; what it wrote last may still come\n`));
  expect(tail.stderr).toContain('Failed: out of memory\\u{0007}\n');
  expect(tail.stdout).not.toContain('Failed');
  tail.signal('SIGINT');

  const json = JSON.parse((await place.agent('status', jobId, '--json')).stdout);
  expect(json).toMatchObject({
    jobService: { failures: 0, error: null, listed: 2 },
    watchMine: null,
    jobs: [
      {
        ...{ jobId, state: 'watched', source: 'command', name: NAME, jobState: 'Failed' },
        endTime: { ms: expect.any(Number) },
        tasks: { found: 3, by: 'job-service', searching: false, hint: null },
      },
    ],
  });
  const page = (await place.agent('status', jobId)).stdout;
  expect(page.replaceAll('\n', '')).not.toMatch(ACTS);
  expect(page).toMatch(/": Failed \(first seen \d+ s ago\), submitted .*, started .*, ended /);
  expect(page).toContain(`task ${tasks[0]?.taskId} (task 1) Failed: out of memory\\u{0007}\n`);
  expect(page).toContain('tasks: 3, reported by the middleware\n');
  expect((await place.agent('status')).stdout).toMatch(new RegExp(`^${jobId} .*watched +Failed +12, `, 'm'));
});

it.concurrent('tasks that are not found yet are said, with what helps', async (context) => {
  const { place, job, mirrors } = await placeWithJob(context, {
    unreported: true,
    habits: { specificationIds: 'irregular' },
  });
  const without = await place.agent('watch', job.jobId);
  expect(without).toMatchObject({ code: 0, stdout: '', stderr: expect.stringContaining('no agent is running') });
  await place.run();
  const waiting = place.start(['watch', job.jobId]);
  const unwaiting = place.agent('watch', job.jobId, '--no-wait');
  const first = await Promise.race([waiting.ended.then(() => 'waited'), unwaiting.then(() => 'did not wait')]);
  expect(first).toBe('did not wait');
  const unwaited = await unwaiting;
  for (const { stdout, stderr } of [without, unwaited]) {
    expect(stdout).toBe('');
    expect(stderr).toContain('tasks: none is known yet; probes search for them');
    expect(stderr).toContain(`agent watch ${job.jobId} --task ID, or set service.jobsUrl`);
  }
  const tail = place.start(['tail', job.jobId, '-f']);
  await until('the reason', () => tail.stderr.includes(`no live file of job ${job.jobId} found yet`));
  expect((await place.agent('status')).stdout).toContain('  looking for tasks  ');
  const page = (await place.agent('status', job.jobId)).stdout;
  expect(page).toMatch(/tasks: none is known yet; probes search for them(, next probe (now|in \d+ s))?\n/);

  // --task wins, and the tail goes on with what is found.
  const [task] = job.tasks;
  fs.writeFileSync(task?.files.stdout ?? '', 'hello\n');
  const named = await place.agent('watch', job.jobId, '--task', task?.taskId ?? '');
  expect(named.stdout.trim().split('\n')).toEqual(mirrors(undefined, job.tasks.slice(0, 1)));
  await until('its line', () => tail.stdout.includes('hello\n'));
  expect((await place.agent('status', job.jobId)).stdout).not.toContain('tasks:');
});
