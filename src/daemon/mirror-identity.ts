/** Which mirror directory this is: agents of a fleet that see the same one know it by what stands in it. */
import { randomUUID } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import { asJobtailError } from '../errors.ts';
import { flushPath } from '../system/directories.ts';

const FILE = '.jobtail-mirror';

/** The first one to ask decides. @throws JobtailError */
export async function mirrorIdentity(directory: string): Promise<string> {
  const file = path.join(directory, FILE);
  const own = `${file}.${randomUUID()}`;
  try {
    const found = await readIfThere(file);
    if (found !== undefined) return found;
    await fs.writeFile(own, `${randomUUID()}\n`, { mode: 0o640, flag: 'wx', flush: true });
    // A link is made once, whoever else makes it at the same moment, on network file systems, too.
    await fs.link(own, file).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
    await flushPath(directory);
    return (await readIfThere(file)) ?? '';
  } catch (thrown) {
    throw asJobtailError(thrown);
  } finally {
    await fs.rm(own, { force: true });
  }
}

async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return (await fs.readFile(file, 'utf8')).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
