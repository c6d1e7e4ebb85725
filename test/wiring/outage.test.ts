/** What the whole daemon says of a service that does not answer, without a job that asks for it. */
import { once } from 'node:events';
import fs from 'node:fs';
import net, { type AddressInfo } from 'node:net';
import path from 'node:path';
import { expect, type TestContext, test, vi } from 'vitest';
import { freePort } from '../../simulator/free-port.ts';
import { Agent } from '../../src/agent/loop/agent.ts';
import { Reload } from '../../src/daemon/reload.ts';
import { outageIn } from '../../src/store/outage.ts';
import { systemClock } from '../../src/system/clock.ts';
import { requestOf } from '../support/e2e-job.ts';
import { Place, type Sections } from '../support/e2e-place.ts';
import { until } from '../support/e2e-until.ts';
import { Relay } from '../support/fleet-relay.ts';
import { runDaemon } from './whole-daemon.ts';

/** A configuration for a service there, whose password no service has. */
function configureAt(place: Place, baseUrl: string, sections: Sections = {}, username = 'alice'): string {
  const passwordFile = path.join(place.directory, 'wrong');
  fs.writeFileSync(passwordFile, 'x\n', { mode: 0o600 });
  place.configure({ baseUrl, username, passwordFile }, sections);
  return passwordFile;
}

/** The address of a server that answers nothing. */
async function silentService(context: TestContext): Promise<string> {
  const silent = net.createServer().listen(0, '127.0.0.1');
  context.onTestFinished(() => void silent.close());
  await once(silent, 'listening');
  return `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
}

test('a service that is away at the start is named before the agent is ready, and its return is noticed', async (context) => {
  const place = Place.make(context);
  const port = await freePort();
  const passwordFile = configureAt(place, `http://127.0.0.1:${port}`);
  const turns = vi.spyOn(Agent.prototype, 'onTurn');
  context.onTestFinished(() => turns.mockRestore());
  const { said, lines, end } = await runDaemon(place, { watchdogMs: 400 });
  const message = expect.stringMatching(/^the service cannot be reached: .*connection refused/);
  expect(outageIn(place.state)).toMatchObject({ code: 'unreachable', message });
  expect(said.find((one) => 'READY' in one)).toMatchObject({
    STATUS: expect.stringMatching(/^the service cannot be reached since/),
  });
  // Four times as often as systemd wants it.
  expect(turns.mock.calls.map(([everyMs]) => everyMs)).toEqual([100]);
  const sandbox = await place.startSandbox(port);
  fs.copyFileSync(sandbox.passwordFile, passwordFile);
  await until('its return', async () => outageIn(place.state) === undefined);
  await until('the watchdog to be fed with it', async () => said.at(-1)?.['STATUS'] === 'following 0 jobs');
  expect(said.at(-1)).toMatchObject({ WATCHDOG: '1' });
  // An unchanged configuration is not taken anew, until that is asked for. Then no sign-in is waited for.
  expect(turns).toHaveBeenCalledTimes(1);
  process.emit('SIGHUP', 'SIGHUP');
  await until('the agent to be ready again', () => said.filter((one) => 'READY' in one).length === 2);
  expect(turns).toHaveBeenCalledTimes(2);
  expect(lines.filter((line) => line.includes('"msg":"signed in"'))).toHaveLength(1);
  const reads = vi.spyOn(Reload.prototype, 'close');
  context.onTestFinished(() => reads.mockRestore());
  await end();
  expect(reads).toHaveBeenCalledOnce();
  expect(said.at(-1)).toMatchObject({ STOPPING: '1' });
});

test('a refused sign-in is notified of after a minute, its jobs show when the next one is, and a new password is tried at once', async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const sections = {
    watch: [requestOf(await sandbox.submit({ tasks: [{}] }))],
    notify: [{ on: ['agent-degraded'], command: ['/no/such/program'] }],
    // No poll that failed comes again by itself within the time of a test.
    poll: { minIntervalSeconds: 600, maxIntervalSeconds: 3600 },
  };
  const passwordFile = configureAt(place, sandbox.baseUrl, sections, sandbox.username);
  let aheadMs = 0;
  const now = performance.now.bind(performance);
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + aheadMs);
  context.onTestFinished(() => clock.mockRestore());
  const { store } = await runDaemon(place);
  const error = () => store.jobs.all()[0]?.error;
  await until('the time of the next sign-in', () => error()?.message.includes('; next sign-in within '));
  expect(error()?.code).toBe('sign-in-refused');
  const degraded = () => store.outbox.all().filter(({ event }) => event.type === 'agent-degraded');
  const hurry = setInterval(() => (aheadMs += 1_000), 50);
  context.onTestFinished(() => clearInterval(hurry));
  await until('the notification', () => degraded().length === 1, 1_000_000);
  clearInterval(hurry);
  expect(degraded()[0]?.event.reason).toBe('the service refuses the sign-in');
  fs.copyFileSync(sandbox.passwordFile, passwordFile);
  await until('a sign-in', () => error() === null);
});

test('a first sign-in that lasts longer than systemd waits goes on, and its failure counts', async (context) => {
  const place = Place.make(context);
  configureAt(place, await silentService(context), { service: { timeoutSeconds: 1 } });
  const timer = systemClock.timer.bind(systemClock);
  const shortened = vi.spyOn(systemClock, 'timer');
  shortened.mockImplementation((delayMs, callback) => timer(delayMs === 30_000 ? 10 : delayMs, callback));
  context.onTestFinished(() => shortened.mockRestore());
  const { said } = await runDaemon(place);
  expect([said.at(-1)?.['READY'], outageIn(place.state)]).toEqual(['1', undefined]);
  await until('the failure', () => outageIn(place.state)?.code === 'timeout');
});

test('the return of a service is noticed without jobs, where its session outlived them', async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const relay = await Relay.start(Number(new URL(sandbox.baseUrl).port));
  context.onTestFinished(() => relay.close());
  const job = await sandbox.submit({ tasks: [{}] });
  place.configure({ ...sandbox, baseUrl: `http://127.0.0.1:${relay.port}` }, { watch: [requestOf(job)] });
  const { store, said } = await runDaemon(place, { watchdogMs: 400 });
  await until('a poll', () => store.jobs.all().some(({ polledAt, error }) => polledAt !== null && error === null));
  relay.cut();
  await until('the failure', () => outageIn(place.state) !== undefined);
  for (const { jobId } of store.jobs.all()) store.transaction(() => store.jobs.unwatch(jobId, 'ended'));
  store.wake();
  await until('no job to be left', () => said.at(-1)?.['STATUS']?.includes('following 0 jobs'));
  relay.open();
  await until('the return', () => outageIn(place.state) === undefined);
});

test('a stop ends the first sign-in, which is no failure, and the agent never counts as ready', async (context) => {
  const place = Place.make(context);
  const stop = new AbortController();
  const address = await silentService(context);
  configureAt(place, address);
  const { lines, said, end } = await runDaemon(place, {
    stop,
    onLine: (line) => line.includes('reload refused') && stop.abort(),
    before: ({ directory }) => {
      // What stands in the place of a file of the state stops no agent.
      fs.mkdirSync(path.join(directory, 'outage.json'));
      configureAt(place, address, { nonsense: {} });
    },
  });
  await end();
  const read = lines.map((line) => JSON.parse(line));
  const failures = read.filter(({ level }) => level === 'error' || level === 'warn');
  expect(failures).toMatchObject([{ msg: 'reload refused, old configuration kept' }]);
  const err = expect.stringContaining('outage.json');
  expect(read[0]).toMatchObject({ level: 'debug', msg: 'outage not stored', err });
  expect(lines.at(-1)).toContain('"msg":"stopped"');
  expect(said).toEqual([{ STOPPING: '1', STATUS: 'stopping' }]);
});
