/**
 * The mirrors that stay open from one poll to the next: those that grew at the last one. One that brings nothing, or
 * fails, is closed, and a job that is no longer followed has none, so that there is nothing to be looked through for what
 * could be closed.
 *
 * On a network file system none stays open: there it is the opening of a file that asks how it stands.
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
  /** Whether that lies on a network file system. */
  readonly onNetwork: boolean;
  readonly openFile?: Opener;
  /** Says whether mirrors of a job may be written. */
  readonly ownership?: Pick<Ownership, 'requireLease'>;
  /** Mirrors that stay open at most; what grows beyond is opened at every poll. */
  readonly most?: number;
}

const MOST_OPEN = 256;

export class OpenMirrors {
  readonly #options: OpenMirrorsOptions;
  readonly #calls: MirrorCalls;
  #most: number;
  /** By their paths; none of them is in use. */
  readonly #open = new Map<string, Mirror>();

  constructor(options: OpenMirrorsOptions) {
    this.#options = options;
    const { lstat, open } = fileCalls(options.onNetwork);
    this.#calls = { lstat, open: options.openFile ?? open };
    this.#most = options.onNetwork ? 0 : (options.most ?? MOST_OPEN);
  }

  /** Mirrors that are open though not in use. */
  get size(): number {
    return this.#open.size;
  }

  /** The mirror of a live file, opened, and made if it is not there. Whoever takes it gives it back. */
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

  /** Whether the mirror lies there as its row says, without opening it. */
  async isAsLeft(row: LiveFileRow): Promise<boolean> {
    const { directory, onNetwork } = this.#options;
    const file = mirrorPath(directory, row.jobId, row);
    try {
      // On a network file system a look may take long, so nothing else waits for it there.
      const { ino, mtimeNs, size } = onNetwork ? await fs.promises.lstat(file, EXACT) : fs.lstatSync(file, EXACT);
      return String(mtimeNs) === row.modifiedNs && String(ino) === row.inode && Number(size) === row.position;
    } catch {
      // Whoever opens it says what is wrong.
      return false;
    }
  }

  /** Takes a mirror back; one that grew stays open if there is room. */
  async giveBack(mirror: Mirror, { grew }: { readonly grew: boolean }): Promise<void> {
    if (grew && this.#open.size < this.#most) this.#open.set(mirror.path, mirror);
    else await mirror.close();
  }

  /** Closes those of a job that are not in use. */
  async closeJob(jobId: JobId): Promise<void> {
    const start = path.join(this.#options.directory, jobId, path.sep);
    await this.#close((file) => file.startsWith(start));
  }

  /** Closes those that are not in use; the others are closed when they are given back. */
  async close(): Promise<void> {
    this.#most = 0;
    await this.#close(() => true);
  }

  async #close(isMeant: (file: string) => boolean): Promise<void> {
    const meant = [...this.#open.values()].filter((mirror) => isMeant(mirror.path));
    for (const mirror of meant) this.#open.delete(mirror.path);
    // All that is in them was flushed, so a failure to close one loses nothing.
    await Promise.all(meant.map((mirror) => mirror.close().catch(() => {})));
  }
}
