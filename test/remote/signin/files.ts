/** Files with secrets for the tests of src/remote/signin. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { directoryOfFile } from '../../support/temp-directory.ts';

/** A directory of the test file it is called in. */
export function secretDirectory() {
  const directory = directoryOfFile();
  const path = (name: string) => join(directory, name);
  const write = async (name: string, content: string | Uint8Array, mode = 0o600) => {
    await writeFile(path(name), content, { mode });
    return path(name);
  };
  return { path, write };
}
