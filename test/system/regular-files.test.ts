/** Files that are opened only if they are regular ones. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import fs, { constants } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { expect, it } from 'vitest';
import { openIfThere, openRegular } from '../../src/system/regular-files.ts';
import { openFilesIn, temporaryDirectory } from '../support/temp-directory.ts';

it('a file is opened for reading, or with other flags and rights', () => {
  const file = path.join(temporaryDirectory(), 'file');
  expect(openIfThere(file)).toBeUndefined();
  expect(() => openRegular(file)).toThrow('ENOENT');
  const made = openRegular(file, undefined, constants.O_WRONLY | constants.O_CREAT, 0o600);
  fs.writeSync(made, 'content');
  const opened = openIfThere(file);
  if (opened === undefined) throw new Error('it is there');
  expect([fs.readFileSync(opened, 'utf8'), fs.fstatSync(made).mode & 0o777]).toEqual(['content', 0o600]);
  for (const each of [made, opened]) fs.closeSync(each);
  expect(() => openIfThere(path.join(file, 'below'))).toThrow('ENOTDIR');
});

it.each<[string, (at: string) => unknown]>([
  ['a link', (at) => fs.symlinkSync('/etc/hostname', at)],
  ['a directory', (at) => fs.mkdirSync(at)],
  ['a pipe', (at) => execFileSync('mkfifo', [at])],
  ['a socket', async (at) => once(net.createServer().listen(at).unref(), 'listening')],
])('%s in the place of a file is refused, for reading and for writing, and stays closed', async (_, make) => {
  const directory = temporaryDirectory();
  const at = path.join(directory, 'file');
  await make(at);
  const message = `${at} is not a file, and is not followed or replaced`;
  const refusal = { code: 'local-io', message, hint: `move ${at} out of the way` };
  expect(() => openIfThere(at)).toThrow(expect.objectContaining(refusal));
  const own = (found: string) => new Error(`refused: ${found}`);
  for (const flags of [undefined, constants.O_WRONLY, constants.O_RDWR])
    expect(() => openRegular(at, own, flags)).toThrow(`refused: ${at}`);
  expect(openFilesIn(directory)).toBe(0);
});
