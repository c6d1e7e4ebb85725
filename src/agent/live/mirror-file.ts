/** The calls on an open mirror; of a local one, those that the system answers at once are not handed to a thread. */
import fs from 'node:fs';

interface Read {
  readonly bytesRead: number;
}

/** What a mirror needs of an open file; a `FileHandle` is one. */
export interface MirrorFile {
  stat(exact: { readonly bigint: true }): fs.BigIntStats | Promise<fs.BigIntStats>;
  read(bytes: Buffer, offset: number, length: number, position: number): Read | Promise<Read>;
  write(bytes: Buffer, offset: number, length: number, position: number): Promise<{ readonly bytesWritten: number }>;
  truncate(length: number): Promise<void>;
  datasync(): Promise<void>;
  close(): Promise<void>;
}

/** Opens files; tests put a wrapped one in its place. */
export type OpenFile = (file: string, flags: number, mode: number) => Promise<MirrorFile>;

/** What was written a moment ago is still in memory; a read of more than that may have to wait for the disk. */
const SMALL_BYTES = 4 * 1024;

/**
 * Opens a file that does not lie on a network file system, where a look or a small read could take for ever. Handing a
 * call to a thread and back costs ten times the call itself.
 */
export function openLocalFile(file: string, flags: number, mode: number): Promise<MirrorFile> {
  return new Promise((resolve, reject) => {
    fs.open(file, flags, mode, (error, descriptor) => (error ? reject(error) : resolve(new LocalFile(descriptor))));
  });
}

class LocalFile implements MirrorFile {
  readonly #descriptor: number;

  constructor(descriptor: number) {
    this.#descriptor = descriptor;
  }

  stat(exact: { readonly bigint: true }): fs.BigIntStats {
    return fs.fstatSync(this.#descriptor, exact);
  }

  read(bytes: Buffer, offset: number, length: number, position: number): Read | Promise<Read> {
    if (length <= SMALL_BYTES) return { bytesRead: fs.readSync(this.#descriptor, bytes, offset, length, position) };
    return new Promise((resolve, reject) => {
      fs.read(this.#descriptor, bytes, offset, length, position, (error, bytesRead) =>
        error ? reject(error) : resolve({ bytesRead }),
      );
    });
  }

  write(bytes: Buffer, offset: number, length: number, position: number): Promise<{ readonly bytesWritten: number }> {
    return new Promise((resolve, reject) => {
      fs.write(this.#descriptor, bytes, offset, length, position, (error, bytesWritten) =>
        error ? reject(error) : resolve({ bytesWritten }),
      );
    });
  }

  truncate(length: number): Promise<void> {
    return this.#call((done) => fs.ftruncate(this.#descriptor, length, done));
  }

  datasync(): Promise<void> {
    return this.#call((done) => fs.fdatasync(this.#descriptor, done));
  }

  close(): Promise<void> {
    return this.#call((done) => fs.close(this.#descriptor, done));
  }

  #call(call: (done: fs.NoParamCallback) => void): Promise<void> {
    return new Promise((resolve, reject) => call((error) => (error ? reject(error) : resolve())));
  }
}
