/** What the daemon owes its host: a log that nothing can stop. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { quietJob, requestOf } from '../../support/e2e-job.ts';
import { PROGRAM } from '../../support/e2e-program.ts';

it('the agent continues and stops in time although its log is a full pipe without a reader', async (context) => {
  const { place, sandbox, job, task } = await quietJob(context);
  place.configure(sandbox, { watch: [requestOf(job)] });
  const fifo = path.join(place.directory, 'journal');
  execFileSync('mkfifo', [fifo]);
  const full = fs.openSync(fifo, fs.constants.O_RDWR | fs.constants.O_NONBLOCK);
  context.onTestFinished(() => fs.closeSync(full));
  expect(() => {
    for (;;) fs.writeSync(full, 'x'.repeat(4_096));
  }).toThrow('EAGAIN');
  const args = [PROGRAM, 'run', '-c', place.configFile];
  const agent = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', full] });
  context.onTestFinished(() => void agent.kill('SIGKILL'));
  for (const text of ['one\n', 'two\n']) {
    fs.appendFileSync(task.files.stdout, text);
    await place.mirrored(job, 'stdout');
  }
  const ended = once(agent, 'exit');
  const startedAt = performance.now();
  agent.kill('SIGTERM');
  expect(await ended).toEqual([0, null]);
  expect(performance.now() - startedAt).toBeLessThan(5_000);
});
