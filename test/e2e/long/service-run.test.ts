/** What the daemon owes its host: a log that nothing can stop. */
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, type TestContext } from 'vitest';
import { requestOf, submitQuietJob } from '../../support/e2e-job.ts';
import { Place } from '../../support/e2e-place.ts';

const PROGRAM = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url));

describe('a log that cannot be written', () => {
  /** Starts the agent with this standard error, on a job that can be let grow. */
  async function start(context: TestContext, place: Place, stderr: number | 'pipe') {
    const { sandbox, job, task } = await submitQuietJob(place);
    place.configure(sandbox, { watch: [requestOf(job)] });
    const agent = spawn(process.execPath, [PROGRAM, 'run', '-c', place.configFile], {
      stdio: ['ignore', 'ignore', stderr],
    });
    context.onTestFinished(() => void agent.kill('SIGKILL'));
    const grows = async (text: string) => {
      fs.appendFileSync(task.files.stdout, text);
      await place.mirrored(job, 'stdout');
    };
    const stops = async () => {
      const startedAt = performance.now();
      const ended = new Promise((resolve) => agent.once('exit', (code) => resolve(code)));
      agent.kill('SIGTERM');
      expect(await ended).toBe(0);
      expect(performance.now() - startedAt).toBeLessThan(5_000);
    };
    return { agent, grows, stops };
  }

  it.concurrent('the agent continues and stops in time although its log is a full pipe without a reader', async (context) => {
    const place = Place.make(context);
    const fifo = path.join(place.directory, 'journal');
    execFileSync('mkfifo', [fifo]);
    const full = fs.openSync(fifo, fs.constants.O_RDWR | fs.constants.O_NONBLOCK);
    expect(() => {
      for (;;) fs.writeSync(full, 'x'.repeat(4_096));
    }).toThrow('EAGAIN');
    const { grows, stops } = await start(context, place, full);
    await grows('one\n');
    await grows('two\n');
    await stops();
    fs.closeSync(full);
  });
});
