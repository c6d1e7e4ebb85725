/** The calls of the real file system, kept before a run puts its own in their place. */
import fs from 'node:fs';

export function realCalls() {
  return { ...fs };
}

export type Real = ReturnType<typeof realCalls>;

type Later = <T>(name: string, at: unknown, make: (share: number) => T) => Promise<T>;

/** What is used of a `FileHandle`. */
export function handleOf(fd: number, real: Real, later: Later) {
  return {
    fd,
    stat: (options?: fs.StatOptions) => later('stat', fd, () => real.fstatSync(fd, options)),
    read: (bytes: Buffer, offset: number, length: number, position: number | null) =>
      later('read', fd, () => ({ bytesRead: real.readSync(fd, bytes, offset, length, position), buffer: bytes })),
    write: (bytes: Buffer, offset: number, length: number, position: number | null) =>
      later('write', fd, (share) => {
        const bytesWritten = real.writeSync(fd, bytes, offset, Math.ceil(length * share), position);
        return { bytesWritten, buffer: bytes };
      }),
    readFile: () => later('read', fd, () => real.readFileSync(fd)),
    truncate: (length: number) => later('truncate', fd, () => real.ftruncateSync(fd, length)),
    datasync: () => later('datasync', fd, () => real.fdatasyncSync(fd)),
    sync: () => later('sync', fd, () => real.fsyncSync(fd)),
    chmod: (mode: number) => later('chmod', fd, () => real.fchmodSync(fd, mode)),
    close: () => later('close', fd, () => real.closeSync(fd)),
  };
}
