/** Which transfers there are, and the loop that releases temporary keys. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { Remote, TransferMethod } from '../../src/agent/ports/server.ts';
import { guardedPathsOf } from '../../src/config/secrets.ts';
import { sharesOf, Transfers } from '../../src/daemon/transfers.ts';
import { privateDirectoryPrefix } from '../../src/direct/private-directory.ts';
import { JobtailError } from '../../src/errors.ts';
import type { JobId } from '../../src/job.ts';
import { Secrets } from '../../src/redact.ts';
import { Store } from '../../src/store/store.ts';
import { restConfig } from '../config/files.ts';
import { SILENT } from '../support/errors.ts';
import { HeldClock } from '../support/held-clock.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

const JOB = '501' as JobId;
const REQUEST = { jobId: JOB, tasks: [], files: [], results: true, settleAfterMs: null, source: 'command' } as const;
const HOUR_MS = 3_600_000;

test('the agent releases a key seconds after its job is over, hardly reads the state while there is none, and logs a failure once', async () => {
  const clock = new HeldClock();
  const store = new Store({ directory: temporaryDirectory(), service: 'model', owner: true, now: clock.now });
  store.jobs.watch(REQUEST, clock.now());
  const open = new Set<string>();
  const remote: Partial<Remote> = {
    getTransferMethod: async () => {
      open.add('public');
      const credentials = { username: 'hpc', privateKey: 'private', publicKey: 'public' };
      return { serverHostname: 'h', sharedBasepath: '/', protocol: 'SftpScp', credentials } as TransferMethod;
    },
    endTransfer: async (_jobId, _method, signal) => {
      if (isHanging) await new Promise((_, reject) => signal.addEventListener('abort', reject));
      if (isAway) throw new JobtailError('unreachable', 'connection refused');
      open.delete('public');
    },
  };
  let isAway = false;
  let isHanging = false;
  const warnings: string[] = [];
  const log = { ...SILENT, warn: (_: object, what: string) => void warnings.push(what) };
  const transfers = new Transfers({ store, log, secrets: new Secrets(), clock });
  const reads = vi.spyOn(store.leases, 'allOpen');
  const endKeepUp = transfers.keepUp(remote as Remote);
  await clock.pass(HOUR_MS);
  expect(reads.mock.calls.length).toBeLessThanOrEqual(61);
  await transfers.leases.take(JOB, remote as Remote, new AbortController().signal);
  await clock.pass(1_000);
  expect(open.size).toBe(1);
  store.jobs.setState(JOB, 'settled');
  await clock.pass(5_000);
  expect(open.size).toBe(0);
  // A failure is logged once, until a key was released.
  for (let times = 1; times <= 2; times += 1) {
    isAway = true;
    await transfers.leases.take(JOB, remote as Remote, new AbortController().signal);
    await clock.pass(10 * 60_000);
    expect([warnings.length, open.size]).toEqual([times, 1]);
    isAway = false;
    // The pause of a key doubles, up to an hour.
    await clock.pass(HOUR_MS);
    expect(open.size).toBe(0);
  }
  // So is a state that cannot be read, until it can.
  for (let times = 1; times <= 2; times += 1) {
    reads.mockImplementation(() => {
      throw new JobtailError('disk-full', 'no space left on device');
    });
    await clock.pass(3 * 60_000);
    expect(warnings.slice(2)).toEqual(Array.from({ length: times }, () => 'cannot revoke a temporary key yet'));
    reads.mockReset();
    await clock.pass(2 * 60_000);
  }
  await endKeepUp();
  // A job that goes to another agent waits for no service that hangs: so long, and for the grace of a call.
  await transfers.leases.take(JOB, remote as Remote, new AbortController().signal);
  isHanging = true;
  const left = vi.fn();
  const leaving = transfers.end(JOB).then(left, left);
  await clock.pass(9_000);
  expect(left).not.toHaveBeenCalled();
  await clock.pass(1_000);
  expect(left).toHaveBeenCalled();
  await leaving;
  isHanging = false;
  await transfers.end(JOB);
  expect([open.size, clock.timers]).toEqual([0, 0]);
  store.close();
});

test('transfers are direct where the configuration wants them, and programs or shares are there for them', async () => {
  onTestFinished(() => void vi.unstubAllEnvs());
  const share = { '/scratch': '/srv/scratch' };
  for (const [transfer, programs, shareRoots, isDirect] of [
    ['service', ['ssh', 'rsync'], share, false],
    ['auto', [], {}, false],
    ['auto', ['ssh'], {}, false],
    ['auto', ['rsync'], {}, false],
    ['auto', ['ssh', 'rsync'], {}, true],
    ['auto', [], share, true],
    ['direct', [], {}, true],
  ] as const) {
    const { config, directory } = await restConfig({ results: { transfer, shareRoots } });
    for (const name of programs) fs.writeFileSync(path.join(directory, name), '', { mode: 0o755 });
    vi.stubEnv('PATH', directory);
    const store = new Store({ directory: temporaryDirectory(), service: 'model', owner: true, now: Date.now });
    const found = new Transfers({ store, log: SILENT, secrets: new Secrets() }).directOf(config);
    expect([transfer, programs, found !== null]).toEqual([transfer, programs, isDirect]);
    store.close();
  }
});

test('no share may contain keys, of the agent or of its user', async () => {
  const { config } = await restConfig({ results: { shareRoots: { '/there': '/srv/here' } } });
  vi.stubEnv('HOME', '/home/of-it');
  onTestFinished(() => void vi.unstubAllEnvs());
  const ofConfig = guardedPathsOf(config);
  const ofUser = ['/home/of-it/.ssh', '/home/of-it/.gnupg'];
  expect(sharesOf(config, {})).toEqual({ roots: { '/there': '/srv/here' }, guarded: [...ofConfig, ...ofUser] });
  const environment = {
    RUNTIME_DIRECTORY: '/run/a:/run/b',
    CREDENTIALS_DIRECTORY: '/run/c',
    XDG_RUNTIME_DIR: 'relative',
  };
  expect(sharesOf(config, environment).guarded).toEqual([...ofConfig, '/run/a', '/run/c', ...ofUser]);
  expect(sharesOf(config, { XDG_RUNTIME_DIR: '/run/user/7' }).guarded).toContain('/run/user/7/jobtail-keys');
});

test('errors of transfers name no secret; a key that a stop does not revoke is logged, and what a kill left is removed', async () => {
  const store = new Store({ directory: temporaryDirectory(), service: 'model', owner: true, now: Date.now });
  store.jobs.watch(REQUEST, 1);
  const left = path.join(store.directory, `${privateDirectoryPrefix(store.directory)}1`);
  fs.mkdirSync(left);
  const secrets = new Secrets();
  secrets.add('session', 'of-the-session-4711');
  const lines: unknown[] = [];
  const log = { ...SILENT, warn: (fields: object, what: string) => void lines.push({ ...fields, what }) };
  const transfers = new Transfers({ store, log, secrets });
  expect(fs.existsSync(left)).toBe(false);
  const { config } = await restConfig({ results: { transfer: 'direct' } });
  const direct = transfers.directOf(config);
  const remote = {
    getTransferMethod: async () =>
      ({
        serverHostname: null,
        sharedBasepath: '/of-the-session-4711',
        protocol: 'NetworkShare',
        credentials: null,
      }) as const,
    endTransfer: async () => {
      throw new JobtailError('unreachable', 'connection refused');
    },
  } as Partial<Remote> as Remote;
  const { signal } = new AbortController();
  const turn = { jobId: JOB, remote, signal, files: [], reserve: { require: async () => {} } };
  const message = expect.stringMatching(/^the service names the share \/\*\*\*, and/);
  await expect(direct?.list(JOB, remote, signal)).rejects.toMatchObject({ message });
  await expect(direct?.fetch(turn as never)).rejects.toMatchObject({ message });
  lines.length = 0;
  await transfers.endAll(remote, signal);
  const refused = { scope: 'transfers', code: 'unreachable', err: 'connection refused' };
  expect(lines.at(-1)).toEqual({ ...refused, what: 'temporary key not revoked, retried at the next start' });
  store.close();
});
