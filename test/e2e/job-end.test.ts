/** What the middleware says of a job leads to its end, and to another beginning; kills at any moment change nothing. */
import fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { JobDescription } from '../../src/sandbox/control.ts';
import { Place, readIfThere } from '../support/e2e-place.ts';
import { PATIENCE, until } from '../support/e2e-until.ts';

type Context = Parameters<typeof Place.make>[0];

/** The last bytes of a job may come so long after its end. Nothing else is waited for as long: looks begin late. */
const LATE_BYTES_MS = 60_000;

async function setUp(context: Context) {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  place.configure(sandbox, { service: { jobsUrl: sandbox.jobsUrl } });
  const job = await sandbox.submit({ tasks: [{}, {}] });
  const { jobId } = job;
  const agent = await place.run();
  expect(await place.agent('watch', jobId)).toMatchObject({ code: 0 });
  const standing = async () => {
    const [found] = (await place.status(jobId)).jobs;
    if (found === undefined) throw new Error(`job ${jobId} is unknown`);
    return found;
  };
  /** Until a state is told. Each order lets the agent look at once. */
  const told = async (jobState: string) => {
    await place.agent('watch', jobId, '--no-wait');
    await until(`the state ${jobState}`, async () => (await standing()).jobState === jobState);
  };
  return { place, sandbox, job, agent, standing, told };
}

function append({ tasks }: JobDescription, text: string): void {
  for (const { files } of tasks) fs.appendFileSync(files.stdout, text);
}

it.concurrent(
  'a job that ends is settled and verified, and goes on when it is queued again',
  PATIENCE,
  async (context) => {
    const { place, sandbox, job, agent, standing, told } = await setUp(context);
    const { jobId } = job;
    append(job, 'the first words\n');
    await place.mirrored(job, 'stdout');
    const tail = place.start(['tail', jobId, '-f']);
    await sandbox.change(jobId, 'finish');
    await told('Finished');
    // What is flushed late comes before the end, and puts it off.
    append(job, 'flushed late\n');
    await place.mirrored(job, 'stdout');
    expect(await standing()).toMatchObject({ state: 'watched', jobState: 'Finished' });
    await agent.kill();
    const second = await place.run();
    await sleep(LATE_BYTES_MS - 5_000);
    const end = await second.says(`pass over job ${jobId}: settled`);
    const beganAt = Date.parse(String((await second.says(`following job ${jobId}`))['time']));
    expect(Date.parse(String(end['time'])) - beganAt).toBeGreaterThanOrEqual(LATE_BYTES_MS);
    const { files } = await standing();
    expect(files.map(({ verified }) => verified)).toEqual(files.map(() => true));
    expect(await tail.ended).toMatchObject({ code: 0, stderr: expect.stringContaining(`job ${jobId} is settled`) });
    expect(tail.stdout).toContain('flushed late\n');
    expect(await place.agent('verify', jobId)).toMatchObject({ code: 0 });
    await second.kill();

    // While nobody looked, it was started again.
    await sandbox.change(jobId, 'requeue');
    await sandbox.change(jobId, 'start');
    append(job, 'and once more\n');
    await place.run();
    await until('it to be followed', async () => (await standing()).state === 'watched');
    await place.mirrored(job, 'stdout');
    expect(await standing()).toMatchObject({ jobState: 'Running', files: expect.objectContaining({ length: 8 }) });
  },
);

it.concurrent('kills at any moment lose no task and no byte', PATIENCE, async (context) => {
  const { place, sandbox, job, agent } = await setUp(context);
  let { program, grown } = { program: agent, grown: job };
  const others: JobDescription[] = [];
  expect(await place.agent('watch', '--mine')).toMatchObject({ code: 0 });
  for (let round = 0; round < 8; round++) {
    grown = await sandbox.addTask(job.jobId, {});
    others.push(await sandbox.submit({ tasks: [{}, {}] }));
    for (const each of [grown, ...others]) append(each, `round ${round}\n`);
    // Within the first look, the search and the first polls, each time at another moment.
    await sleep(40 * round);
    await program.kill();
    for (const { tasks, jobId } of [grown, ...others]) {
      for (const { taskId, files } of tasks) {
        const mirror = readIfThere(place.mirrorOf(jobId, taskId, 'stdout')) ?? Buffer.alloc(0);
        expect(fs.readFileSync(files.stdout).subarray(0, mirror.length).equals(mirror)).toBe(true);
      }
    }
    program = await place.run();
  }
  for (const each of [grown, ...others]) await place.mirrored(each, 'stdout');
  const { jobs } = await place.status();
  const known = (each: JobDescription) =>
    jobs.find(({ jobId }) => jobId === each.jobId)?.files.map(({ taskId }) => taskId);
  for (const each of [grown, ...others]) {
    expect(new Set(known(each))).toEqual(new Set(each.tasks.map(({ taskId }) => taskId)));
    expect(known(each)).toHaveLength(4 * each.tasks.length);
  }
});
