/** The lock of a state directory also where the file system has none, and where another host has it. */
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect, it, vi } from 'vitest';
import {
  isAgentWaiting,
  isServed,
  lockDirectory,
  lockHolder,
  runningAgent,
  waitAsAgent,
} from '../../src/store/lock.ts';
import { READS_TYPESCRIPT } from '../support/e2e-program.ts';
import { errorOf } from '../support/errors.ts';
import { needsThat } from '../support/needs.ts';
import { openFilesIn, temporaryDirectory } from '../support/temp-directory.ts';

it('one process at a time has it, and its pid is known', () => {
  const directory = temporaryDirectory();
  expect(lockHolder(directory)).toBeUndefined();
  // What else is there is replaced, and not followed.
  const at = (name: string) => path.join(directory, name);
  const [pid, there, file] = [at('agent.pid'), at('there'), at('agent.lock')];
  fs.mkdirSync(pid);
  expect(() => lockDirectory(directory)).toThrow(`illegal operation on a directory: ${pid}`);
  fs.rmdirSync(pid);
  fs.rmSync(file);
  for (const link of [pid, file]) fs.symlinkSync(there, link);
  expect(errorOf(() => lockDirectory(directory))).toMatchObject({
    message: `${file} is no regular file, and is not followed, read or written`,
    hint: `find out who put it there, and move it out of the way; the agent makes ${file} itself`,
  });
  fs.rmSync(file);
  // As Linux reports it of a write.
  const full = Object.assign(new Error('ENOSPC: no space left, write'), { code: 'ENOSPC', syscall: 'write' });
  vi.spyOn(fs, 'writeFileSync').mockImplementationOnce(() => {
    throw full;
  });
  expect(errorOf(() => lockDirectory(directory)).message).toBe(`no space left: ${pid} (write ENOSPC)`);
  fs.symlinkSync(there, pid);
  const lock = lockDirectory(directory);
  expect(fs.existsSync(there)).toBe(false);
  expect(lockHolder(directory)).toEqual({ pid: process.pid, role: 'agent', host: '' });
  expect(() => lockDirectory(directory)).toThrow(`another agent works on ${directory} (pid ${process.pid})`);
  lock.release();
  expect(lockHolder(directory)).toBeUndefined();
  lockDirectory(directory).release();
  // Each question of who has it closes the file again.
  expect(openFilesIn(directory)).toBe(0);
});

it('a command that has it is no agent, and sees an agent that waits for it', () => {
  const directory = temporaryDirectory();
  const lock = lockDirectory(directory, 'command');
  expect(lockHolder(directory)).toMatchObject({ pid: process.pid, role: 'command' });
  expect(runningAgent(directory)).toBeUndefined();
  expect(isAgentWaiting(directory)).toBe(false);
  const waiting = waitAsAgent(directory);
  expect(isAgentWaiting(directory)).toBe(true);
  expect(() => waitAsAgent(directory)).toThrow('another agent works on');
  fs.rmSync(path.join(directory, 'agent.pid'));
  lock.release();
  // Until the agent has taken it, it is for no other command, also if no lock can be tried on another file.
  for (let times = 0; times < 2; times++) {
    expect(isServed(directory)).toBe(true);
    vi.spyOn(crypto, 'randomUUID').mockReturnValueOnce('no/such' as ReturnType<typeof crypto.randomUUID>);
  }
  vi.restoreAllMocks();
  waiting.release();
  expect(isServed(directory)).toBe(false);
});

it('the pid file is removed before the lock is free, so that it is never that of the next holder', () => {
  const directory = temporaryDirectory();
  const lock = lockDirectory(directory);
  const remove = vi.spyOn(fs, 'rmSync');
  const holders: unknown[] = [];
  remove.mockImplementation((file) => {
    holders.push(lockHolder(directory)?.pid);
    fs.unlinkSync(file);
  });
  lock.release();
  remove.mockRestore();
  expect(holders).toEqual([process.pid]);
  expect(fs.existsSync(path.join(directory, 'agent.pid'))).toBe(false);
});

const COMPILER = needsThat(spawnSync('cc', ['--version']).status === 0, 'a file system without locks: it needs cc');

/** In place of such a file system: every lock is refused, with the number in ERRNO. */
const WITHOUT_LOCKS = `#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/syscall.h>
int fcntl64(int fd, int cmd, ...) { va_list a; va_start(a, cmd); void *p = va_arg(a, void *); va_end(a);
  if (cmd == F_SETLK || cmd == F_SETLKW) { errno = atoi(getenv("ERRNO")); return -1; }
  return syscall(SYS_fcntl, fd, cmd, p); }
int fcntl(int fd, int cmd, ...) { va_list a; va_start(a, cmd); void *p = va_arg(a, void *); va_end(a); return fcntl64(fd, cmd, p); }
`;

it('a file system that refuses locks is named, and no other agent', COMPILER, () => {
  const directory = temporaryDirectory();
  fs.writeFileSync(path.join(directory, 'locks.c'), WITHOUT_LOCKS);
  execFileSync('cc', ['-shared', '-fPIC', '-o', 'locks.so', 'locks.c'], { cwd: directory });
  const lock = new URL('../../src/store/lock.ts', import.meta.url).href;
  const script = `
    import { lockDirectory, lockHolder } from ${JSON.stringify(lock)};
    for (process.env.ERRNO of [${os.constants.errno.ENOLCK}, ${os.constants.errno.ENOSYS}])
      for (const ask of [lockDirectory, lockHolder])
        try { console.log('none', ask('state')); } catch ({ code, message, hint }) { console.log(code, message, hint); }`;
  fs.mkdirSync(path.join(directory, 'state'), { mode: 0o700 });
  const said = execFileSync(process.execPath, [...READS_TYPESCRIPT, '--input-type=module', '-e', script], {
    ...{ cwd: directory, encoding: 'utf8' },
    env: { ...process.env, ERRNO: '0', LD_PRELOAD: path.join(directory, 'locks.so') },
  });
  const line = 'store the file system of state has no locks for files set state.directory to a local disk';
  expect(said.trim().split('\n')).toEqual(Array(4).fill(expect.stringContaining(line)));
  expect(fs.readdirSync(path.join(directory, 'state')).filter((name) => name.startsWith('lock-test'))).toEqual([]);
});

it('the pid of an agent on another host is shown with its host', () => {
  const directory = temporaryDirectory();
  const lock = lockDirectory(directory);
  expect(lockHolder(directory)).toMatchObject({ host: '' });
  fs.writeFileSync(path.join(directory, 'agent.pid'), '1\nlogin7\n');
  // As an earlier version wrote it.
  expect(lockHolder(directory)).toEqual({ pid: 1, role: 'agent', host: ' on login7' });
  expect(() => lockDirectory(directory)).toThrow('(pid 1 on login7)');
  // One that is no number is none, however long it is.
  fs.writeFileSync(path.join(directory, 'agent.pid'), 'no number');
  fs.truncateSync(path.join(directory, 'agent.pid'), 2 ** 40);
  expect(lockHolder(directory)).toEqual({ pid: null, role: 'agent', host: '' });
  lock.release();
});
