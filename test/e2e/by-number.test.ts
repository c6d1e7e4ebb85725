/** A job that is followed by its number alone, as people see it: every command that shows its tasks and its state. */
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { JobSpec } from '../../src/sandbox/cluster/specs.ts';
import type { SandboxHabits } from '../../src/sandbox/habits.ts';
import { Place, type Sections } from '../support/e2e-place.ts';
import { PATIENCE, until } from '../support/e2e-until.ts';

type Context = Parameters<typeof Place.make>[0];

/** What would steer a terminal. */
const ACTS = /[\p{Cc}\p{Cf}\u2028\u2029]/u;
const NAME = 'heat \u001b[31m\u202e│ žluť';
const FILES = ['stdout', 'stderr', 'log', 'progress'];

interface SetUp {
  readonly habits?: Partial<SandboxHabits>;
  readonly spec?: JobSpec;
  /** Without the service that tells of jobs. */
  readonly untold?: boolean;
  readonly sections?: Sections;
}

async function setUp(
  context: Context,
  { habits = {}, spec = { tasks: [{}, {}] }, untold = false, sections = {} }: SetUp,
) {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  await sandbox.setHabits(habits);
  const job = await sandbox.submit(spec);
  const { jobsUrl } = sandbox;
  place.configure(sandbox, { ...(untold ? {} : { service: { jobsUrl } }), results: { enabled: false }, ...sections });
  const mirrors = (files = FILES, tasks = job.tasks) =>
    tasks.flatMap(({ taskId }) => files.map((file) => place.mirrorOf(job.jobId, taskId, file)));
  /** Has the agent look at once, which it does for each order. */
  const look = () => place.agent('watch', job.jobId, '--no-wait');
  return { place, sandbox, job, mirrors, look };
}

it.concurrent('watch, jobs, status and tail tell what the middleware tells', PATIENCE, async (context) => {
  const spec = { name: NAME, tasks: [{}, {}] };
  const { place, sandbox, job, mirrors, look } = await setUp(context, {
    spec,
    habits: { specificationIds: 'irregular' },
  });
  const { jobId, tasks } = job;
  const other = await sandbox.submit({ name: 'cold', tasks: [{}], ageSeconds: 90_000 });
  await sandbox.change(other.jobId, 'fail', { message: 'node 7\u001b[2J is gone' });
  await place.run();

  // watch: the mirrors of all tasks are there when it returns, and their paths alone are on the standard output.
  const watched = await place.agent('watch', jobId);
  expect(watched).toMatchObject({ code: 0, stderr: expect.stringContaining('tasks: 2, told by the middleware\n') });
  expect(watched.stdout.trim().split('\n')).toEqual(mirrors());
  for (const mirror of mirrors()) expect(fs.statSync(mirror).size).toBe(0);
  expect((await place.agent('watch', jobId, '--file', 'log')).stdout.trim().split('\n')).toEqual(mirrors(['log']));

  // jobs: for people, whatever their names, and for programs.
  const shown = await place.agent('jobs');
  expect(shown).toMatchObject({ code: 0, stderr: '' });
  expect(shown.stdout.replaceAll('\n', '')).not.toMatch(ACTS);
  expect(shown.stdout).toMatch(new RegExp(`│ ${jobId} +│ heat .* žluť +│ Running +│.*│ watched +│`));
  expect(shown.stdout).toMatch(new RegExp(`│ ${other.jobId} +│ cold +│ Failed +│.*│ {10}│`));
  expect(shown.stdout).toMatch(new RegExp(`job ${other.jobId}, task .* Failed: node 7.* is gone`));
  const listed = await place.agent('jobs', '--json');
  expect(listed.stdout.replaceAll('\n', '')).not.toMatch(ACTS);
  expect(JSON.parse(listed.stdout)).toMatchObject({
    version: 1,
    jobs: [
      {
        ...{ jobId, name: NAME, jobState: 'Running', watchState: 'watched', endTime: null },
        startTime: { text: expect.any(String), ms: expect.any(Number) },
        tasks: tasks.map(({ taskId }) => ({ taskId, taskState: 'Running', errorMessage: null })),
      },
      {
        jobId: other.jobId,
        jobState: 'Failed',
        watchState: null,
        tasks: [{ errorMessage: 'node 7\u001b[2J is gone' }],
      },
    ],
  });

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
        tasks: { found: 3, by: 'job-service', lookingFor: false, hint: null },
      },
    ],
  });
  expect(json.jobs[0].tasks.told).toHaveLength(3);
  expect(json.jobs[0].tasks.nextLookAt).toBeGreaterThan(Date.now() - 60_000);
  const page = (await place.agent('status', jobId)).stdout;
  expect(page.replaceAll('\n', '')).not.toMatch(ACTS);
  expect(page).toMatch(/": Failed \(first seen \d+ s ago\), submitted .*, started .*, ended /);
  expect(page).toContain(`task ${tasks[0]?.taskId} (task 1) Failed: out of memory\\u{0007}\n`);
  expect(page).toContain('tasks: 3, told by the middleware\n');
  expect((await place.agent('status')).stdout).toMatch(new RegExp(`│ ${jobId} +│ watched +│ Failed +│ 12, `));
});

describe.concurrent('watch --foreground', PATIENCE, () => {
  it.for([true, false])('follows tasks as they are found (untold: %s)', async (untold, context) => {
    const habits = { specificationIds: 0 } as const;
    const { place, job } = await setUp(context, { untold, habits });
    for (const { files, taskId } of job.tasks) fs.writeFileSync(files.stdout, `from ${taskId}\n`);
    const watching = place.start(['watch', job.jobId, '--foreground']);
    for (const { taskId } of job.tasks)
      await until('its lines', () => watching.stdout.includes(`${taskId} stdout   | from ${taskId}\n`));
    expect(watching.stderr).toContain(untold ? 'tasks: 2, found by asking for their files' : 'tasks: 2, told');
    expect(watching.stderr.includes(`job ${job.jobId} is Running\n`)).toBe(!untold);
    expect(watching.stdout, 'nothing but lines of the job').toMatch(/^(\d+ stdout {3}\| from \d+\n){2}$/);
    watching.signal('SIGINT');
    expect(await watching.ended).toMatchObject({ code: 0 });
  });
});

it.concurrent('tasks that are not found yet are said, with what helps', PATIENCE, async (context) => {
  const { place, job, mirrors } = await setUp(context, { untold: true, habits: { specificationIds: 'irregular' } });
  const without = await place.agent('watch', job.jobId);
  expect(without).toMatchObject({ code: 0, stdout: '', stderr: expect.stringContaining('no agent is running') });
  await place.run();
  const beganAt = performance.now();
  const unwaited = await place.agent('watch', job.jobId, '--no-wait');
  expect(performance.now() - beganAt).toBeLessThan(9_000);
  for (const { stdout, stderr } of [without, unwaited]) {
    expect(stdout).toBe('');
    expect(stderr).toContain('tasks: none is known yet; they are looked for');
    expect(stderr).toContain(`agent watch ${job.jobId} --task ID, or set service.jobsUrl`);
  }
  const tail = place.start(['tail', job.jobId, '-f']);
  await until('the reason', () => tail.stderr.includes(`no live file of job ${job.jobId} is known yet`));
  expect((await place.agent('status')).stdout).toContain('│ looking for tasks │');
  const page = (await place.agent('status', job.jobId)).stdout;
  expect(page).toMatch(/tasks: none is known yet; they are looked for(, next look (now|in \d+ s))?\n/);

  // --task wins, and the tail goes on with what is found.
  const [task] = job.tasks;
  fs.writeFileSync(task?.files.stdout ?? '', 'hello\n');
  const named = await place.agent('watch', job.jobId, '--task', task?.taskId ?? '');
  expect(named.stdout.trim().split('\n')).toEqual(mirrors(FILES, job.tasks.slice(0, 1)));
  await until('its line', () => tail.stdout.includes('hello\n'));
  expect((await place.agent('status', job.jobId)).stdout).not.toContain('tasks:');
});

it.concurrent('check says which way they are found, and what would be better', PATIENCE, async (context) => {
  const { place, sandbox, job } = await setUp(context, { untold: true });
  for (const { files } of job.tasks) fs.writeFileSync(files.stdout, 'hello\n');
  const untold = await place.agent('check', '--job', job.jobId);
  expect(untold).toMatchObject({ code: 0, stderr: '' });
  expect(untold.stdout).toContain('tasks are found by asking for their files, and job states are not told');
  expect(untold.stdout).toContain(`set service.jobsUrl to ${sandbox.jobsUrl}`);
  expect(untold.stdout).toContain('not tried: no task of job');
  place.configure(sandbox, { service: { jobsUrl: sandbox.jobsUrl } });
  const told = await place.agent('check', '--job', job.jobId);
  expect(told).toMatchObject({ code: 0 });
  expect(told.stdout).toMatch(
    /jobs +JobManagementWs tells of 1 job, 1 of them running, in \d+ ms: tasks and job states/,
  );
  expect(told.stdout).toContain('2 of 8 are there');
  await sandbox.setHabits({ jobService: false });
  const gone = await place.agent('check', '--job', job.jobId);
  expect(gone).toMatchObject({ code: 6, stdout: expect.stringContaining('✗ jobs') });
});

it.concurrent('init takes the service that tells of jobs if it answers', PATIENCE, async (context) => {
  const { place, sandbox } = await setUp(context, {});
  const { baseUrl, username, passwordFile } = sandbox;
  const flags = [
    '--url',
    `${baseUrl}/FileTransferWs`,
    '--namespace',
    'http://sandbox.example.org/',
    '--base-url',
    baseUrl,
  ];
  const user = ['--method', 'password', '--username', username, '--secret-file', passwordFile];
  const made = await place.plain(['init', '-o', 'told.yaml', ...flags, ...user]);
  expect(made).toMatchObject({ code: 0 });
  expect(made.stdout).toContain('with JobManagementWs, which was found beside the file transfer');
  expect(fs.readFileSync(`${place.directory}/told.yaml`, 'utf8')).toContain(`  jobsUrl: "${sandbox.jobsUrl}"\n`);
  await sandbox.setHabits({ jobService: false });
  expect(await place.plain(['init', '-o', 'untold.yaml', ...flags, ...user])).toMatchObject({ code: 0 });
  expect(fs.readFileSync(`${place.directory}/untold.yaml`, 'utf8')).toContain('  # jobsUrl: null');
});
