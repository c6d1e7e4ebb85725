/** The calls on an open mirror; of a local one, those that the system answers at once are not handed to a thread. */
import fs from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { WritableFile, Written } from '../../../system/write-all.ts';

interface Read {
  readonly bytesRead: number;
}

/** What a mirror needs of an open file; a `FileHandle` is one. */
export interface MirrorFile extends WritableFile {
  stat(exact: { readonly bigint: true }): fs.BigIntStats | Promise<fs.BigIntStats>;
  read(bytes: Buffer, offset: number, length: number, position: number): Read | Promise<Read>;
  truncate(length: number): Promise<void>;
  datasync(): Promise<void>;
  close(): Promise<void>;
}

/** Opens files; tests put a wrapped one in its place. */
export type OpenFile = (file: string, flags: number, mode: number) => Promise<MirrorFile>;

/** What was written a moment ago is still in memory; a read of more than that may have to wait for the disk. */
const SMALL_BYTES = 4 * 1024;
/**
 * Written in one call. The kernel takes memory for a larger one in larger blocks, and where a virtual machine gives its
 * free memory back to the host, these are the ones that have to be asked for again, which takes longer than the writing.
 */
const WRITTEN_BYTES = 64 * 1024;

/**
 * Opens a file that does not lie on a network file system, where a look, a write or a small read could take for ever.
 * Handing a call to a thread and back costs ten times the call itself.
 */
export async function openLocalFile(file: string, flags: number, mode: number): Promise<MirrorFile> {
  return new LocalFile(await open(file, flags, mode));
}

class LocalFile implements MirrorFile {
  readonly #handle: FileHandle;

  constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  stat(exact: { readonly bigint: true }): fs.BigIntStats {
    return fs.fstatSync(this.#handle.fd, exact);
  }

  read(bytes: Buffer, offset: number, length: number, position: number): Read | Promise<Read> {
    if (length > SMALL_BYTES) return this.#handle.read(bytes, offset, length, position);
    return { bytesRead: fs.readSync(this.#handle.fd, bytes, offset, length, position) };
  }

  write(bytes: Buffer, offset: number, length: number, position: number | null): Written {
    return { bytesWritten: fs.writeSync(this.#handle.fd, bytes, offset, Math.min(length, WRITTEN_BYTES), position) };
  }

  truncate(length: number): Promise<void> {
    return this.#handle.truncate(length);
  }

  datasync(): Promise<void> {
    return this.#handle.datasync();
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}
