/**
 * The paths of one listing that are spoken for, as a tree: a directory is in it once, however many names lead through
 * it. Those that differ by Unicode normalisation only are one file on some file systems.
 */
import { partsOf } from '../../../path-parts.ts';

/** What the results of a job may be: files, and files and directories together. More would fill the memory. */
const MOST_FILES = 200_000;
const MOST_NODES = 500_000;

const FILE = -1;
const ROOT = 0;

export class TakenPaths {
  readonly #foldsCase: boolean;
  /** By the number of the directory and the name in it: the number of another directory, or FILE. */
  readonly #nodes = new Map<string, number>();
  #files = 0;
  #directories = 0;

  constructor(foldsCase: boolean) {
    this.#foldsCase = foldsCase;
  }

  /** Takes a path, or says why it cannot be had. */
  take(parts: readonly string[]): string | undefined {
    const names = this.#normal(parts);
    let directory = ROOT;
    let at = 0;
    for (; at < names.length; at++) {
      const found = this.#nodes.get(`${directory}/${names[at]}`);
      if (found === undefined) break;
      if (found === FILE)
        return at === names.length - 1
          ? 'it names the same file as another result'
          : 'another result is a file where this one needs a directory';
      directory = found;
    }
    if (at === names.length) return 'another result needs a directory of this name';
    if (this.#files >= MOST_FILES) return `the job has more than ${MOST_FILES} results`;
    if (this.#nodes.size + names.length - at > MOST_NODES)
      return `the results of the job have more than ${MOST_NODES} files and directories`;
    for (; at < names.length - 1; at++) {
      this.#directories += 1;
      this.#nodes.set(`${directory}/${names[at]}`, this.#directories);
      directory = this.#directories;
    }
    this.#nodes.set(`${directory}/${names[at]}`, FILE);
    this.#files += 1;
    return undefined;
  }

  /** Whether a file or a directory stands, or is to stand, at a path. */
  has(parts: readonly string[]): boolean {
    let node: number | undefined = ROOT;
    for (const name of this.#normal(parts)) node = this.#nodes.get(`${node}/${name}`);
    return node !== undefined;
  }

  #normal(parts: readonly string[]): readonly string[] {
    const path = parts.join('/');
    const normal = path.normalize('NFC');
    if (this.#foldsCase) return partsOf(normal.toLowerCase().normalize('NFC'));
    return normal === path ? parts : partsOf(normal);
  }
}
