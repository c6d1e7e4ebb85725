/** Configuration files for the tests of src/config. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { JobtailError } from '../../src/errors.ts';
import { failureOf } from '../support/errors.ts';
import { directoryOfFile, diskDirectory } from '../support/temp-directory.ts';

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
