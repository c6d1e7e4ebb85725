/** Configuration files for the tests of src/config. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import { JobtailError } from '../../src/errors.ts';
import { diskDirectory } from '../support/temp-directory.ts';

/** The least that is a configuration. */
export const MINIMAL = `service:
  fileTransferUrl: https://m.example.org/FileTransferWs
  namespace: http://m.example.org/
  baseUrl: https://m.example.org
auth:
  username: alice
  passwordFile: password
`;

/** A directory of the test file it is called in, and ways to load YAML from a file in it. */
export function configDirectory() {
  let directory = '';
  let files = 0;
  beforeAll(async () => {
    directory = await mkdtemp(join(diskDirectory(), 'jobtail-config-'));
  });
  afterAll(async () => {
    await rm(directory, { recursive: true });
  });
  const path = (name: string) => join(directory, name);
  const write = async (content: string | Uint8Array, name = `${files++}.yaml`) => {
    await writeFile(path(name), content);
    return path(name);
  };
  const load = async (content: string | Uint8Array): Promise<Config> => loadConfig(await write(content));
  const refusal = async (content: string | Uint8Array): Promise<JobtailError> => refused(load(content));
  return { path, write, load, refusal };
}

/** The error that `promise` must reject with. */
export async function refused(promise: Promise<unknown>): Promise<JobtailError> {
  const thrown: unknown = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (thrown instanceof JobtailError) return thrown;
  throw new Error('it was expected to reject with a JobtailError', { cause: thrown });
}
