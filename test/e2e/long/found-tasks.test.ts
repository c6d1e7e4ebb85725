/** A job that is followed by its number alone: its tasks are found, with what each kind of server leaves for that. */
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { JobSpec } from '../../../simulator/cluster/specs.ts';
import type { JobDescription } from '../../../simulator/control.ts';
import type { SandboxHabits } from '../../../simulator/habits.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { openSharedStore } from '../../../src/daemon/state.ts';
import type { JobId } from '../../../src/job.ts';
import type { Store } from '../../../src/store/store.ts';
import { Place, type Sections } from '../../support/e2e-place.ts';
import { PATIENCE, until } from '../../support/e2e-until.ts';

type Context = Parameters<typeof Place.make>[0];

interface SetUp {
  readonly habits?: Partial<SandboxHabits>;
  readonly spec?: JobSpec;
  readonly jobService?: boolean;
  readonly sections?: Sections;
}

/** A running agent, and a job that it knows nothing of. */
async function setUp(context: Context, { habits = {}, spec, jobService = false, sections = {} }: SetUp = {}) {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  await sandbox.setHabits(habits);
  const job = await sandbox.submit(spec ?? { tasks: [{}, {}] });
  const jobs = { jobsUrl: `${sandbox.baseUrl}/JobManagementWs` };
  const service = {
    fileTransferUrl: `${sandbox.baseUrl}/FileTransferWs`,
    namespace: 'http://sandbox.example.org/',
    baseUrl: sandbox.baseUrl,
    requestsPerMinute: 100_000,
  };
  place.configure(sandbox, { service: jobService ? { ...service, ...jobs } : service, ...sections });
  const agent = await place.run();
  // What is found is looked at here, also where that takes long.
  const watch = (...args: string[]) => place.agent('watch', job.jobId, '--no-wait', ...args);
  return { place, sandbox, job, agent, watch };
}

function write({ tasks }: JobDescription, text = 'a line\n'): void {
  for (const { files, taskId } of tasks) fs.writeFileSync(files.stdout, `${taskId}: ${text}`);
}

async function inStore<T>(place: Place, look: (store: Store) => T): Promise<T> {
  const store = openSharedStore(await loadConfig(place.configFile));
  try {
    return look(store);
  } finally {
    store.close();
  }
}

const searchOf = (place: Place, { jobId }: JobDescription) =>
  inStore(place, (store) => store.taskSearches.get(jobId as JobId));

describe.concurrent('the tasks of a job are found', PATIENCE, () => {
  it.for([
    ['that are the next numbers', { specificationIds: 'next' }],
    ['that are equal to those of their specifications', { specificationIds: 0 }],
    ['that differ from those of their specifications by a number', { specificationIds: 900 }],
    ['on a server that takes five entries a call', { specificationIds: 7, maxPartsEntries: 5 }],
    ['on a server that faults on ids of others', { specificationIds: 2, unknownTask: 'fault' }],
    ['on a server whose names begin with the number', { specificationIds: 0, listForm: 'bare' }],
  ] satisfies [string, Partial<SandboxHabits>][])('by ids %s', async ([, habits], context) => {
    const { place, job, watch, agent } = await setUp(context, { habits });
    write(job);
    expect(await watch()).toMatchObject({ code: 0 });
    await place.mirrored(job, 'stdout');
    expect(await agent.logs('tasks found', { jobId: job.jobId })).toMatchObject({ level: 'info', by: 'probes' });
    expect(await searchOf(place, job)).toMatchObject({
      foundBy: 'probes',
      fruitless: 0,
      nextSearchAt: null,
      hint: null,
    });
  });

  it('by the service that tells of jobs, whatever their ids', async (context) => {
    const { place, job, watch } = await setUp(context, { habits: { specificationIds: 'irregular' }, jobService: true });
    write(job);
    expect(await watch()).toMatchObject({ code: 0 });
    await place.mirrored(job, 'stdout');
    expect(await searchOf(place, job)).toMatchObject({ foundBy: 'job-service', nextSearchAt: null });
    const reported = await inStore(place, (store) => store.jobInformation.get(job.jobId as JobId));
    expect(reported?.information).toMatchObject({ id: job.jobId, name: job.name });
  });

  it('late, when there is something of them', async (context) => {
    const { place, sandbox, job, watch } = await setUp(context, {
      habits: { jobService: false },
      spec: { tasks: [{}], held: true },
    });
    expect(await watch()).toMatchObject({ code: 0 });
    await until('looks that find nothing', async () => ((await searchOf(place, job))?.fruitless ?? 0) > 1);
    const submitted = await sandbox.change(job.jobId, 'submit');
    write(submitted);
    await place.mirrored(submitted, 'stdout');
    const grown = await sandbox.change(job.jobId, 'tasks', {});
    expect(grown.tasks).toHaveLength(2);
    write(grown, 'a task that came later\n');
    await place.mirrored(grown, 'stdout');
    fs.writeFileSync(grown.tasks[1]?.files.progress ?? '', 'a file that came later\n');
    await place.mirrored(grown, 'progress');
  });

  it('after a kill as well, and once found they stay', async (context) => {
    const { place, job, watch, agent } = await setUp(context);
    expect(await watch()).toMatchObject({ code: 0 });
    await agent.kill();
    write(job);
    const next = await place.run();
    await place.mirrored(job, 'stdout');
    await next.kill();
    write(job, 'more, in another text\n');
    await place.run();
    await place.mirrored(job, 'stdout');
    const tasks = await inStore(place, (store) => store.taskSearches.knownTasks(job.jobId as JobId));
    expect(tasks.toSorted()).toEqual(job.tasks.map(({ taskId }) => taskId).toSorted());
  });

  it('of a configured job, with the files that are wanted and no others', async (context) => {
    const { place, sandbox, job } = await setUp(context);
    write(job);
    place.configure(sandbox, { watch: [{ job: job.jobId, files: ['stdout'] }], results: { enabled: false } });
    await place.mirrored(job, 'stdout');
    const { files } = (await place.status(job.jobId)).jobs[0] ?? { files: [] };
    expect(files.map(({ file }) => file)).toEqual(['stdout', 'stdout']);
  });
});

it.concurrent('whose ids follow no rule are missed, and what helps is said', PATIENCE, async (context) => {
  const tasks = [{ taskId: '900000001' }, { taskId: '800000007' }];
  const { place, job, watch, agent } = await setUp(context, {
    spec: { tasks },
    habits: { specificationIds: 'irregular' },
  });
  write(job);
  expect(await watch()).toMatchObject({ code: 0 });
  const said = await agent.logs('tasks not found', { jobId: job.jobId });
  expect(said).toMatchObject({ level: 'warn', hint: expect.stringContaining('--task') });
  const help = 'name them (agent watch JOB --task ID), or set service.jobsUrl';
  expect((await place.agent('status')).stdout).toContain(`job ${job.jobId}: cannot find tasks: ${help}`);
  expect((await place.agent('status', job.jobId)).stdout).toContain(help);
  expect(await searchOf(place, job)).toMatchObject({ foundBy: null, hint: expect.stringContaining('service.jobsUrl') });
  expect(await watch('--task', job.tasks[0]?.taskId ?? '')).toMatchObject({ code: 0 });
  await place.mirrored({ ...job, tasks: job.tasks.slice(0, 1) }, 'stdout');
  expect(await searchOf(place, job)).toBeUndefined();
});
