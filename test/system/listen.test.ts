/** Who may connect to a Unix socket: its owner, and the group that was asked for. */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished, vi } from 'vitest';
import { freePort } from '../../simulator/free-port.ts';
import { listenAt } from '../../src/system/listen.ts';
import { groupId, groupName, ownUserName, userName } from '../../src/system/owners.ts';
import { until } from '../support/e2e-until.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

/** A server that listens there until the end of the test. */
async function listeningAt(file: string, group?: number | 'own') {
  const server = net.createServer();
  const leave = await listenAt(server, { path: file, group });
  onTestFinished(() => {
    leave();
    server.close();
  });
  return server;
}

async function listening(group?: number | 'own') {
  const file = path.join(temporaryDirectory(), 'socket');
  await listeningAt(file, group);
  return fs.statSync(file);
}

it('a socket is for its owner, for the group of this process, or for another group', async ({ skip }) => {
  expect((await listening()).mode & 0o777).toBe(0o600);
  const own = await listening('own');
  expect([own.mode & 0o777, own.gid]).toEqual([0o660, process.getegid?.()]);
  if (process.geteuid?.() !== 0) skip('only root can give a socket to any group');
  const other = await listening(65_533);
  expect([other.mode & 0o777, other.gid]).toEqual([0o660, 65_533]);
});

it('a port is listened at as it is asked for', async () => {
  const [port, server] = [await freePort(), net.createServer()];
  const leave = await listenAt(server, { host: '127.0.0.1', port });
  onTestFinished(() => void server.close());
  leave();
  expect(server.address()).toMatchObject({ address: '127.0.0.1', port });
});

it('groups and users are named as this machine names them', () => {
  expect([userName(0), userName(4_000_000_000), userName(undefined)]).toEqual(['root', '4000000000', 'of the agent']);
  expect([groupName(0), groupName(4_000_000_000)]).toEqual(['root', '4000000000']);
  expect([groupId('root'), groupId('4711')]).toEqual([0, 4_711]);
  const hint = 'set api.controlGroup to a group of this machine, or to the number of one';
  const refusal = { code: 'config', message: '/etc/group has no group no-such-group', hint };
  expect(() => groupId('no-such-group')).toThrow(expect.objectContaining(refusal));
});

it('a socket has its place alone; one that cannot be put there is closed, and that of another server is left', async () => {
  const directory = temporaryDirectory();
  const file = path.join(directory, 'socket');
  const [first, second, third] = [await listeningAt(file), net.createServer(), net.createServer()];
  const message = `listen EADDRINUSE: a process of user ${ownUserName()} listens at ${file}`;
  await expect(listenAt(second, { path: file })).rejects.toMatchObject({ code: 'EADDRINUSE', message });
  await until('no connection', () => promisify(first.getConnections.bind(first))().then((count) => count === 0));
  const rename = vi.spyOn(fs, 'renameSync').mockImplementationOnce(() => {
    throw new Error('no room left');
  });
  onTestFinished(() => rename.mockRestore());
  await expect(listenAt(third, { path: `${file}-2` })).rejects.toThrow('no room left');
  expect([first, second, third].map(({ listening }) => listening)).toEqual([true, false, false]);
  expect(fs.readdirSync(directory)).toEqual(['socket']);
});

it('a socket that cannot be made is refused with the error of the system, and nothing is left', async () => {
  const directory = temporaryDirectory();
  const server = net.createServer();
  const error = new Error('listen EACCES: permission denied');
  vi.spyOn(server, 'listen').mockImplementation(() => server);
  process.nextTick(() => server.emit('error', error));
  await expect(listenAt(server, { path: path.join(directory, 'socket') })).rejects.toBe(error);
  expect(fs.readdirSync(directory)).toEqual([]);
});

it('a socket of a killed process is replaced, and anything else in its place is not', async () => {
  const file = path.join(temporaryDirectory(), 'socket');
  const script = `require('net').createServer().listen(${JSON.stringify(file)}, () => process.kill(process.pid, 'SIGKILL'))`;
  spawnSync(process.execPath, ['-e', script]);
  expect(fs.lstatSync(file).isSocket()).toBe(true);
  const [server, other] = [net.createServer(), net.createServer()];
  const leave = await listenAt(server, { path: file });
  onTestFinished(() => void server.close());
  await once(net.connect(file).unref(), 'connect');
  fs.rmSync(file);
  fs.writeFileSync(file, 'kept');
  leave();
  const message = `${file} is not a socket, and is not followed or replaced`;
  await expect(listenAt(other, { path: file })).rejects.toMatchObject({ code: 'local-io', message });
  expect(fs.readFileSync(file, 'utf8')).toBe('kept');
  fs.rmSync(file);
  leave();
});
