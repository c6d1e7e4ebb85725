/** Files with secrets for the tests of src/remote/signin. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';

/** A directory of the test file it is called in. */
export function secretDirectory() {
  let directory = '';
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'jobtail-signin-'));
  });
  afterAll(async () => {
    await rm(directory, { recursive: true });
  });
  const path = (name: string) => join(directory, name);
  const write = async (name: string, content: string | Uint8Array, mode = 0o600) => {
    await writeFile(path(name), content, { mode });
    return path(name);
  };
  return { path, write };
}
