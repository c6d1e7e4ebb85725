/** What `agent check` reports of the disk of a directory. */
import fs from 'node:fs';
import { expect, it, onTestFinished, vi } from 'vitest';
import { checkDirectory } from '../../src/cli/check/machine.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

it('a disk with room for bytes and for few files only is a warning that names its inodes', () => {
  const directory = temporaryDirectory();
  const real = fs.statfsSync(directory);
  const disk = vi.spyOn(fs, 'statfsSync').mockReturnValue(Object.assign(real, { files: 1000, ffree: 3 }));
  onTestFinished(() => disk.mockRestore());
  const [warning] = checkDirectory(directory, 'mirror.directory', false).filter(({ text }) =>
    text.includes('more files'),
  );
  expect(warning?.text).toBe('room for 3 more files only (df -i)');
});
