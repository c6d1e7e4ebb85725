/** Commands that wait in this process: beside an agent, in its place, and for a service that hangs. */
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { status } from '../../src/cli/commands/status.ts';
import { wait } from '../../src/cli/commands/wait.ts';
import { watchEach } from '../../src/cli/commands/watch.ts';
import { withServedState } from '../../src/cli/serve-state.ts';
import { openAsAgent, openOwnStore } from '../../src/daemon/own-state.ts';
import type { JobId, TaskId } from '../../src/job.ts';
import { LinkedAbort } from '../../src/linked-abort.ts';
import { Secrets } from '../../src/redact.ts';
import { lockHolder } from '../../src/store/lock.ts';
import { restConfig } from '../config/files.ts';
import { until } from '../support/e2e-until.ts';
import { SILENT } from '../support/errors.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';
import { captured, ownState, withoutPatience } from './own-state.ts';

const JOB = '501' as JobId;
const TASK = '601' as TaskId;

it('watch of several jobs asks for all at once, and ends although the agent answers nothing', async () => {
  const { file, store } = await ownState();
  captured();
  let passedMs = 0;
  const limits: LinkedAbort[] = [];
  const [now, { within }] = [performance.now.bind(performance), LinkedAbort.prototype];
  vi.spyOn(performance, 'now').mockImplementation(() => now() + passedMs);
  vi.spyOn(LinkedAbort.prototype, 'within').mockImplementation(function (this: LinkedAbort) {
    if (passedMs > 0) return within.call(this, 1);
    limits.push(this);
    return this;
  });
  const jobIds = ['601', '602', '603'] as JobId[];
  const watching = watchEach(jobIds, { config: file, task: [], file: [], results: true, wait: true });
  await until('all to be asked for', () => store.requests.open('service').length === jobIds.length);
  passedMs = 10_000;
  for (const limit of limits) limit.abort();
  await watching;
  expect(jobIds.map((jobId) => store.jobs.get(jobId)?.state)).toEqual(['watched', 'watched', 'watched']);
});

it('status --watch goes on while the state is away for a moment', async () => {
  const { file, config, store } = await ownState();
  const request = { tasks: [TASK], files: [], results: false, settleAfterMs: null, source: 'command' } as const;
  store.transaction(() => store.jobs.watch({ jobId: JOB, ...request }, Date.now()));
  const printed = captured();
  const { isTTY } = process.stdout;
  onTestFinished(() => void Object.assign(process.stdout, { isTTY }));
  process.stdout.isTTY = true;
  const shown = (text: string, from = 0) => until(text, () => printed().includes(text, from));
  const watching = status([JOB], { config: file, watch: true });
  await shown('every second; Ctrl-C ends)');
  const database = path.join(config.state.directory, 'agent.db');
  fs.renameSync(database, `${database}.away`);
  await shown(`there is no state in ${config.state.directory} yet`);
  fs.renameSync(`${database}.away`, database);
  await shown(`job ${JOB}: watched`, printed().length);
  process.emit('SIGINT', 'SIGINT');
  await watching;
});

it('wait asks a service that hangs for the first of its jobs only', async () => {
  const server = net.createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as net.AddressInfo;
  const { file } = await restConfig({ service: { protocol: 'rest', baseUrl: `http://127.0.0.1:${port}` } });
  captured();
  const limits = withoutPatience(1_000);
  onTestFinished(() => void server.close());
  await wait(['501', '502', '503'] as JobId[], { config: file, timeout: 60_000 });
  expect(process.exitCode).toBe(12);
  expect(limits.mock.calls.filter(([ms]) => ms === 10_000)).toHaveLength(1);
});

it('a command that makes calls itself warns of an address without TLS', async () => {
  const { config } = await restConfig({ service: { protocol: 'rest', baseUrl: 'http://middleware.invalid' } });
  const printed = captured();
  const warning = 'http://middleware.invalid is not encrypted: passwords and session codes are sent unencrypted';
  await withServedState(config, async () => {
    await until('the warning', () => printed().includes(warning));
    return () => {};
  });
});

it('a command that is done before its connection fails ends well', async () => {
  const caFile = path.join(temporaryDirectory(), 'ca.pem');
  fs.writeFileSync(caFile, '');
  const service = { protocol: 'rest', baseUrl: 'https://127.0.0.1:9', tls: { caFile } };
  const { config } = await restConfig({ service });
  fs.rmSync(caFile);
  expect(await withServedState(config, async () => () => 'done')).toBe('done');
  const waiting = withServedState(config, async (_, signal) => void (await once(signal, 'abort')) as never);
  await expect(waiting).rejects.toMatchObject({ code: 'config' });
});

it('a command releases the state to an agent that starts, and serves again once that has ended', async () => {
  const { config } = await restConfig();
  captured();
  const { directory } = config.state;
  const servedBy = (role: string) => until(`the ${role} to serve`, () => lockHolder(directory)?.role === role);
  await withServedState(config, async (_, stop) => {
    await servedBy('command');
    const starting = openAsAgent(config, SILENT, { secrets: new Secrets(), stop });
    await servedBy('agent');
    (await starting)?.close();
    await servedBy('command');
    return () => {};
  });
  expect(lockHolder(directory)).toBeUndefined();
});

it('a command waits out two minutes of failures to take over, anew after each time that another process served', async () => {
  const { config } = await restConfig();
  const pid = path.join(config.state.directory, 'agent.pid');
  const [now, unlink, exists] = [performance.now.bind(performance), fs.unlinkSync, fs.existsSync];
  let passedMs = 0;
  let [failures, looks] = [0, 0];
  vi.spyOn(performance, 'now').mockImplementation(() => now() + passedMs);
  vi.spyOn(fs, 'unlinkSync').mockImplementation((file) => {
    if (file === pid) failures += 1;
    unlink(file);
  });
  vi.spyOn(fs, 'existsSync').mockImplementation((file) => {
    looks += 1;
    return exists(file);
  });
  onTestFinished(() => void vi.restoreAllMocks());
  const more = async (count: () => number) => {
    const before = count();
    await until('more of it', () => count() > before + 1);
  };
  let { close } = openOwnStore(config, SILENT);
  const untilStopped = (signal: AbortSignal) =>
    new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  const outcome = withServedState(config, (_, signal) => untilStopped(signal)).then(
    () => 'over',
    (error: unknown) => error,
  );
  let hasEnded = false;
  void outcome.then(() => {
    hasEnded = true;
  });
  for (let times = 0; times < 2; times++) {
    await more(() => looks);
    close();
    fs.mkdirSync(pid);
    await more(() => failures);
    passedMs += 110_000;
    await more(() => failures);
    expect(hasEnded).toBe(false);
    if (times === 1) break;
    fs.rmdirSync(pid);
    ({ close } = openOwnStore(config, SILENT));
  }
  passedMs += 10_000;
  expect(await outcome).toMatchObject({ code: 'local-io', message: expect.stringContaining(pid) });
});
