/** The sockets, seen from this side of their thread. */
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished, vi } from 'vitest';
import { ApiThread } from '../../src/daemon/api-thread.ts';
import { ServingThread } from '../../src/daemon/serving-thread.ts';
import { ownState } from '../cli/own-state.ts';
import { until } from '../support/e2e-until.ts';
import { SILENT } from '../support/errors.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

const REQUEST = 'GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n';

/** A stream of events at a socket; once it is open, or has ended. */
async function streamAt(socketPath: string) {
  const stream = net.connect(socketPath).on('error', () => {});
  onTestFinished(() => void stream.destroy());
  stream.resume().write(REQUEST);
  await until('an open stream, or its end', () => stream.bytesRead > 0 || stream.closed);
  return stream;
}

async function listening() {
  const { config } = await ownState();
  const directory = temporaryDirectory();
  const api = new ApiThread(SILENT);
  onTestFinished(() => api.close());
  await api.use({ ...config, api: { directory, controlGroup: null } });
  const change = (minFreeBytes: number) =>
    api.use({ ...config, mirror: { ...config.mirror, minFreeBytes }, api: { directory, controlGroup: null } });
  return { api, change, socketPath: path.join(directory, 'read.sock') };
}

it('a changed configuration cuts no client, and counts for what is asked next', async () => {
  const { change, socketPath } = await listening();
  const isFull = async () => {
    const response = await new Promise<http.IncomingMessage>((resolve, reject) => {
      http.get({ socketPath, path: '/v1/jobs', agent: false }, resolve).on('error', reject);
    });
    return (await text(response)).includes('less than mirror.minFreeBytes');
  };
  // Before the thread begins, and while it serves.
  await change(2 ** 50);
  const stream = await streamAt(socketPath);
  expect(await isFull()).toBe(true);
  await change(0);
  await until('the change', async () => !(await isFull()));
  expect(stream.closed).toBe(false);
});

it('a second agent with the same directory takes nothing from the first one', async () => {
  const { socketPath } = await listening();
  const second = new ApiThread(SILENT);
  onTestFinished(() => second.close());
  const { config } = await ownState();
  await second.use({ ...config, api: { directory: path.dirname(socketPath), controlGroup: null } });
  expect((await streamAt(socketPath)).closed).toBe(false);
});

it('clients that connect again at once do not open what is being closed', async () => {
  const { api, socketPath } = await listening();
  const open = new Set<net.Socket>();
  let [lines, again] = [0, 0];
  const listen = () => {
    const socket = net.connect(socketPath, () => {
      open.add(socket);
      again += Number(lines > 0);
      socket.write(REQUEST);
    });
    socket.on('data', () => (lines += 1)).on('error', () => {});
    socket.on('close', () => open.delete(socket) && listen());
  };
  listen();
  await until('an open stream', () => lines > 0);
  await api.close();
  await until('the end of the stream', () => open.size === 0);
  expect(again).toBe(0);
});

it('a client whose thread cannot begin is disconnected, and 512 have a place', async () => {
  const servers = vi.spyOn(net, 'createServer');
  vi.spyOn(ServingThread.prototype, 'serving').mockRejectedValue(new Error('it ended'));
  onTestFinished(() => void vi.restoreAllMocks());
  const { socketPath } = await listening();
  const client = net.connect(socketPath).on('error', () => {});
  await until('the end', () => client.resume().closed);
  expect(servers.mock.results.map(({ value }) => (value as net.Server).maxConnections)).toEqual([512, 512]);
});

it('a client that connects within a minute after the last one ended keeps its stream', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const { socketPath } = await listening();
  const first = await streamAt(socketPath);
  first.destroy();
  await until('the end of the first one', () => vi.getTimerCount() > 0);
  const second = await streamAt(socketPath);
  vi.advanceTimersByTime(60_000);
  vi.useRealTimers();
  // If the idle time ends the thread, this stream comes from a new one, after the end of the second.
  await streamAt(socketPath);
  expect(second.closed).toBe(false);
});

it('sockets are in a directory of their own, which an earlier agent may have left; what hinders them is logged', async () => {
  const { config } = await ownState();
  const directory = path.join(temporaryDirectory(), 'run', 'jobtail');
  const lines: unknown[][] = [];
  const say = (level: string) => (fields: object, phrase: string) => void lines.push([level, phrase, fields]);
  const api = new ApiThread({ debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') });
  onTestFinished(() => api.close());
  const before = process.umask(0o022);
  onTestFinished(() => void process.umask(before));
  const use = (controlGroup: string | null, at = directory) =>
    api.use({ ...config, api: { directory: at, controlGroup } });
  await use(null);
  await use(null);
  const listening = ['info', 'sockets listening', { path: directory }];
  expect(lines.splice(0)).toEqual([listening]);
  const modeOf = (name: string) => fs.statSync(path.join(directory, name)).mode & 0o777;
  expect([modeOf('.'), modeOf('read.sock'), modeOf('control.sock')]).toEqual([0o750, 0o660, 0o600]);
  const names = () => fs.readdirSync(directory).map((name) => name.replace(/^\.t-.*/, 'private'));
  const open = ['control.sock', 'private', 'read.sock'];
  expect(names().sort()).toEqual(open);
  await api.close();
  expect(names()).toEqual([]);
  fs.mkdirSync(path.join(directory, '.t-left', 'more'), { recursive: true });
  fs.writeFileSync(path.join(directory, 'other.t-'), '');
  await use('no-such-group');
  expect(names().sort()).toEqual(['control.sock', 'other.t-', 'private', 'read.sock']);
  const scope = 'the sockets';
  const ofGroup = (err: unknown, hint: string) => {
    return ['error', 'api.controlGroup cannot be used', { scope, code: 'config', err, hint }];
  };
  const known = 'set api.controlGroup to a group of this machine, or to the number of one';
  expect(lines.splice(0)).toEqual([ofGroup('/etc/group has no group no-such-group', known), listening]);
  vi.spyOn(fs, 'chownSync').mockImplementation(() => {
    throw Object.assign(new Error('EPERM: operation not permitted, chown'), { code: 'EPERM', syscall: 'chown' });
  });
  onTestFinished(() => void vi.restoreAllMocks());
  await use('65533');
  const drop = 'let the user of the agent be in the group 65533; a unit of systemd needs a drop-in (docs/gateway.md)';
  expect(lines.splice(0)).toEqual([ofGroup(expect.stringContaining('chown EPERM'), drop), listening]);
  const file = path.join(directory, 'other.t-');
  await use(null, file);
  const hint = expect.stringContaining('set it to another directory');
  const taken = { scope, path: file, err: expect.stringContaining('exists'), hint };
  expect(lines).toEqual([['warn', 'cannot listen at the sockets', taken]]);
  expect(names()).toEqual(['other.t-']);
  fs.rmSync(file);
  await use(null, file);
  expect(lines.at(-1)).toEqual(['info', 'sockets listening', { path: file }]);
});
