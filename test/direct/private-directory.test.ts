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

it('keys go to a directory of the environment, which is empty afterwards', async () => {
  const runtime = temporaryDirectory();
  const options = { stateDirectory: temporaryDirectory(), environment: { XDG_RUNTIME_DIR: runtime } };
  expect(await use(new PrivateDirectory(options))).toBe(runtime);
  expect(fs.readdirSync(runtime)).toEqual([]);
});

it('keys go to no directory of the environment that other users can write', async () => {
  const runtime = temporaryDirectory();
  fs.chmodSync(runtime, 0o777);
  const options = { stateDirectory: temporaryDirectory(), environment: { RUNTIME_DIRECTORY: runtime } };
  expect(await use(new PrivateDirectory(options))).not.toBe(runtime);
});
