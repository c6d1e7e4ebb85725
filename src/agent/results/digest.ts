/** Length and sha256 of files. */
import { createHash, hash } from 'node:crypto';
import fs from 'node:fs';
import { promisify } from 'node:util';
import type { FileDigest } from '../ports.ts';

/** Read in one go: the way through the thread pool would cost ten times as much as the reading. */
const SMALL_BYTES = 256 * 1024;
const PIECE_BYTES = 1024 * 1024;

/** The digest of a file, of its first `end` bytes if given; undefined if no regular file stands there. Follows no link. */
export async function digestOf(file: string, end = Number.POSITIVE_INFINITY): Promise<FileDigest | undefined> {
  const fd = openToRead(file);
  if (fd === undefined) return undefined;
  try {
    const stat = fs.fstatSync(fd);
    if (!stat.isFile()) return undefined;
    const small = stat.size > SMALL_BYTES ? undefined : readSmall(fd, stat.size);
    if (small === undefined) return await readLarge(fd, end);
    const wanted = small.subarray(0, end);
    return { bytes: wanted.length, sha256: hash('sha256', wanted, 'hex') };
  } finally {
    fs.closeSync(fd);
  }
}

function openToRead(file: string): number | undefined {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = fs.constants;
  try {
    return fs.openSync(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ELOOP') return undefined;
    throw error;
  }
}

let smallFile: Buffer | undefined;

/** All of a file, until the next call; undefined if it is not, or no longer, of this size. */
function readSmall(fd: number, size: number): Buffer | undefined {
  smallFile ??= Buffer.allocUnsafeSlow(SMALL_BYTES + 1);
  return fs.readSync(fd, smallFile, 0, size + 1, 0) === size ? smallFile.subarray(0, size) : undefined;
}

async function readLarge(fd: number, end: number): Promise<FileDigest> {
  const read = promisify(fs.read);
  const sha256 = createHash('sha256');
  const buffer = Buffer.allocUnsafe(PIECE_BYTES);
  for (let at = 0; ; ) {
    const { bytesRead } = await read(fd, buffer, 0, Math.min(buffer.length, end - at), at);
    if (bytesRead === 0) return { bytes: at, sha256: sha256.digest('hex') };
    sha256.update(buffer.subarray(0, bytesRead));
    at += bytesRead;
  }
}
