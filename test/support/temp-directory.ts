import fs, { readdirSync, readlinkSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, onTestFinished, type TestContext } from 'vitest';

/** What a test that runs beside others of its file gets from its context; otherwise there is one for all. */
export type WithEnd = Pick<TestContext, 'onTestFinished'>;

/** A directory below `parent` that is gone when the test is over. */
export function temporaryDirectory(parent = os.tmpdir(), test: WithEnd = { onTestFinished }): string {
  const directory = fs.mkdtempSync(path.join(parent, 'jobtail-test-'));
  test.onTestFinished(() => fs.rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** A directory for all tests of the file that calls this, gone after them. */
export function directoryOfFile(parent = os.tmpdir()): string {
  const directory = fs.mkdtempSync(path.join(parent, 'jobtail-test-'));
  afterAll(() => fs.rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** A directory for one of many runs within a test: in memory where that is possible, gone when `work` is through. */
export async function removedDirectory<T>(work: (directory: string) => Promise<T>): Promise<T> {
  const directory = fs.mkdtempSync(path.join(memoryDirectory(), 'jobtail-test-'));
  try {
    return await work(directory);
  } finally {
    fs.rmSync(directory, { recursive: true, force: true });
  }
}

/** Where there may be shares: they are refused below /dev. */
export const diskDirectory = (): string => (os.tmpdir().startsWith('/dev/') ? '/var/tmp' : os.tmpdir());

/** Where flushing costs nothing, if there is such a place. */
export function memoryDirectory(): string {
  return fs.existsSync('/dev/shm') ? '/dev/shm' : os.tmpdir();
}

/** Files of `directory` that are open now, also those without a name. */
export function openFilesIn(directory: string): number {
  return readdirSync('/proc/self/fd').filter((fd) => linkOf(fd).startsWith(directory)).length;
}

function linkOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    // The one that listed the directory is closed again.
    return '';
  }
}
