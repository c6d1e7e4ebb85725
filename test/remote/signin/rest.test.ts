/** Signing in as the releases that speak REST have it (docs/dev/rest.md 4.1, 4.3), against the sandbox. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Sandbox } from '../../../simulator/sandbox.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { connect } from '../../../src/daemon/connection.ts';
import { JobtailError } from '../../../src/errors.ts';
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

/** Signs in as the section `auth` says, and makes a call: the kind of grant, or the error. */
async function outcome(auth: Record<string, unknown>, secret: string): Promise<unknown> {
  const file = join(directory, 'config.yaml');
  await writeFile(join(directory, 'secret'), secret);
  const service = { protocol: 'rest', baseUrl: sandbox.baseUrl };
  const state = { directory: join(directory, 'state') };
  await writeFile(file, JSON.stringify({ service, auth: { username: 'alice', ...auth }, state }));
  const connection = await connect(await loadConfig(file), SILENT);
  try {
    const { kind } = await connection.session.current(signal);
    await connection.remote.listChangedFiles(jobId('501'), signal);
    return kind;
  } catch (error) {
    if (!(error instanceof JobtailError)) throw error;
    expect(`${error.message} ${error.hint}`).not.toContain(secret);
    return error.code;
  } finally {
    await connection.close();
  }
}

describe('from release 6.2 on', () => {
  test.each<[string, string]>([
    ['json-string', 'session'],
    ['header', 'bearer'],
  ])('a token is good for a session, or to be shown with every call: %s', async (signInAnswer, kind) => {
    sandbox.setHabits({ release: '6.3', signInAnswer: signInAnswer as 'header' | 'json-string' });
    expect(await outcome({ method: 'openid', tokenFile: 'secret' }, 'alices.token')).toBe(kind);
    expect(await outcome({ method: 'external-token', tokenFile: 'secret' }, 'alices.token')).toBe(kind);
  });

  test.each(['6.2', '6.3', '6.4'] as const)('user name and password may come with each call of %s', async (release) => {
    sandbox.setHabits({ release });
    const { signIns } = sandbox.counters;
    expect(await outcome({ method: 'api-key', passwordFile: 'secret' }, PASSWORD)).toBe('api-key');
    expect(sandbox.counters.signIns).toBe(signIns);
    expect(await outcome({ method: 'api-key', passwordFile: 'secret' }, 'battery staple')).toBe('sign-in-refused');
  });

  test('the cloud platform gives no session code, which is said', async () => {
    const auth = { method: 'cloud-platform', tokenFile: 'secret', projectId: 7 };
    expect(await outcome(auth, 'alices.token')).toBe('unexpected-answer');
  });
});
