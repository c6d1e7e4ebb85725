/** What a connection to the service reports of its configuration. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it, vi } from 'vitest';
import { connect } from '../../src/daemon/connection.ts';
import { restConfig } from '../config/files.ts';
import { SILENT } from '../support/errors.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

it('a secret that every user can read is logged with its file, and a failed sign-in with its code', async () => {
  const directory = temporaryDirectory();
  const secretFile = path.join(directory, 'hook.key');
  fs.writeFileSync(secretFile, 'SECRET-OF-A-HOOK', { mode: 0o644 });
  const notify = [{ on: ['failed'], url: 'https://hooks.example.org/', secretFile }];
  const { config } = await restConfig({ notify }, directory);
  const password = path.join(directory, 'password');
  fs.chmodSync(password, 0o644);
  const [warn, debug] = [vi.fn(), vi.fn()];
  const connection = await connect(config, { ...SILENT, warn, debug });
  // Nothing listens there.
  const refused = connection.session.current(new AbortController().signal);
  await expect(refused).rejects.toMatchObject({ code: 'unreachable' });
  await connection.close();
  const failed = { code: 'unreachable', err: expect.stringContaining('127.0.0.1') };
  expect(debug.mock.calls).toContainEqual([failed, 'sign-in failed']);
  const err = `every user can read ${secretFile}, which contains the secret of a notification: chmod 600 it`;
  const ofPassword = `every user can read ${password}, which contains the password: chmod 600 it`;
  expect(warn.mock.calls).toEqual([
    [{ scope: 'the configuration', err }, 'secret not protected'],
    [{ scope: 'the service', err: ofPassword }, 'secret not protected'],
  ]);
});
