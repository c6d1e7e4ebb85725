/** The lock of a state directory. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it, vi } from 'vitest';
import { lockDirectory, lockHolder } from '../../src/store/lock.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

it('one process at a time has it, and its pid is known', () => {
  const directory = temporaryDirectory();
  expect(lockHolder(directory)).toBeUndefined();
  const lock = lockDirectory(directory);
  expect(lockHolder(directory)).toBe(process.pid);
  expect(() => lockDirectory(directory)).toThrow(`another agent works on ${directory} (pid ${process.pid})`);
  lock.release();
  expect(lockHolder(directory)).toBeUndefined();
  lockDirectory(directory).release();
});

it('the pid file is removed before the lock is free, so that it is never that of the next holder', () => {
  const directory = temporaryDirectory();
  const lock = lockDirectory(directory);
  const remove = vi.spyOn(fs, 'rmSync');
  const holders: unknown[] = [];
  remove.mockImplementation((file) => {
    holders.push(lockHolder(directory));
    fs.unlinkSync(file);
  });
  lock.release();
  remove.mockRestore();
  expect(holders).toEqual([process.pid]);
  expect(fs.existsSync(path.join(directory, 'agent.pid'))).toBe(false);
});
