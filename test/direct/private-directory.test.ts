/** The directory of temporary keys, which is trusted by what it is. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { PrivateDirectory } from '../../src/direct/private-directory.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

const use = (directory: PrivateDirectory) =>
  directory.withFiles(
    () => ({ key: 'secret' }),
    async (at) => path.dirname(at),
  );

function setUp() {
  const runtime = temporaryDirectory();
  const stateDirectory = temporaryDirectory();
  const directory = new PrivateDirectory({ stateDirectory, environment: { XDG_RUNTIME_DIR: runtime } });
  return { runtime, stateDirectory, directory };
}

it('keys go to a new directory if another one has the name of the first', async () => {
  const { runtime, directory } = setUp();
  const first = await use(directory);
  expect(path.dirname(first)).toBe(runtime);
  expect(await use(directory)).toBe(first);
  fs.renameSync(first, `${first}.removed`);
  fs.mkdirSync(first, { mode: 0o700 });
  const second = await use(directory);
  expect(second).not.toBe(first);
  fs.rmdirSync(second);
  fs.symlinkSync(runtime, second);
  const third = await use(directory);
  expect(third).not.toBe(second);
  fs.chmodSync(third, 0o777);
  expect(await use(directory)).not.toBe(third);
  directory.close();
});

it('keys go to no directory of the environment that other users can write', async () => {
  const { runtime, stateDirectory } = setUp();
  fs.chmodSync(runtime, 0o777);
  const directory = new PrivateDirectory({ stateDirectory, environment: { RUNTIME_DIRECTORY: runtime } });
  expect(path.dirname(await use(directory))).not.toBe(runtime);
  directory.close();
});
