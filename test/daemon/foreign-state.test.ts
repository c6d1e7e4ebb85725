/** Whose a state directory is: of no other user, and of one process at a time. */
import fs from 'node:fs';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { expect, it, type TestContext, vi } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { mirrorIdentity } from '../../src/daemon/fleet.ts';
import { openAsAgent, openOwnStore, withStore } from '../../src/daemon/own-state.ts';
import { requireWatched, SharedState, storeOf, watchIfConfigured, withSharedStore } from '../../src/daemon/state.ts';
import type { JobId } from '../../src/job.ts';
import { Secrets } from '../../src/redact.ts';
import { isAgentWaiting, lockDirectory, lockHolder } from '../../src/store/lock.ts';
import { Store } from '../../src/store/store.ts';
import { MINIMAL } from '../config/files.ts';
import { until } from '../support/e2e-until.ts';
import { failureOf, SILENT } from '../support/errors.ts';
import { needsThat } from '../support/needs.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

async function place(context: TestContext, watch = '') {
  const directory = temporaryDirectory();
  const state = path.join(directory, 'state');
  const file = path.join(directory, 'config.yaml');
  fs.writeFileSync(path.join(directory, 'password'), 'secret', { mode: 0o600 });
  fs.writeFileSync(file, `${MINIMAL}mirror: {directory: ${directory}/mirror}\nstate: {directory: ${state}}\n${watch}`);
  const config = await loadConfig(file);
  const open = () => {
    const owned = openOwnStore(config, SILENT);
    context.onTestFinished(() => owned.close());
  };
  const refusal = async (work: () => unknown) => {
    const { code, message, hint } = await failureOf((async () => work())());
    return `${code}: ${message} (${hint})`.replaceAll(state, 'STATE');
  };
  return { config, state, open, refusal };
}

it('a state directory that others can write, or with other files, is refused and left as it is; others are narrowed', async (context) => {
  const { config, state, open, refusal } = await place(context);
  const modeNow = () => (fs.statSync(state).mode & 0o777).toString(8);
  const made = (mode: number) => {
    fs.mkdirSync(state, { recursive: true });
    fs.chmodSync(state, mode);
  };
  const { signal: stop } = new AbortController();
  const asAgent = () => openAsAgent(config, SILENT, { secrets: new Secrets(), stop });
  const hint =
    'check what is in it; if only the agent uses it, run chmod 700 STATE; else set state.directory to another one';
  for (const mode of [0o777, 0o757]) {
    made(mode);
    const refusals = [await refusal(open), await refusal(asAgent)];
    expect(refusals).toEqual(Array(2).fill(`permission: the state in STATE can be written by other users (${hint})`));
    expect([fs.readdirSync(state), modeNow()]).toEqual([[], mode.toString(8)]);
  }
  // As a user makes it, and as an older version did.
  for (const mode of [0o755, 0o750]) {
    made(mode);
    openOwnStore(config, SILENT).close();
    expect(modeNow()).toBe('700');
  }
  fs.rmSync(state, { recursive: true });
  fs.mkdirSync(path.join(state, 'other'), { recursive: true });
  made(0o755);
  const others = 'set state.directory to a directory of its own; it is created if it is missing';
  expect(await refusal(open)).toBe(
    `permission: state.directory STATE has other files, and other users may enter it (${others})`,
  );
  expect(modeNow()).toBe('755');
});

const AS_ROOT = needsThat(process.getuid?.() === 0, 'a state of another user: it needs root');

it('a state directory of another user is refused, and left as it is', AS_ROOT, async (context) => {
  const { state, open, refusal } = await place(context);
  fs.mkdirSync(state, { mode: 0o700 });
  fs.chownSync(state, 4_711, 4_711);
  const hint = 'run it as that user, or set state.directory to another directory';
  expect(await refusal(open)).toBe(`permission: the state in STATE belongs to the user 4711, not to root (${hint})`);
  expect(fs.readdirSync(state)).toEqual([]);
});

it('a directory that cannot be used is named by its key; a state that cannot be opened stays free, a broken one is set aside', async (context) => {
  const { config, state, open } = await place(context);
  const refused = (key: string, directory: string, code = 'permission') => {
    const hint = expect.stringMatching(`; or set ${key} to another directory$`);
    const message = expect.stringMatching(`^${key} ${directory} cannot be used: `);
    expect(open).toThrow(expect.objectContaining({ code, message, hint }));
  };
  const { directory } = config.mirror;
  for (const [key, at] of [
    ['mirror.directory', directory],
    ['state.directory', state],
    ['state.directory', path.join(state, 'spill')],
  ] as const) {
    fs.rmSync(at, { recursive: true, force: true });
    fs.mkdirSync(path.dirname(at), { recursive: true, mode: 0o700 });
    fs.writeFileSync(at, '');
    refused(key, at);
    fs.rmSync(at);
  }
  const full = Object.assign(new Error('ENOSPC: no space left on device, mkdir'), { code: 'ENOSPC', syscall: 'mkdir' });
  const mkdir = vi.spyOn(fs, 'mkdirSync').mockImplementationOnce(() => {
    throw full;
  });
  context.onTestFinished(() => mkdir.mockRestore());
  refused('mirror.directory', directory, 'disk-full');

  const database = path.join(state, 'agent.db');
  fs.mkdirSync(database);
  for (let times = 0; times < 2; times += 1) expect(open).toThrow(expect.objectContaining({ code: 'store' }));
  fs.rmdirSync(database);
  fs.writeFileSync(database, 'no database '.repeat(1_000));
  const lines: unknown[] = [];
  const log = { ...SILENT, error: (fields: object, message: string) => void lines.push({ ...fields, message }) };
  openOwnStore(config, log).close();
  const aside = expect.stringMatching(`^${database}\\.`);
  const hint = 'offsets are recovered from the mirrors; run agent watch again for its jobs';
  expect(lines).toEqual([{ scope: 'the state', path: aside, hint, message: 'state broken, set aside' }]);
});

it('a state with jobs warns once of the address of another service', async (context) => {
  const { config } = await place(context);
  const lines: unknown[] = [];
  const log = { ...SILENT, warn: (fields: object, message: string) => void lines.push({ ...fields, message }) };
  const used = (fileTransferUrl: string, job?: JobId) => {
    const service = { ...config.service, fileTransferUrl } as typeof config.service;
    const { store, close } = openOwnStore({ ...config, service }, log);
    store.capabilities.set('clock', '0');
    const order = { tasks: [], files: [], results: false, settleAfterMs: null, source: 'command' } as const;
    if (job !== undefined) store.jobs.watch({ jobId: job, ...order }, 1);
    close();
    return lines.splice(0);
  };
  const [first, second, third] = ['https://a.example.org/Ws', 'https://b.example.org/Ws', 'https://c.example.org/Ws'];
  expect([used(first), used(second, '501' as JobId), used(second)]).toEqual([[], [], []]);
  const hint =
    'if it is another middleware, set mirror.directory and state.directory to other directories: jobs with the same numbers are taken for one another';
  const message = 'address of the service changed';
  expect(used(third)).toEqual([{ address: third, before: `${first}, ${second}`, hint, message }]);
  expect(used(third)).toEqual([]);
});

it('the agents of a fleet find the same id in a mirror directory, whichever creates it, and no file beside it', async () => {
  const directory = temporaryDirectory();
  const [first = '', ...others] = await Promise.all([1, 2, 3].map(() => mirrorIdentity(directory)));
  expect(first).toMatch(/^[0-9a-f-]{36}$/);
  expect([...others, await mirrorIdentity(directory)]).toEqual([first, first, first]);
  expect(fs.readdirSync(directory)).toEqual(['.jobtail-mirror']);
  expect(fs.statSync(path.join(directory, '.jobtail-mirror')).mode & 0o777).toBe(0o640 & ~process.umask());
  await expect(mirrorIdentity(path.join(directory, 'gone'))).rejects.toMatchObject({ name: 'JobtailError' });
});

it('a command takes a state that no process serves, or works beside one that does, and follows no removed job; an agent waits for it', async (context) => {
  const watch =
    'results: {enabled: false}\nwatch: [{job: 501, tasks: [9001], files: [log], settleAfterMinutes: 2}, {job: 502}]\n';
  const { config, state } = await place(context, watch);
  const shared = new SharedState(config);
  expect([shared.ifReadable, shared.use(() => 1)]).toEqual([undefined, undefined]);
  // A process that has the lock creates it.
  fs.mkdirSync(state, { mode: 0o700 });
  const lock = lockDirectory(state, 'agent');
  const beside = withStore(config, SILENT, (_, owned) => owned ?? 'beside it');
  new Store({ ...storeOf(config), owner: true }).close();
  expect(await beside).toBe('beside it');
  lock.release();
  const lines: unknown[] = [];
  const log = { ...SILENT, info: (fields: object, message: string) => void lines.push({ ...fields, message }) };
  const start = (stop = new AbortController().signal) => openAsAgent(config, log, { secrets: new Secrets(), stop });
  const starting = await withStore(config, SILENT, async (store, owned) => {
    expect([owned?.store === store, lockHolder(state)?.role]).toEqual([true, 'command']);
    expect(watchIfConfigured(store, config, '501' as JobId)).toBe('watched');
    expect(store.jobs.get('501' as JobId)).toMatchObject({ source: 'config', results: false, settleAfterMs: 120_000 });
    expect(store.liveFiles.ofJob('501' as JobId)).toMatchObject([{ taskId: '9001', file: 'log' }]);
    store.jobs.setState('501' as JobId, 'ended');
    expect(watchIfConfigured(store, config, '501' as JobId)).toBe('ended');
    store.jobs.forget('502' as JobId, 1);
    expect(() => watchIfConfigured(store, config, '502' as JobId)).toThrow('job 502 is not watched');
    const stop = new AbortController();
    const stopped = start(stop.signal);
    stop.abort();
    expect(await stopped).toBeUndefined();
    // Not awaited here: it waits for this command. Each time that it waits it listens to the signal.
    const { signal } = new AbortController();
    const waits = vi.spyOn(signal, 'addEventListener');
    const agent = start(signal);
    await until('several tries', () => waits.mock.calls.length > 2);
    expect(isAgentWaiting(state)).toBe(true);
    return { agent };
  });
  const agent = await starting.agent;
  const waiting = { pid: process.pid, message: 'waiting for a command to release the state' };
  expect(lines).toEqual([waiting, waiting]);
  expect([lockHolder(state)?.role, isAgentWaiting(state)]).toEqual(['agent', false]);
  await expect(start()).rejects.toMatchObject({ code: 'locked', policy: { exitCode: 4 } });
  expect(lines, 'an agent is not waited for').toHaveLength(2);
  expect(await withStore(config, SILENT, (store, owned) => [owned, requireWatched(store, '501' as JobId)])).toEqual([
    ...[undefined, 'ended'],
  ]);
  expect(() => shared.use((store) => requireWatched(store, '7' as JobId))).toThrow('job 7 is not watched');
  const closed = await withSharedStore(config, async (store) => {
    await setImmediate();
    expect(store.jobs.all()).toHaveLength(1);
    return store;
  });
  expect(() => closed.jobs.all()).toThrow();
  const before = shared.store;
  expect(shared.store).toBe(before);
  agent?.close();
  for (const name of fs.readdirSync(state)) if (name.startsWith('agent.db')) fs.rmSync(path.join(state, name));
  expect(shared.ifReadable).toBeUndefined();
  await withStore(config, SILENT, () => {});
  expect(lockHolder(state)).toBeUndefined();
  expect(shared.store.jobs.all()).toEqual([]);
  shared.close();
});
