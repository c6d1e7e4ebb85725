/**
 * Mirrors that stay open between polls: those that grew at the last one. A mirror that did not grow, or failed, is
 * closed, and so are all mirrors of a job that is no longer followed.
 *
 * On a network file system none stays open: only open() revalidates the attributes of a file.
 */
import fs from 'node:fs';
import path from 'node:path';
import type { JobId, LiveFileKey } from '../../../job.ts';
import type { LiveFileRow } from '../../../store/rows.ts';
import { EXACT, fileCalls, type Opener } from '../../../system/files.ts';
import { ALONE, type Ownership } from '../../ownership.ts';
import { Mirror, type MirrorCalls, mirrorPath } from './mirror.ts';

export interface OpenMirrorsOptions {
  /** The mirror directory. */
  readonly directory: string;
  /** Whether the directory is on a network file system. */
  readonly onNetwork: boolean;
  readonly openFile?: Opener;
  /** Checks whether the mirrors of a job may be written. */
  readonly ownership?: Pick<Ownership, 'requireLease'>;
  /** Maximum mirrors that stay open; others are opened at every poll. */
  readonly max?: number;
}

const MAX_OPEN = 256;

export class OpenMirrors {
  readonly #options: OpenMirrorsOptions;
  readonly #calls: MirrorCalls;
  #max: number;
  /** Mirrors that are not in use, by path. */
  readonly #open = new Map<string, Mirror>();

  constructor(options: OpenMirrorsOptions) {
    this.#options = options;
    const { lstat, open } = fileCalls(options.onNetwork);
    this.#calls = { lstat, open: options.openFile ?? open };
    this.#max = options.onNetwork ? 0 : (options.max ?? MAX_OPEN);
  }

  /** Number of open mirrors that are not in use. */
  get size(): number {
    return this.#open.size;
  }

  /** Acquires the mirror of a live file, created if it does not exist. The caller releases it by `giveBack`. */
  async take(jobId: JobId, key: LiveFileKey): Promise<Mirror> {
    const { directory } = this.#options;
    const file = mirrorPath(directory, jobId, key);
    const mirror = this.#open.get(file);
    if (mirror !== undefined) {
      this.#open.delete(file);
      if (mirror.isInPlace()) return mirror;
      await mirror.close();
    }
    const { ownership = ALONE } = this.#options;
    return Mirror.open(directory, file, this.#calls, () => ownership.requireLease(jobId));
  }

  /** Whether the mirror has the status of its row, without opening it. */
  async isAsLeft(row: LiveFileRow): Promise<boolean> {
    const { directory, onNetwork } = this.#options;
    const file = mirrorPath(directory, row.jobId, row);
    try {
      // On a network file system stat may take long, so it must not block the event loop.
      const { ino, mtimeNs, size } = onNetwork ? await fs.promises.lstat(file, EXACT) : fs.lstatSync(file, EXACT);
      return String(mtimeNs) === row.modifiedNs && String(ino) === row.inode && Number(size) === row.position;
    } catch {
      // The next open reports the error.
      return false;
    }
  }

  /** Releases a mirror; one that grew stays open if there is room. */
  async giveBack(mirror: Mirror, { grew }: { readonly grew: boolean }): Promise<void> {
    if (grew && this.#open.size < this.#max) this.#open.set(mirror.path, mirror);
    else await mirror.close();
  }

  /** Closes the mirrors of a job that are not in use. */
  async closeJob(jobId: JobId): Promise<void> {
    const start = path.join(this.#options.directory, jobId, path.sep);
    await this.#close((file) => file.startsWith(start));
  }

  /** Closes the mirrors that are not in use; the others are closed when they are released. */
  async close(): Promise<void> {
    this.#max = 0;
    await this.#close(() => true);
  }

  async #close(isMeant: (file: string) => boolean): Promise<void> {
    const meant = [...this.#open.values()].filter((mirror) => isMeant(mirror.path));
    for (const mirror of meant) this.#open.delete(mirror.path);
    // All bytes were flushed, so a failed close loses nothing.
    await Promise.all(meant.map((mirror) => mirror.close().catch(() => {})));
  }
}
