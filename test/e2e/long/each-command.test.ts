import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { taskOf } from '../../support/e2e-job.ts';
import { Place, readIfThere, resultsOf } from '../../support/e2e-place.ts';
import { until } from '../../support/e2e-until.ts';

/** Not UTF-8 in the middle; whole at its end, for the agent gives a character that is cut there time to come. */
const HARD = Buffer.concat([
  Buffer.from('Příliš žluťoučký \u001b[1mkůň\u001b[0m\r\n\0'),
  Buffer.from([0xff, 0xc3]),
  Buffer.from(' progress 50 %\r'),
]);

it.concurrent('every command does its work while the agent runs', async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  place.configure(sandbox);
  const job = await sandbox.submit({ tasks: [{}] });
  const { taskId, files, directory, specificationId } = taskOf(job);
  const agent = await place.run();
  expect(fs.existsSync(path.join(place.mirror, job.jobId))).toBe(false);

  // watch: the mirrors are there when it returns, and their paths alone are on the standard output.
  const watched = await place.agent('watch', job.jobId, '--task', taskId);
  expect(watched).toMatchObject({ code: 0 });
  const mirrors = ['stdout', 'stderr', 'log', 'progress'].map((file) => place.mirrorOf(job.jobId, taskId, file));
  expect(watched.stdout.trim().split('\n')).toEqual(mirrors);
  for (const mirror of mirrors) expect(fs.statSync(mirror).size).toBe(0);
  expect(watched.stderr).toContain('the running agent follows it');
  const one = await place.agent('watch', job.jobId, '--task', taskId, '--file', 'stderr');
  expect(one.stdout, 'only what was asked for').toBe(`${mirrors[1]}\n`);

  // What the job writes appears, results too, also those with names that need care.
  for (const file of ['stdout', 'stderr', 'progress'] as const) fs.appendFileSync(files[file], HARD);
  const results = ['out.bin', 'a b, c/žluť.dat', 'empty'];
  fs.mkdirSync(path.join(directory, 'a b, c'));
  for (const [index, name] of results.entries())
    fs.writeFileSync(path.join(directory, name), HARD.subarray(index * 99));
  for (const file of ['stdout', 'stderr', 'progress'] as const) await place.mirrored(job, file);
  for (const name of results) {
    const copy = path.join(resultsOf(place, job.jobId), specificationId, name);
    await until(`the result ${name}`, () => readIfThere(copy)?.equals(fs.readFileSync(path.join(directory, name))));
  }

  const synced = await place.agent('sync', job.jobId);
  expect(synced).toMatchObject({ code: 0, stderr: '' });
  expect(synced.stdout).toContain('4 live files, 4 verified');
  const verified = await place.agent('verify', job.jobId);
  expect(verified).toMatchObject({ code: 0, stderr: '' });
  expect(verified.stdout.match(/^equal /gm)?.length).toBeGreaterThanOrEqual(4 + results.length);
  expect(verified.stdout).toMatch(/\nall \d+ files equal \([\d.]+ \w+\)\nnot compared: /);
  const shown = await place.agent('status');
  expect(shown.stdout).toContain(`an agent is running (pid ${agent.pid})`);
  expect(shown.stdout).toContain(job.jobId);
  expect((await place.agent('status', job.jobId)).stdout).toContain('verified');

  // unwatch brings what was written last, and leaves the files.
  fs.appendFileSync(files.stdout, 'the last words');
  const unwatched = await place.agent('unwatch', job.jobId);
  expect(unwatched).toMatchObject({ code: 0, stderr: '' });
  expect(unwatched.stdout).toContain(`its files stay in ${place.mirror}/${job.jobId}`);
  expect(fs.readFileSync(place.mirrorOf(job.jobId, taskId, 'stdout')).equals(fs.readFileSync(files.stdout))).toBe(true);
  expect(await place.status()).toMatchObject({ agent: { running: true, pid: agent.pid }, jobs: [] });
  expect((await place.agent('status', job.jobId)).stdout).toContain(`job ${job.jobId}: ended`);

  // Watched again, it goes on where it stood.
  expect(await place.agent('watch', job.jobId, '--task', taskId)).toMatchObject({ code: 0 });
  fs.appendFileSync(files.stdout, ', and some more');
  await place.mirrored(job, 'stdout');
  expect(await place.agent('unwatch', job.jobId, '--now')).toMatchObject({ code: 0 });
  expect((await place.status()).jobs).toEqual([]);
  agent.signal('SIGTERM');
  expect(await agent.ended).toMatchObject({ code: 0, signal: null, stdout: '' });
});
