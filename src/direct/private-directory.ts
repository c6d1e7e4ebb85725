/**
 * A directory for a private key while OpenSSH needs it as a file: readable by the agent only, in memory (tmpfs) if
 * possible. It is removed after the transfer; leftovers of a kill are removed at the next start.
 */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { isWritableByOthers } from '../system/owners.ts';

interface PrivateDirectoryOptions {
  /** Distinguishes the agents of one machine, and is the last fallback. */
  readonly stateDirectory: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

export class PrivateDirectory {
  readonly #places: readonly string[];
  readonly #prefix: string;

  constructor({ stateDirectory, environment }: PrivateDirectoryOptions) {
    const runtime = environment['RUNTIME_DIRECTORY']?.split(':')[0];
    const named = [runtime, environment['XDG_RUNTIME_DIR']].filter((place) => place !== undefined && isOurs(place));
    this.#places = [...(named as string[]), '/dev/shm', stateDirectory];
    this.#prefix = privateDirectoryPrefix(stateDirectory);
  }

  /** Removes leftovers of earlier processes; only with the lock of the state directory. */
  clearLeftovers(): void {
    for (const place of this.#places) {
      for (const name of namesIn(place)) {
        const directory = path.join(place, name);
        if (!name.startsWith(this.#prefix)) continue;
        const stat = fs.lstatSync(directory, { throwIfNoEntry: false });
        if (stat?.isDirectory() && stat.uid === process.geteuid?.())
          fs.rmSync(directory, { recursive: true, force: true });
      }
    }
  }

  /** Writes files to a new directory while `work` runs; their content may name that directory. */
  async withFiles<T>(
    contentsFor: (directory: string) => Readonly<Record<string, string>>,
    work: (directory: string) => Promise<T>,
  ): Promise<T> {
    const directory = this.#newDirectory();
    try {
      for (const [name, content] of Object.entries(contentsFor(directory))) {
        fs.writeFileSync(path.join(directory, name), content, { mode: 0o600 });
      }
      return await work(directory);
    } finally {
      fs.rmSync(directory, { recursive: true, force: true });
    }
  }

  #newDirectory(): string {
    let failure: unknown;
    for (const place of this.#places) {
      try {
        return fs.mkdtempSync(path.join(place, this.#prefix));
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }
}

/** Whether it is a directory of this user that no other user can write. */
function isOurs(directory: string): boolean {
  if (!path.isAbsolute(directory)) return false;
  const stat = fs.lstatSync(directory, { throwIfNoEntry: false });
  return stat?.isDirectory() === true && stat.uid === process.geteuid?.() && !isWritableByOthers(stat);
}

export function privateDirectoryPrefix(stateDirectory: string): string {
  const agent = createHash('sha256').update(path.resolve(stateDirectory)).digest('hex').slice(0, 16);
  return `jobtail-${agent}-`;
}

function namesIn(place: string): string[] {
  try {
    return fs.readdirSync(place);
  } catch {
    return [];
  }
}
