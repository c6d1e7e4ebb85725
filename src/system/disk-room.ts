/** What may be taken of a disk. */
import fs from 'node:fs/promises';
import { JobtailError } from '../errors.ts';

/** Keeps some room on the disk of a directory free (`mirror.minFreeBytes`). */
export class DiskReserve {
  readonly #directory: string;
  readonly #minFreeBytes: number;

  constructor(directory: string, minFreeBytes: number) {
    this.#directory = directory;
    this.#minFreeBytes = minFreeBytes;
  }

  /** Whether so many bytes more can be written. */
  async hasRoomFor(bytes: number): Promise<boolean> {
    if (this.#minFreeBytes === 0) return true;
    const { bavail, bsize } = await fs.statfs(this.#directory);
    return bavail * bsize - bytes >= this.#minFreeBytes;
  }

  /** The reserve begins. */
  outOfRoom(): JobtailError {
    return new JobtailError('disk-full', `less than mirror.minFreeBytes would stay free in ${this.#directory}`, {
      hint: 'free some space, or lower mirror.minFreeBytes; the agent goes on by itself',
    });
  }

  async require(bytes: number): Promise<void> {
    if (!(await this.hasRoomFor(bytes))) throw this.outOfRoom();
  }
}
