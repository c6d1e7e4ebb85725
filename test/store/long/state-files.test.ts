/** Whatever stands in the place of a file of the state: it is not followed, read, written, waited for or removed. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { lockDirectory, lockHolder } from '../../../src/store/lock.ts';
import { Store } from '../../../src/store/store.ts';
import { removedDirectory } from '../../support/temp-directory.ts';

const openStore = (directory: string, owner: boolean) =>
  new Store({ directory, service: 'service', owner, now: () => 1_700_000_000_000 });

/** Opens the state as each kind of user does, and wakes the agent up. */
const USES: Record<string, (directory: string) => void> = {
  'the lock is taken': (directory) => lockDirectory(directory).release(),
  'the lock is looked at': (directory) => void lockHolder(directory),
  'the owner opens it': (directory) => openStore(directory, true).close(),
  'a command opens it': (directory) => openStore(directory, false).close(),
  'a command wakes the agent': (directory) => {
    const store = openStore(directory, false);
    try {
      store.wake();
    } finally {
      store.close();
    }
  },
};

const DATABASES = ['the owner opens it', 'a command opens it', 'a command wakes the agent'];
const REFUSED_BY: Record<string, readonly string[]> = {
  wake: ['a command wakes the agent'],
  'agent.db': DATABASES,
  'agent.db-wal': DATABASES,
  'agent.db-shm': DATABASES,
  'agent.db-journal': DATABASES,
  'agent.lock': ['the lock is taken', 'the lock is looked at'],
  'agent.lock-wal': ['the lock is taken', 'the lock is looked at'],
  'agent.lock-journal': ['the lock is taken', 'the lock is looked at'],
};

const TRAPS: Record<string, (at: string, there: string) => void> = {
  'a link to a file': (at, there) => fs.symlinkSync(path.join(there, 'agent.db'), at),
  'a link to nothing': (at, there) => fs.symlinkSync(path.join(there, 'made'), at),
  'a link to a directory': (at, there) => fs.symlinkSync(there, at),
  'a pipe': (at) => void execFileSync('mkfifo', [at]),
  'a directory': (at) => fs.mkdirSync(at),
};

/** A state that was in use. */
function usedState(place: string, name: string): string {
  const directory = path.join(place, name);
  fs.mkdirSync(directory);
  lockDirectory(directory).release();
  const store = openStore(directory, true);
  store.wake();
  store.close();
  return directory;
}

const linesOf = (directory: string) =>
  execFileSync('sh', ['-c', 'stat -c "%n %i %s %y" *; sha256sum *'], { cwd: directory, encoding: 'utf8' });

it.for(Object.keys(TRAPS).flatMap((trap) => Object.keys(REFUSED_BY).map((file) => [trap, file] as const)))(
  '%s in the place of %s',
  ([trap, file]) =>
    removedDirectory(async (place) => {
      const [state, there] = [usedState(place, 'state'), usedState(place, 'there')];
      const at = path.join(state, file);
      fs.rmSync(at, { force: true });
      TRAPS[trap]?.(at, there);
      const before = [linesOf(there), fs.lstatSync(at).ino];
      for (const [use, done] of Object.entries(USES)) {
        // Nobody has a lock that is not there.
        const isMissing = use === 'the lock is looked at' && file === 'agent.lock' && trap === 'a link to nothing';
        const isNone = isMissing || (file === 'agent.db' && trap === 'a link to nothing' && /^a command/.test(use));
        if (REFUSED_BY[file]?.includes(use) !== true || isMissing) expect(() => done(state), use).not.toThrow();
        else expect(() => done(state), use).toThrow(isNone ? 'there is no state' : `${at} is no regular file`);
        expect([linesOf(there), fs.lstatSync(at).ino], use).toEqual(before);
      }
    }),
);
