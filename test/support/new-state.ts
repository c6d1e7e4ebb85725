/** The state that an agent begins with, for stores that are opened by the thousand. */
import fs from 'node:fs';
import path from 'node:path';
import { Store } from '../../src/store/store.ts';
import { memoryDirectory } from './temp-directory.ts';

const NAME = 'agent.db';

/** Made once: to make it takes as long as several polls. */
let database: Buffer | undefined;

/** Makes the directory with the database of a new state, unless there is one. */
export function newState(directory: string): string {
  fs.mkdirSync(directory, { recursive: true });
  database ??= databaseOfNew();
  const file = path.join(directory, NAME);
  if (!fs.existsSync(file)) fs.writeFileSync(file, database, { mode: 0o600 });
  return directory;
}

function databaseOfNew(): Buffer {
  const directory = fs.mkdtempSync(path.join(memoryDirectory(), 'jobtail-test-'));
  try {
    new Store({ directory, service: 'model', owner: true, now: () => 0 }).close();
    return fs.readFileSync(path.join(directory, NAME));
  } finally {
    fs.rmSync(directory, { recursive: true });
  }
}
