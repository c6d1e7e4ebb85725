/** What rsync prints as a list of files, and the directories that it writes. */
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
import { readListing } from '../../src/direct/rsync-listing.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

it('the list of rsync is read by kind, size and name, whatever the name is', () => {
  const text = [
    'drwxr-xr-x          4,096 2026/11/26 10:00:00 .',
    '-rw-r--r--      1,234,567 2026/11/26 10:00:00 out/a name \\#012of two lines',
    'lrwxrwxrwx             11 2026/11/26 10:00:00 latest -> out',
    'prw-r--r--              0 2026/11/26 10:00:00 pipe',
    '',
  ].join('\n');
  expect(readListing(text)).toEqual({
    listed: [
      { kind: 'd', bytes: 4_096, name: '.' },
      { kind: '-', bytes: 1_234_567, name: 'out/a name \nof two lines' },
      { kind: 'l', bytes: 11, name: 'latest -> out' },
      { kind: 'p', bytes: 0, name: 'pipe' },
    ],
    unreadLines: 0,
  });
});

it('a line that is no entry of a list is counted, so that no list counts as complete without it', () => {
  const text =
    '-rw-r--r-- 5 2026/11/26 10:00:00 one\nWelcome to the cluster\n-rw-r--r-- many 2026/11/26 10:00:00 two\n';
  // rsync escapes a carriage return: no name is cut at one.
  const cut = '-rw-r--r-- 5 2026/11/26 10:00:00 three\rfour\n';
  expect(readListing(text + cut)).toEqual({ listed: [{ kind: '-', bytes: 5, name: 'one' }], unreadLines: 3 });
});

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
