/** What the daemon owes its host: systemd's protocol, metrics, a log that nothing can stop. */
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, type TestContext } from 'vitest';
import { requestOf, submitQuietJob } from '../../support/e2e-job.ts';
import { Place } from '../../support/e2e-place.ts';
import { Program } from '../../support/e2e-program.ts';
import { until } from '../../support/e2e-until.ts';
import { needsThat } from '../../support/needs.ts';
import { datagramsAreMissing, notifySocket } from '../../support/service-notify-socket.ts';

const PROGRAM = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url));
const HANG = new URL('./service-hang.mjs', import.meta.url).href;
const WITH_DATAGRAMS = needsThat(!datagramsAreMissing(), 'sd_notify: the optional module unix-dgram is not installed');

/** `agent run` with more in its environment. */
function runWith(place: Place, env: Readonly<Record<string, string>>, context: TestContext): Program {
  const agent = new Program(['run', '-c', place.configFile], { cwd: place.directory, env });
  context.onTestFinished(() => void agent.signal('SIGKILL'));
  return agent;
}

describe('what systemd is reported', WITH_DATAGRAMS, () => {
  it.concurrent('from the start to the stop', async (context) => {
    const place = Place.make(context);
    const socket = notifySocket(context);
    const { sandbox, job, task } = await submitQuietJob(place);
    const watch = [requestOf(job)];
    place.configure(sandbox, { watch });
    // The first sign-in is answered late: READY waits for it.
    await sandbox.fault({ kind: 'delay', ms: 700, operation: 'SignIn', times: 1 });
    const agent = runWith(place, { NOTIFY_SOCKET: socket.path, WATCHDOG_USEC: '2000000' }, context);
    await until('READY', () => socket.messages.some(({ READY }) => READY === '1'));
    expect(agent.log.map(({ msg }) => msg)).toContain('signed in');
    expect(socket.messages[0]).toEqual({ STATUS: 'reading the configuration and the state' });

    fs.appendFileSync(task.files.stdout, 'hello\n');
    const status = (text: RegExp) =>
      until(`the status ${text}`, () => socket.messages.some(({ STATUS = '' }) => text.test(STATUS)));
    await status(/^following 1 job, last growth \d+ s ago$/);
    const fed = () => socket.messages.filter(({ WATCHDOG }) => WATCHDOG === '1').length;
    const before = fed();
    await until('the watchdog to be fed', () => fed() > before + 2);

    // A reload is announced and ended.
    const reported = socket.messages.length;
    place.configure(sandbox, { watch, poll: { minIntervalSeconds: 0.2, maxIntervalSeconds: 0.5 } });
    await until('the reload', () => {
      const since = socket.messages.slice(reported);
      const begun = since.findIndex(({ RELOADING }) => RELOADING === '1');
      return begun >= 0 && since.slice(begun).some(({ READY }) => READY === '1');
    });
    expect(socket.messages.find(({ RELOADING }) => RELOADING === '1')).toMatchObject({
      MONOTONIC_USEC: expect.stringMatching(/^\d+$/),
    });

    await sandbox.cut();
    await status(/^the service cannot be reached since \d+ s, following 1 job/);
    agent.signal('SIGTERM');
    expect(await agent.ended).toMatchObject({ code: 0, signal: null });
    await until('STOPPING', () => socket.messages.at(-1)?.['STOPPING'] === '1');
  });

  it.concurrent('nothing, once the scheduler hangs: the watchdog starves', async (context) => {
    const place = Place.make(context);
    const socket = notifySocket(context);
    const sandbox = await place.startSandbox();
    const hang = path.join(place.directory, 'hang');
    place.configure(sandbox, { metrics: { listen: '127.0.0.1:0' } });
    const agent = runWith(
      place,
      {
        NOTIFY_SOCKET: socket.path,
        WATCHDOG_USEC: '400000',
        NODE_OPTIONS: `--import=${HANG}`,
        HANG_FILE: hang,
      },
      context,
    );
    const fed = () => socket.messages.filter(({ WATCHDOG }) => WATCHDOG === '1').length;
    await until('the watchdog to be fed', () => fed() > 3);
    fs.writeFileSync(hang, '');
    await sleep(500);
    const before = fed();
    await sleep(2_000);
    expect(fed()).toBe(before);
    // The process itself is well: its event loop still answers.
    const { port } = await agent.logs('metrics listening');
    const scrape = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    expect(Number(/^jobtail_scheduler_turn_age_seconds (.*)$/m.exec(scrape)?.[1])).toBeGreaterThan(2);
  });
});

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
