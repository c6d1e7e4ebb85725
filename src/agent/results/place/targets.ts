/** What stands where results belong; what is neither a file nor a link of the agent is not followed and not replaced. */
import path from 'node:path';
import { JobtailError } from '../../../errors.ts';
import { inTheWay, makeDirectories } from '../../../system/directories.ts';
import type { FileCalls } from '../../../system/files.ts';

/** Nothing, a link to a mirror that the agent made, or a file of so many bytes. */
export type Present = undefined | 'link' | { readonly bytes: number };

/** A link that the agent itself made: to a mirror beside `results/`. */
const OWN_LINK = /^(?:\.\.\/)+live\/-?[0-9]+\/(?:stdout|stderr|log|progress)\.log$/;

/** The targets of files that take their places together: each directory on the way to them is made once. */
export class Targets {
  readonly #root: string;
  readonly #calls: FileCalls;
  readonly #directories = new Set<string>();

  /** What is above `root` is not checked. */
  constructor(root: string, calls: FileCalls) {
    this.#root = root;
    this.#calls = calls;
  }

  /**
   * What is at a target; the directories on the way are made.
   * @throws JobtailError `local-io` if the target or one of them is not to be used
   */
  async presentAt(target: string): Promise<Present> {
    const directory = path.dirname(target);
    if (!this.#directories.has(directory)) {
      await makeDirectories(this.#root, directory);
      this.#directories.add(directory);
    }
    const stat = await this.#calls.lstat(target);
    if (stat === undefined) return undefined;
    if (stat.isSymbolicLink()) return requireOwn(target, await this.#calls.readlink(target));
    if (!stat.isFile()) throw inTheWay(target, 'file');
    return { bytes: stat.size };
  }
}

function requireOwn(target: string, text: string): 'link' {
  if (OWN_LINK.test(text)) return 'link';
  throw new JobtailError('local-io', `${target} is a link, and is not followed or replaced`, {
    hint: `move ${target} out of the way`,
  });
}
