/**
 * Makes state-of-COMMIT.tar.gz: what an older program left when it was killed in the middle of its work. Run with the
 * built checkout of that commit:
 *   node --import ./scripts/typescript.mjs test/upgrade/record-state.ts CHECKOUT COMMIT
 * The archive has the state directory, the mirrors, and the files of the cluster at that moment.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { Place } from '../support/e2e-place.ts';
import { until } from '../support/e2e-until.ts';
import { configOf, JOBS, remoteFile } from './half-way.ts';

async function record(checkout: string, commit: string): Promise<void> {
  const program = path.join(path.resolve(checkout), 'dist/cli/main.js');
  const line = (number: number) => `${number} Příliš žluťoučký kůň pěl ďábelské ódy ${number * 7919}\n`;
  const lines = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, index) => line(from + index)).join('');

  const cleanUps: (() => unknown)[] = [];
  const place = Place.make({
    onTestFinished: (end) => void cleanUps.push(end as () => unknown),
    onTestFailed: () => {},
  });
  const sandbox = await place.startSandbox();
  const jobs = new Map(await Promise.all(JOBS.map(async (spec) => [spec.jobId, await sandbox.submit(spec)] as const)));
  const write = (jobId: string, file: string, text: string | Buffer) =>
    fs.appendFileSync(remoteFile(jobs.get(jobId), file), text);
  const mirror = (jobId: string, file: string) => place.mirrorOf(jobId, `9${jobId}`, file);
  const mirrorLength = (jobId: string, file: string) =>
    fs.statSync(mirror(jobId, file), { throwIfNoEntry: false })?.size;
  place.writeConfig(configOf(place, sandbox));

  const agent = (...args: string[]) =>
    spawn(process.execPath, [program, ...args, '-c', place.configFile], { stdio: ['ignore', 'inherit', 'ignore'] });
  await once(agent('watch', '702', '--task', '9702', '--no-wait'), 'exit');
  let daemon = agent('run');
  const mirrored = (jobId: string, file: string) =>
    until(
      `${file} of ${jobId}`,
      () => mirrorLength(jobId, file) === fs.statSync(remoteFile(jobs.get(jobId), file)).size,
    );

  // Rewritten once, and growing.
  write('701', 'stdout', lines(0, 200));
  await mirrored('701', 'stdout');
  fs.writeFileSync(remoteFile(jobs.get('701'), 'stdout'), lines(5000, 5100));
  await until('the second generation', () => fs.existsSync(`${mirror('701', 'stdout')}.1`));
  write('701', 'stdout', lines(5100, 6500));
  write('701', 'stderr', lines(0, 100));
  // The file ends within a character.
  write('701', 'log', Buffer.concat([Buffer.from(lines(0, 300)), Buffer.from('Č').subarray(0, 1)]));
  write('701', 'result.txt', 'a result\n');
  write('702', 'stdout', lines(0, 50));
  for (const file of ['stdout', 'stderr']) await mirrored('701', file);
  await mirrored('702', 'stdout');
  await until('the result', () => fs.existsSync(path.join(place.mirror, '701', 'results')));
  await once(agent('unwatch', '702'), 'exit');

  // Killed between the flush and the commit: bytes are in the mirror that are not committed.
  const isHalfWay = () => {
    const db = new Database(path.join(place.state, 'agent.db'), { readonly: true });
    try {
      const row = db.prepare("SELECT position, boot_id FROM live_files WHERE job_id = '701' AND file = 'stderr'").get();
      const { position, boot_id: bootId } = row as { position: number; boot_id: string | null };
      return bootId !== null && (mirrorLength('701', 'stderr') ?? 0) > position;
    } finally {
      db.close();
    }
  };
  for (let attempt = 0, number = 100; attempt < 200; attempt++) {
    for (let step = 0; step < 20; step++, number += 20) {
      write('701', 'stderr', lines(number, number + 20));
      const before = mirrorLength('701', 'stderr') ?? 0;
      while ((mirrorLength('701', 'stderr') ?? 0) === before) await new Promise((resolve) => setImmediate(resolve));
      if (step === 1 + (attempt % 18)) break;
    }
    daemon.kill('SIGKILL');
    await once(daemon, 'exit');
    if (isHalfWay()) break;
    process.stderr.write(`attempt ${attempt}: all was committed\n`);
    daemon = agent('run');
    await mirrored('701', 'stderr');
  }
  if (!isHalfWay()) throw new Error('no kill came at the right moment');

  const cluster = path.join(place.directory, 'remote');
  for (const { jobId: id } of JOBS) {
    for (const file of ['stdout', 'stderr', 'log', 'progress', 'result.txt']) {
      const from = remoteFile(jobs.get(id), file);
      if (!fs.existsSync(from)) continue;
      fs.mkdirSync(path.join(cluster, id), { recursive: true });
      fs.copyFileSync(from, path.join(cluster, id, file));
    }
  }
  const archive = fileURLToPath(new URL(`state-of-${commit}.tar.gz`, import.meta.url));
  execFileSync('tar', ['-czf', archive, '-C', place.directory, 'state', 'mirror', 'remote']);
  process.stdout.write(`${archive}: ${fs.statSync(archive).size} bytes\n`);
  for (const end of cleanUps) await end();
}

const [script, checkout = '', commit = ''] = process.argv.slice(1);
if (script === import.meta.filename) await record(checkout, commit);
