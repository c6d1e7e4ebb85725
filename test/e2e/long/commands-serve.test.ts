/** Commands without a running agent: whichever holds the lock serves all, and the next one takes its place. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it, type TestContext } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { openSharedStore } from '../../../src/daemon/state.ts';
import { lockHolder } from '../../../src/store/lock.ts';
import { Place } from '../../support/e2e-place.ts';
import type { Program } from '../../support/e2e-program.ts';
import { until } from '../../support/e2e-until.ts';

/** Each with its own way to end, and what the command reports of it. */
const ENDS = ['finish', 'fail', 'finish', 'fail', 'finish', 'fail', 'finish', 'finish'] as const;
const CODES = { finish: 0, fail: 10 } as const;

async function placeOfCommands(context: TestContext) {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  place.configure(sandbox, { service: { jobsUrl: sandbox.jobsUrl }, results: { enabled: false } });
  const config = await loadConfig(place.configFile);
  const requests = () => {
    const store = openSharedStore(config);
    try {
      return (['pass', 'forget', 'service', 'follow'] as const).flatMap((work) => store.requests.open(work));
    } finally {
      store.close();
    }
  };
  const submit = async (text = 'hello\n') => {
    const job = await sandbox.submit({ tasks: [{}] });
    for (const { files } of job.tasks) fs.writeFileSync(files.stdout, text);
    return job;
  };
  const holder = () => lockHolder(place.state);
  const holds = (program: Program) => until('it to have the lock', () => holder()?.pid === program.pid);
  return { place, sandbox, requests, submit, holder, holds };
}

it.concurrent('eight agent wait at once end each with its own code, over a kill of the one that serves', async (context) => {
  const { place, sandbox, submit, holder, requests } = await placeOfCommands(context);
  const jobs = await Promise.all(ENDS.map((_, at) => submit(`of ${at}\n`)));
  const waiting = jobs.map(({ jobId }) => place.start(['wait', jobId]));
  for (const job of jobs) await place.mirrored(job, 'stdout');
  const first = await until('one to serve', () => waiting.find(({ pid }) => pid === holder()?.pid));
  expect(holder()).toMatchObject({ role: 'command' });
  await first.kill();
  const second = await until('another one to serve', () =>
    waiting.find(({ pid, end }) => !end && pid === holder()?.pid),
  );
  expect(second).not.toBe(first);
  for (const [at, { jobId, tasks }] of jobs.entries()) {
    for (const { files } of tasks) fs.appendFileSync(files.stdout, 'the last line\n');
    await sandbox.change(jobId, ENDS[at] ?? 'finish');
  }
  const ended = await Promise.all(waiting.map((program) => program.ended));
  for (const [at, { code, stdout, stderr }] of ended.entries()) {
    if (waiting[at] === first) continue;
    expect({ code, stdout, stderr }).toMatchObject({
      code: CODES[ENDS[at] ?? 'finish'],
      stderr: expect.not.stringContaining('not over'),
    });
    expect(stdout).toContain(`job ${jobs[at]?.jobId} is `);
  }
  for (const job of jobs) if (waiting[jobs.indexOf(job)] !== first) await place.mirrored(job, 'stdout');
  expect(holder()).toBeUndefined();
  // That of the killed command is removed a minute after its last renewal, so perhaps not yet.
  const killed = jobs[waiting.indexOf(first)]?.jobId;
  expect(requests().filter(({ jobId }) => jobId !== killed)).toEqual([]);
});

it.concurrent('overlapping agent sync, verify, forget and unwatch are all served, and none refused', async (context) => {
  const { place, submit, holds, requests, holder } = await placeOfCommands(context);
  const jobs = await Promise.all(Array.from({ length: 3 }, () => submit()));
  const [one, two, three] = jobs.map(({ jobId }) => jobId) as unknown as [string, string, string];
  for (const jobId of [two, three]) await place.agent('watch', jobId, '--no-wait');
  const wait = place.start(['wait', one]);
  await holds(wait);
  for (const code of [0, 0])
    expect(await Promise.all(Array.from({ length: 4 }, () => place.agent('sync', two)))).toEqual(
      Array.from({ length: 4 }, () => expect.objectContaining({ code, stderr: '' })),
    );
  expect(await place.agent('verify', two)).toMatchObject({ stdout: expect.stringMatching(/^equal .*stdout/m) });
  expect(await place.agent('unwatch', three)).toMatchObject({ code: 0 });
  // Its job goes on: if that was reported before, it is not proven.
  expect(await place.agent('forget', three, '--yes', '--unproven')).toMatchObject({ code: 0 });
  const jobsListed = await place.agent('jobs');
  expect(jobsListed).toMatchObject({ code: 0, stdout: expect.stringContaining(one) });
  // It tells the truth: no command waits for this one.
  const watched = await place.agent('watch', two, '--no-wait');
  expect(watched.stderr).toContain('no agent is running: it is followed once one is started');
  expect((await place.agent('status')).stdout).toContain(`a command (pid ${wait.pid}) follows what commands wait for`);
  wait.signal('SIGTERM');
  expect(await wait.ended).toMatchObject({ code: 143 });
  // Without any: each takes the lock itself, and eight at the same moment are served, too.
  const eight = await Promise.all(Array.from({ length: 8 }, () => place.agent('sync', two)));
  expect(eight.map(({ code, stderr }) => [code, stderr])).toEqual(eight.map(() => [0, '']));
  expect(holder()).toBeUndefined();
  expect(requests()).toEqual([]);
});

it.concurrent('a state that is removed under a command that waits is made anew, and the job watched again', async (context) => {
  const { place, submit } = await placeOfCommands(context);
  const job = await submit();
  const [{ files } = { files: { stdout: '' } }] = job.tasks;
  const holding = place.start(['wait', job.jobId]);
  const beside = place.start(['wait', job.jobId]);
  await place.mirrored(job, 'stdout');
  for (const name of fs.readdirSync(place.state))
    if (name.startsWith('agent.db')) fs.rmSync(path.join(place.state, name));
  fs.appendFileSync(files.stdout, 'more\n');
  await place.mirrored(job, 'stdout');
  const state = async () => (await place.status(job.jobId).catch(() => undefined))?.jobs[0]?.state;
  await until('the job to be watched again', async () => (await state()) === 'watched');
  for (const one of [holding, beside]) {
    expect(one.end).toBeUndefined();
    one.signal('SIGINT');
    expect(await one.ended).toMatchObject({ code: 130 });
  }
});
