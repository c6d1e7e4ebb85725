/** Configuration files. */
import fs from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { JobtailError } from '../../src/errors.ts';
import { failureOf } from '../support/errors.ts';
import { directoryOfFile, diskDirectory, temporaryDirectory } from '../support/temp-directory.ts';

/** The least that is a configuration. */
export const MINIMAL = `service:
  protocol: soap
  fileTransferUrl: https://m.example.org/FileTransferWs
  namespace: http://m.example.org/
  baseUrl: https://m.example.org
auth:
  username: alice
  passwordFile: password
`;

/** A configuration for REST in a directory of the test, with other sections where the test has them. */
export async function restConfig(sections: Readonly<Record<string, unknown>> = {}, directory = temporaryDirectory()) {
  const file = join(directory, 'config.yaml');
  fs.writeFileSync(join(directory, 'password'), 'secret', { mode: 0o600 });
  const service = { protocol: 'rest', baseUrl: 'http://127.0.0.1:9' };
  const auth = { username: 'alice', passwordFile: 'password' };
  const directories = { mirror: { directory: 'mirror' }, state: { directory: 'state' } };
  fs.writeFileSync(file, JSON.stringify({ service, auth, ...directories, ...sections }), { mode: 0o600 });
  return { directory, file, config: await loadConfig(file) };
}

/** A directory of the test file it is called in, and ways to load YAML from a file in it. */
export function configDirectory() {
  const directory = directoryOfFile(diskDirectory());
  let files = 0;
  const path = (name: string) => join(directory, name);
  const write = async (content: string | Uint8Array, name = `${files++}.yaml`) => {
    await writeFile(path(name), content);
    return path(name);
  };
  const load = async (content: string | Uint8Array): Promise<Config> => loadConfig(await write(content));
  const refusal = async (content: string | Uint8Array): Promise<JobtailError> => failureOf(load(content));
  return { path, write, load, refusal };
}
