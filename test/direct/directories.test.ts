/** The directories that rsync writes. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import {
  bytesBelow,
  isPartialUnused,
  makeOwnDirectory,
  PARTIAL_DIRECTORY,
  prepareDirectory,
  preparePartialDirectories,
} from '../../src/direct/directories.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

it('directories of a request keep what can be resumed, and nothing else', async () => {
  const directory = path.join(temporaryDirectory(), 'request');
  await prepareDirectory(directory);
  expect(fs.statSync(directory).mode & 0o777).toBe(0o700);
  await preparePartialDirectories(directory, ['a/one', 'a/two', 'b']);
  expect(fs.readdirSync(directory).sort()).toEqual([PARTIAL_DIRECTORY, 'a']);
  const one = path.join(directory, 'a', 'one');
  const partial = path.join(directory, 'a', PARTIAL_DIRECTORY);
  expect([await isPartialUnused(one), fs.statSync(partial).mode & 0o777]).toEqual([true, 0o700]);
  fs.writeFileSync(path.join(partial, 'one'), 'half');
  expect([await isPartialUnused(one), await isPartialUnused(path.join(directory, 'no', 'file'))]).toEqual([
    false,
    false,
  ]);
  fs.writeFileSync(one, 'whole!');
  fs.symlinkSync(one, path.join(directory, 'link'));
  expect(await bytesBelow(directory)).toBe(10);
  await prepareDirectory(directory);
  expect(await bytesBelow(directory)).toBe(4);
  await expect(makeOwnDirectory(path.join(directory, 'no', 'parent'))).rejects.toThrow(/^ENOENT: .* mkdir /);
  fs.writeFileSync(one, 'rsync removes it');
  const { lstat } = fs.promises;
  vi.spyOn(fs.promises, 'lstat').mockImplementation(async (file) => await lstat(file === one ? `${one}.gone` : file));
  onTestFinished(() => void vi.restoreAllMocks());
  expect(await bytesBelow(directory)).toBe(4);
  // None is created below a file.
  await preparePartialDirectories(directory, ['a/one/two']);
  await expect(makeOwnDirectory(one)).rejects.toThrow(one);
});
