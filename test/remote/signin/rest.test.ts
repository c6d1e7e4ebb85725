/** Signing in as the releases that speak REST have it (docs/dev/rest.md 4.1, 4.3), against the sandbox. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { Sandbox } from '../../../simulator/sandbox.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { connect } from '../../../src/daemon/connection.ts';
import { SILENT } from '../../support/errors.ts';
import { directoryOfFile } from '../../support/temp-directory.ts';
import { jobId } from '../../support/wire-remote.ts';

const signal = new AbortController().signal;
const PASSWORD = 'correct horse';

const directory = directoryOfFile();
let sandbox: Sandbox;

beforeAll(async () => {
  const users = [{ username: 'alice', password: PASSWORD, token: 'alices.token' }];
  sandbox = await Sandbox.start({ directory: join(directory, 'cluster'), users });
  await sandbox.submitJob({ jobId: '501', tasks: [{}] });
});

afterAll(() => sandbox.close());

test.each([
  ['openid', 'json-string', 'session'],
  ['external-token', 'json-string', 'session'],
  ['openid', 'header', 'bearer'],
  ['external-token', 'header', 'bearer'],
  ['api-key', 'header', 'api-key'],
] as const)('of release 6.3, the secret of %s is good for a session, or shown with each call: %s', async (...row) => {
  const [method, signInAnswer, kind] = row;
  sandbox.setHabits({ release: '6.3', signInAnswer });
  const file = join(directory, 'config.yaml');
  await writeFile(join(directory, 'secret'), method === 'api-key' ? PASSWORD : 'alices.token');
  const auth = { method, username: 'alice', [method === 'api-key' ? 'passwordFile' : 'tokenFile']: 'secret' };
  const service = { protocol: 'rest', baseUrl: sandbox.baseUrl };
  await writeFile(file, JSON.stringify({ service, auth, state: { directory: join(directory, 'state') } }));
  const connection = await connect(await loadConfig(file), SILENT);
  onTestFinished(() => connection.close());
  expect(await connection.session.current(signal)).toMatchObject({ kind });
  await connection.remote.listChangedFiles(jobId('501'), signal);
});
