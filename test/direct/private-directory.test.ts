/** The directory of temporary keys, which is trusted by what it is. */
import fs from 'node:fs';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { expect, it, onTestFinished, vi } from 'vitest';
import { PrivateDirectory, privateDirectoryPrefix } from '../../src/direct/private-directory.ts';
import { needsThat } from '../support/needs.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

const use = (directory: PrivateDirectory) =>
  directory.withFiles(
    () => ({ key: 'secret' }),
    async (at) => path.dirname(at),
  );

it('keys go to a directory of the environment, unless other users can write there, and leave nothing', async () => {
  const runtime = temporaryDirectory();
  const environment = { RUNTIME_DIRECTORY: '/nowhere', XDG_RUNTIME_DIR: runtime };
  const directory = () => new PrivateDirectory({ stateDirectory: temporaryDirectory(), environment });
  expect([await use(directory()), fs.readdirSync(runtime)]).toEqual([runtime, []]);
  fs.chmodSync(runtime, 0o777);
  expect(await use(directory())).not.toBe(runtime);
});

const AS_ROOT = needsThat(process.getuid?.() === 0, 'a directory of another user: it needs root');

it('a directory of another user is not used, and stays', AS_ROOT, async () => {
  const [runtime, stateDirectory] = [temporaryDirectory(), temporaryDirectory()];
  const others = path.join(stateDirectory, `${privateDirectoryPrefix(stateDirectory)}1`);
  fs.mkdirSync(others);
  for (const directory of [runtime, others]) fs.chownSync(directory, 4_711, 4_711);
  const directory = new PrivateDirectory({ stateDirectory, environment: { RUNTIME_DIRECTORY: runtime } });
  expect(await use(directory)).not.toBe(runtime);
  directory.clearLeftovers();
  expect(fs.existsSync(others)).toBe(true);
});

it('what a kill left is removed, of this agent alone; where no place can be written, the reason is thrown', async () => {
  const [runtime, stateDirectory] = [temporaryDirectory(), temporaryDirectory()];
  // As earlier versions named it.
  expect(privateDirectoryPrefix('/var/lib/state')).toBe('jobtail-f984148a6afb7019-');
  const own = privateDirectoryPrefix(stateDirectory);
  for (const name of [`${own}1`, `${own}2`, 'jobtail-other']) fs.mkdirSync(path.join(runtime, name));
  fs.writeFileSync(path.join(runtime, `${own}1`, 'key'), 'secret');
  fs.writeFileSync(path.join(runtime, `${own}file`), '');
  const environment = {
    RUNTIME_DIRECTORY: `${runtime}:/other`,
    XDG_RUNTIME_DIR: path.relative('', temporaryDirectory()),
  };
  const directory = new PrivateDirectory({ stateDirectory, environment });
  directory.clearLeftovers();
  expect(fs.readdirSync(runtime).sort()).toEqual([`${own}file`, 'jobtail-other'].sort());
  const [at, mode] = await directory.withFiles(
    (within) => ({ config: within }),
    async (within) => {
      await setImmediate();
      const config = path.join(within, 'config');
      return [fs.readFileSync(config, 'utf8'), fs.statSync(config).mode] as const;
    },
  );
  expect([path.basename(at).startsWith(own), mode & 0o777]).toEqual([true, 0o600]);
  const failing = directory.withFiles(
    () => ({ 'no/such': '' }),
    async () => {},
  );
  await expect(failing).rejects.toThrow('ENOENT');
  expect(fs.readdirSync(runtime)).toHaveLength(2);
  const full = vi.spyOn(fs, 'mkdtempSync').mockImplementation(() => {
    throw new Error('ENOSPC');
  });
  onTestFinished(() => full.mockRestore());
  await expect(use(directory)).rejects.toMatchObject({ message: 'ENOSPC' });
  expect(full.mock.calls.map(([prefix]) => path.dirname(prefix))).toEqual([runtime, '/dev/shm', stateDirectory]);
});
