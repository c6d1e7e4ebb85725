/** What a connection to the service reports of its configuration. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it, vi } from 'vitest';
import { connect } from '../../src/daemon/connection.ts';
import { restConfig } from '../config/files.ts';
import { SILENT } from '../support/errors.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

it('a secret that every user can read is logged with its file', async () => {
  const directory = temporaryDirectory();
  const secretFile = path.join(directory, 'hook.key');
  fs.writeFileSync(secretFile, 'SECRET-OF-A-HOOK', { mode: 0o644 });
  const notify = [{ on: ['failed'], url: 'https://hooks.example.org/', secretFile }];
  const { config } = await restConfig({ notify }, directory);
  const warn = vi.fn();
  const connection = await connect(config, { ...SILENT, warn });
  await connection.close();
  const err = `every user can read ${secretFile}, which contains the secret of a notification: chmod 600 it`;
  expect(warn.mock.calls).toEqual([[{ scope: 'the configuration', err }, 'secret not protected']]);
});
