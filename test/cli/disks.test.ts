/** What commands print about a disk that takes no more: read-only, full, gone, or of another user. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished, type TestContext, vi } from 'vitest';
import { checkDirectory } from '../../src/cli/check/machine.ts';
import { run } from '../../src/cli/commands/run.ts';
import { status } from '../../src/cli/commands/status.ts';
import { makeDirectories, openOwnStore } from '../../src/daemon/own-state.ts';
import { asJobtailError } from '../../src/errors.ts';
import type { JobId } from '../../src/job.ts';
import { openDatabase } from '../../src/store/database.ts';
import { restConfig } from '../config/files.ts';
import { SmallDisk } from '../support/e2e-mount.ts';
import { until } from '../support/e2e-until.ts';
import { SILENT } from '../support/errors.ts';
import { datagramsAreMissing, notifySocket } from '../support/service-notify-socket.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';
import { captured } from './own-state.ts';

const JOB = '501' as JobId;

/** Mirrors and state on a small disk, and a job in the state, which an agent served. */
async function diskWithState(context: TestContext, kib = 4096) {
  const home = temporaryDirectory();
  const disk = SmallDisk.mount(context, path.join(home, 'disk'), kib);
  const mirror = path.join(disk.directory, 'mirror');
  const state = path.join(disk.directory, 'state');
  const sections = { mirror: { directory: mirror }, state: { directory: state }, view: false };
  const { file, config } = await restConfig(sections, home);
  const served = () => {
    const owned = openOwnStore(config, SILENT);
    const usual = { tasks: null, files: [], results: true, settleAfterMs: null, source: 'command' } as const;
    owned.store.transaction(() => owned.store.jobs.watch({ jobId: JOB, ...usual }, Date.now()));
    return owned;
  };
  return { disk, config, file, state, mirror, served };
}

async function statusOf(file: string, jobIds: readonly JobId[] = [], json = false): Promise<string> {
  const printed = captured();
  await status(jobIds, { config: file, json });
  return printed();
}

it.for(['read-only, and its agent stopped', 'read-only, and its agent killed', 'full', 'full, and its agent stopped'])(
  'status shows the last state on a disk that is %s',
  async (how, context) => {
    const { disk, file, state, mirror, served } = await diskWithState(context);
    const isFull = how.startsWith('full');
    const owned = served();
    // With the log of the database, as a kill leaves it.
    if (!isFull) fs.cpSync(state, `${state}-copy`, { recursive: true });
    if (isFull) disk.fill();
    if (how === 'full') context.onTestFinished(owned.close);
    else owned.close();
    if (how.endsWith('killed')) {
      fs.rmSync(state, { recursive: true });
      fs.renameSync(`${state}-copy`, state);
    }
    if (!isFull) await disk.makeReadOnly();
    const reason = isFull ? 'no space left on device' : 'read-only file system';
    for (const page of [await statusOf(file), await statusOf(file, [JOB])]) {
      expect(page).toMatch(/501.*watched/);
      expect(page).toContain(`mirror.directory ${mirror}: ${reason}`);
      expect(page).toContain(`state.directory ${state}: ${reason}`);
      if (isFull) expect(page).toContain('free some space');
    }
    const error = { code: isFull ? 'disk-full' : 'permission' };
    expect(JSON.parse(await statusOf(file, [], true))).toMatchObject({
      jobs: [{ jobId: JOB }],
      disks: [{ key: 'mirror.directory', error }, { error }],
    });
  },
);

it('a state of another user is named as such, with who it belongs to', (context) => {
  if (process.geteuid?.() !== 0 || process.seteuid === undefined) context.skip('becoming another user needs root');
  const home = temporaryDirectory('/tmp');
  fs.chmodSync(home, 0o755);
  const directory = path.join(home, 'state');
  fs.mkdirSync(directory, { mode: 0o700 });
  try {
    process.seteuid?.(65_534);
    const open = () => openDatabase({ file: path.join(directory, 'agent.db'), owner: false, now: () => 0 });
    expect(open).toThrow(/permission denied.*belongs to the user (root|0), this is (nobody|65534)/);
    expect(open).toThrow(expect.objectContaining({ hint: expect.stringMatching(/^run it as the user (root|0),/) }));
  } finally {
    process.seteuid?.(0);
  }
});

it('a file system that does not answer is named, and keeps status waiting for moments only', async (context) => {
  const { file, state, served } = await diskWithState(context);
  const owned = served();
  const { stat } = fs.promises;
  let answer = () => {};
  const server = new Promise<void>((resolve) => (answer = resolve));
  const hanging = vi.spyOn(fs.promises, 'stat').mockImplementation((async (at: fs.PathLike) => {
    if (at === state) await server;
    return await stat(at);
  }) as typeof stat);
  const exit = vi.spyOn(process, 'exit').mockImplementation((() => {}) as never);
  context.onTestFinished(() => [hanging, exit].forEach((spy) => void spy.mockRestore()));
  const page = await statusOf(file);
  expect(page).toMatch(/501.*watched/);
  expect(page).toContain(`state.directory ${state}: its file system does not answer`);
  expect(exit, 'Node.js would wait for the call').toHaveBeenCalledOnce();
  answer();
  expect(await statusOf(file)).not.toContain('does not answer');
  owned.close();
  expect(exit, 'nothing waits any more').toHaveBeenCalledOnce();
});

it('check and run name a read-only disk, whoever asks and whether the directory is there', async (context) => {
  const { disk, config } = await diskWithState(context);
  await disk.makeReadOnly();
  const failed = await checkDirectory(config, 'mirror').catch(asJobtailError);
  expect(failed).toMatchObject({ message: expect.stringContaining('read-only file system') });
  expect(failed).not.toMatchObject({ hint: expect.stringContaining('as the user') });
  expect(() => makeDirectories(config)).toThrow(/mirror.directory .* cannot be used: read-only file system/);
});

it('run waits for room for its state, asks systemd for more time meanwhile, and begins anew where that was removed', async (context) => {
  if (datagramsAreMissing()) context.skip('the module unix-dgram is missing');
  const { disk, file, state } = await diskWithState(context);
  const socket = notifySocket(context);
  vi.stubEnv('NOTIFY_SOCKET', socket.path);
  vi.spyOn(process, 'chdir').mockImplementation(() => {});
  const stderr = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  const exit = vi.spyOn(process, 'exit').mockImplementation((() => {}) as never);
  onTestFinished(() => [vi.restoreAllMocks(), vi.unstubAllEnvs()].forEach(() => {}));
  const listeners = process.listenerCount('SIGHUP');
  disk.fill();
  const running = run({ config: file });
  const isWait = ({ STATUS }: { STATUS?: string }) => STATUS?.includes('disk space') === true;
  const message = await until('its wait', () => socket.messages.find(isWait));
  expect(message).toMatchObject({ EXTEND_TIMEOUT_USEC: '20000000', WATCHDOG: '1' });
  await until('another attempt', () => socket.messages.filter(isWait).length > 1);
  const lines = stderr.mock.calls.map(String).filter((text) => text.includes('waiting for disk space'));
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    ...{ level: 'error', scope: 'the state', code: 'disk-full' },
    err: expect.stringContaining('no space left on device'),
    hint: expect.stringContaining('free some space'),
  });
  fs.rmSync(`${disk.directory}/ballast`);
  const begun = (times: number) =>
    until('the agent to begin', () => socket.messages.filter(({ READY }) => READY === '1')[times - 1]);
  await begun(1);
  // Anew with the configuration in force, which is another one than at the start.
  fs.writeFileSync(file, JSON.stringify({ ...JSON.parse(fs.readFileSync(file, 'utf8')), watch: [{ job: 501 }] }));
  await begun(2);
  for (const name of ['', '-wal', '-shm']) fs.rmSync(path.join(state, `agent.db${name}`));
  expect(await begun(3)).toMatchObject({ STATUS: expect.stringContaining('following 1 job') });
  expect(stderr.mock.calls.join('')).toContain('state directory replaced, creating it again');
  process.listeners('SIGTERM').at(-1)?.('SIGTERM');
  await running;
  expect(process.listenerCount('SIGHUP')).toBe(listeners);
  await until('its end', () => exit.mock.calls.length === 1);
});

it('a disk with room for few bytes and few files is named in two warnings', async () => {
  const directory = temporaryDirectory();
  const real = fs.statfsSync(directory);
  const disk = vi
    .spyOn(fs.promises, 'statfs')
    .mockResolvedValue(Object.assign(real, { bavail: 1, files: 1000, ffree: 3 }));
  onTestFinished(() => disk.mockRestore());
  const found = await checkDirectory({ mirror: { directory }, state: { directory } }, 'mirror');
  const low = [expect.stringMatching(/^low disk space: \d.* free$/), 'room for 3 more files only (df -i)'];
  expect(found.flatMap(({ mark, text }) => (mark === 'warning' ? text : []))).toEqual(low);
});
