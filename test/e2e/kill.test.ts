/**
 * The promise, on the real program: killed with SIGKILL at any moment while files grow, no byte of a mirror is lost,
 * repeated or wrong. Kills at the steps of a new generation are simulated: test/agent/live/killed.test.ts, test/virtual.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, it, type TestContext } from 'vitest';
import type { JobDescription } from '../../simulator/control.ts';
import { LIVE_FILE_NAMES } from '../../src/job.ts';
import { Place, readIfThere } from '../support/e2e-place.ts';
import { until } from '../support/e2e-until.ts';
import { Chance } from '../virtual/chance.ts';

const KILLS = Number(process.env['JOBTAIL_KILLS'] ?? (process.env['JOBTAIL_LONG'] === '1' ? 4 : 1));
/** JOBTAIL_SEED repeats a run as far as kills can be repeated. */
const SEED = Number(process.env['JOBTAIL_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
/** More kills than these take another job, so that its files stay of a size. */
const KILLS_A_JOB = 10;

/** What one job goes through: kills, and the seed of its numbers. */
const KILL_ROUNDS = Array.from({ length: Math.ceil(KILLS / KILLS_A_JOB) }, (_, index) => ({
  seed: SEED + index,
  kills: Math.min(KILLS_A_JOB, KILLS - index * KILLS_A_JOB),
}));

/** The mirrors, the files of the cluster, the state and each agent's log outlive a test that failed. */
function keepEvidenceIfFailed(place: Place, { task, onTestFinished }: TestContext, seed: number): void {
  // It runs before the place is cleared, which was asked for earlier.
  onTestFinished(() => {
    if (task.result?.state !== 'fail') return;
    const kept = fs.mkdtempSync(path.join(os.tmpdir(), `jobtail-kill-${seed}-`));
    fs.cpSync(place.directory, kept, { recursive: true });
    for (const [index, { args, stdout, stderr }] of place.programs.entries())
      fs.writeFileSync(path.join(kept, `${index}-${args[0]}.log`), `${args.join(' ')}\n${stdout}${stderr}`);
    process.stderr.write(`everything is kept in ${kept}\n`);
  });
}

const WRITER = fileURLToPath(new URL('../support/e2e-writer.mjs', import.meta.url));

it.for(KILL_ROUNDS)('survives $kills kills while it grows (JOBTAIL_SEED=$seed)', async (round, context) => {
  const place = Place.make(context);
  const { job, sandbox } = await startJob(place, round.seed);
  const mirrors = mirrorsOf(place, job);
  keepEvidenceIfFailed(place, context, round.seed);
  const { next: random } = new Chance(round.seed, 'kills');

  let [kills, growing, uncommitted] = [0, 0, 0];
  while (growing < round.kills) {
    kills += 1;
    expect(kills, 'kills for so few that came while the mirrors grew').toBeLessThan(10 + 6 * round.kills);
    const before = lengthOf(mirrors);
    await liveFor(place, random, () => lengthOf(mirrors) > before);
    const after = expectPrefixes(mirrors, `kill ${kills}`);
    if (after > before) growing += 1;
    if (kills % 5 === 0) uncommitted += after - (await committedOf(place, mirrors));
  }

  for (const { directory } of job.tasks) fs.writeFileSync(path.join(directory, 'stop'), '');
  await sandbox.finished(job.jobId);
  await expectEqualInTheEnd(place, job, mirrors);
  const found = `${growing} while growing, ${lengthOf(mirrors)} bytes in the end, ${uncommitted} found ahead of the state`;
  process.stdout.write(`JOBTAIL_SEED=${round.seed}: ${kills} kills, ${found}\n`);
});

interface MirrorPair {
  readonly name: string;
  readonly mirror: string;
  readonly real: string;
}

/** A job of two tasks that write; the agent, which does not run yet, is reported to follow it. */
async function startJob(place: Place, seed: number) {
  const sandbox = await place.startSandbox();
  place.configure(sandbox, { poll: { minIntervalSeconds: 0.05, maxIntervalSeconds: 0.2 } });
  const command = (task: number) => [process.execPath, WRITER, String(seed * 2 + task)];
  const job = await sandbox.submit({ tasks: [{ command: command(0) }, { command: command(1) }] });
  const tasks = job.tasks.flatMap(({ taskId }) => ['--task', taskId]);
  const watched = await place.agent('watch', job.jobId, ...tasks);
  expect(watched).toMatchObject({ code: 0 });
  return { sandbox, job };
}

function mirrorsOf(place: Place, job: JobDescription): MirrorPair[] {
  return job.tasks.flatMap(({ taskId, files }) =>
    LIVE_FILE_NAMES.map((file) => ({
      name: `${taskId}/${file}`,
      mirror: place.mirrorOf(job.jobId, taskId, file),
      real: files[file],
    })),
  );
}

/**
 * Starts the agent and kills it: soon after the mirrors grew, when nothing may be committed yet; soon after a poll was
 * committed, in the middle of the next ones; or at any moment, also while it starts.
 */
async function liveFor(place: Place, random: () => number, hasGrown: () => boolean): Promise<void> {
  const program = place.start(['run']);
  const polled = () => program.log.some(({ msg }) => msg === 'grown');
  const way = random();
  if (way < 0.3) await sleep(random() * 1_500);
  else await until('the mirrors to grow', () => program.end !== undefined || (way < 0.6 ? hasGrown() : polled()));
  if (way >= 0.3) await sleep(random() * 400);
  expect(await program.kill(), 'the agent runs until it is killed').toMatchObject({ code: null, signal: 'SIGKILL' });
}

const lengthOf = (mirrors: readonly MirrorPair[]) =>
  mirrors.reduce((sum, { mirror }) => sum + fs.statSync(mirror).size, 0);

/** Every mirror is a prefix of its file; the bytes of all mirrors. */
function expectPrefixes(mirrors: readonly MirrorPair[], when: string): number {
  let bytes = 0;
  for (const { name, mirror, real } of mirrors) {
    // In this order: the file may grow in between.
    const there = fs.readFileSync(mirror);
    const beginning = (readIfThere(real) ?? Buffer.alloc(0)).subarray(0, there.length);
    if (!there.equals(beginning)) expect.fail(`${when}: the mirror of ${differenceOf(name, mirror, real)}`);
    bytes += there.length;
  }
  return bytes;
}

/** Where a mirror differs from its file; the rest is in what is kept. */
function differenceOf(name: string, mirror: string, real: string): string {
  const [there, wanted] = [fs.readFileSync(mirror), readIfThere(real) ?? Buffer.alloc(0)];
  const at = there.findIndex((byte, index) => byte !== wanted[index]);
  return `${name} differs from byte ${at} on (${there.length} bytes here, ${wanted.length} in the file)`;
}

/** The committed bytes of all mirrors, none of which may be promised beyond what is there. */
async function committedOf(place: Place, mirrors: readonly MirrorPair[]): Promise<number> {
  const { agent, jobs } = await place.status();
  expect(agent).toEqual({ running: false, pid: null });
  const files = jobs.flatMap((job) => job.files);
  expect(files).toHaveLength(mirrors.length);
  for (const { path: mirror, bytes } of files) expect(fs.statSync(mirror).size).toBeGreaterThanOrEqual(bytes);
  return files.reduce((sum, { bytes }) => sum + bytes, 0);
}

async function expectEqualInTheEnd(place: Place, job: JobDescription, mirrors: readonly MirrorPair[]): Promise<void> {
  const program = await place.run();
  const unwatched = await place.agent('unwatch', job.jobId);
  expect(unwatched).toMatchObject({ code: 0, stderr: '' });
  expect(unwatched.stdout).toContain(`${mirrors.length} live files, ${mirrors.length} verified`);

  for (const { name, mirror, real } of mirrors) {
    if (!fs.readFileSync(mirror).equals(fs.readFileSync(real)))
      expect.fail(`in the end: the mirror of ${differenceOf(name, mirror, real)}`);
  }
  const [shown] = (await place.status(job.jobId)).jobs;
  expect(shown?.files.map(({ generation }) => generation)).toEqual(mirrors.map(() => 1));
  for (const { taskId } of job.tasks) {
    const names = fs.readdirSync(path.join(place.mirror, job.jobId, 'live', taskId));
    expect(names.sort()).toEqual(LIVE_FILE_NAMES.map((file) => `${file}.log`).sort());
  }
  const results = fs.readdirSync(path.join(place.mirror, job.jobId, 'results'), { recursive: true, encoding: 'utf8' });
  expect(results.filter((name) => name.endsWith('.partial'))).toEqual([]);
  await place.verified(job.jobId);

  program.signal('SIGTERM');
  expect(await program.ended).toMatchObject({ code: 0, signal: null });
}
