/** Directories of mirrors: their rights, and how what is in them gets to the disk. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, expect, it, onTestFinished, vi } from 'vitest';
import { flushAll, makeDirectories, temporaryDirectory as newDirectory } from '../../src/system/directories.ts';
import { fileCalls } from '../../src/system/files.ts';
import { leaveRemovedDirectory } from '../../src/system/working-directory.ts';
import { until } from '../support/e2e-until.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

/** The files and directories that are opened, to flush each. */
function opened(): string[] {
  const files: string[] = [];
  const { openSync } = fs;
  const { open } = fs.promises;
  vi.spyOn(fs, 'openSync').mockImplementation((file, ...more) => {
    files.push(String(file));
    return openSync(file, ...more);
  });
  vi.spyOn(fs.promises, 'open').mockImplementation((file, ...more) => {
    files.push(String(file));
    return open(file, ...more);
  });
  return files;
}

it('the name of each new directory is on the disk before it is used, and its group may read it', async () => {
  const root = path.join(temporaryDirectory(), 'new', 'root');
  const flushed = opened();
  for (let times = 0; times < 2; times++) await makeDirectories(fileCalls(false), root, path.join(root, 'a', 'b'));
  expect(flushed).toEqual([root, path.join(root, 'a')]);
  // A network file system may never respond.
  expect(fs.openSync).not.toHaveBeenCalled();
  const modes = [root, ...flushed, path.join(root, 'a', 'b')].map((at) => fs.statSync(at).mode & 0o777);
  expect(new Set(modes)).toEqual(new Set([0o750 & ~process.umask()]));
  await makeDirectories(fileCalls(false), root, root);
  expect(fs.readdirSync(root)).toEqual(['a']);
});

it.each([
  ['33 files', 33, false, '6.1.0', '', 'together'],
  ['33 files, which takes a while', 33, false, '6.1.0', 'sleep 0.1', 'together'],
  ['33 files on the first Linux that reports failures', 33, false, '5.8.0', '', 'together'],
  ['33 files on an older one', 33, false, '5.7.19', '', 'each'],
  ['33 files on a much older one', 33, false, '4.20.0', '', 'each'],
  ['32 files', 32, false, '6.1.0', '', 'each'],
  ['33 files of a network file system', 33, true, '6.1.0', '', 'each'],
  ['33 files, if that fails', 33, false, '6.1.0', 'exit 1', 'both'],
  ['33 files without that program', 33, false, '6.1.0', null, 'each'],
  ['33 files, if a stop ends that', 33, false, '6.1.0', 'sleep 600', 'both'],
  ['33 files, if that has a message', 33, false, '6.1.0', 'echo failed >&2', 'both'],
  ['33 files on another system', 33, false, '6.1.0 darwin', '', 'each'],
])('%s are flushed by themselves, or with their file system', async (_, count, onNetwork, release, script, how) => {
  const [programs, directory] = [temporaryDirectory(), temporaryDirectory()];
  const calls = path.join(programs, 'calls');
  const program = `#!/bin/sh\necho "$@" >> ${calls}\n${script}\n`;
  if (script !== null) fs.writeFileSync(path.join(programs, 'sync'), program, { mode: 0o755 });
  vi.stubEnv('PATH', script === null ? programs : `${programs}:${process.env['PATH']}`);
  const files = Array.from({ length: count }, (__, index) => path.join(directory, String(index)));
  for (const file of files) fs.writeFileSync(file, '');
  const flushed = opened();
  vi.spyOn(os, 'release').mockReturnValue(release);
  if (release.endsWith('darwin')) vi.spyOn(os, 'platform').mockReturnValue('darwin');
  const stop = new AbortController();
  const flushing = flushAll(files, onNetwork, stop.signal);
  if (script === 'sleep 600') {
    await until('the program to run', () => fs.existsSync(calls));
    stop.abort();
  }
  await flushing;
  expect(flushed.sort()).toEqual(how === 'together' ? [] : files.sort());
  const called = fs.existsSync(calls) ? fs.readFileSync(calls, 'utf8') : '';
  expect(called).toBe(how === 'each' ? '' : `-f -- ${path.join(directory, '0')}\n`);
});

it('a flush that fails is reported, and closes what it opened', async () => {
  const directory = temporaryDirectory();
  const failure = new Error('the disk is gone');
  let [open, most] = [0, 0];
  const file = {
    async sync() {
      most = Math.max(most, ++open);
      await new Promise((resolve) => setImmediate(resolve));
      throw failure;
    },
    close: async () => void open--,
  } as unknown as fs.promises.FileHandle;
  vi.spyOn(fs.promises, 'open').mockImplementation(async () => file);
  const files = Array.from({ length: 20 }, (_, index) => path.join(directory, String(index)));
  await expect(flushAll(files, true, new AbortController().signal)).rejects.toBe(failure);
  await until('the end of the others', () => open === 0);
  expect(most).toBe(8);
});

it('a temporary directory is in /tmp where the usual place is gone, and is for this process alone', () => {
  const absent = path.join(temporaryDirectory(), 'absent');
  vi.spyOn(os, 'tmpdir').mockReturnValue(absent);
  const made = newDirectory('jobtail-test-');
  onTestFinished(() => fs.rmSync(made, { recursive: true }));
  expect([path.dirname(made), fs.statSync(made).mode & 0o777]).toEqual(['/tmp', 0o700]);
  fs.writeFileSync(absent, '');
  expect(() => newDirectory('jobtail-test-')).toThrow('ENOTDIR');
});

it('a process leaves its working directory only if that is removed', () => {
  const left = vi.spyOn(process, 'chdir').mockImplementation(() => {});
  leaveRemovedDirectory();
  expect(left).not.toHaveBeenCalled();
  vi.spyOn(process, 'cwd').mockImplementation(() => {
    throw new Error('ENOENT: uv_cwd');
  });
  leaveRemovedDirectory();
  expect(left.mock.calls).toEqual([['/']]);
});
