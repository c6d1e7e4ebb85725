/** A configuration for REST, and the state that this process owns as a running agent would. */
import fs from 'node:fs';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { openOwnStore } from '../../src/daemon/own-state.ts';
import { SILENT } from '../support/errors.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

export async function ownState() {
  const directory = temporaryDirectory();
  const file = path.join(directory, 'config.yaml');
  fs.writeFileSync(path.join(directory, 'password'), 'secret', { mode: 0o600 });
  const service = { protocol: 'rest', baseUrl: 'http://127.0.0.1:9' };
  const auth = { username: 'alice', passwordFile: 'password' };
  const state = { directory: path.join(directory, 'state') };
  fs.writeFileSync(file, JSON.stringify({ service, auth, mirror: { directory }, state }));
  const config = await loadConfig(file);
  const { store, close } = openOwnStore(config, SILENT);
  onTestFinished(close);
  return { file, config, store };
}
