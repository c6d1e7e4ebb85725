/** Files of results on the disk: temporary files beside their targets, leftovers of a kill, digests, first bytes. */
import { createHash, hash, randomBytes } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import { isPartialName, partialName } from '../../../safe-names.ts';
import {
  AT_ONCE_BYTES,
  EXACT,
  type FileCalls,
  type FileDigest,
  PIECE_BYTES,
  type RandomAccessFile,
} from '../../../system/files.ts';
import { READ } from '../../../system/regular-files.ts';

export interface Arrived {
  readonly path: string;
  readonly digest: FileDigest;
}

/** Readable for the group, as the mirrors are, unless the umask forbids it. */
export const FILE_MODE = 0o640;

const ENTRIES_AT_ONCE = 512;

/** Of this process: random bytes for each file take longer than its rename. */
const PREFIX = randomBytes(5).toString('hex');
let made = 0;

export function partialPath(directory: string): string {
  made = (made + 1) % 0x1000000;
  return path.join(directory, partialName(PREFIX + made.toString(16).padStart(6, '0')));
}

/** Removes the temporary files and links that a kill left below `directory`; follows no link. */
export async function clearPartials(directory: string): Promise<void> {
  const left = [directory];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    // Entry by entry: a directory may have more entries than fit into memory.
    const entries = await fs.opendir(next, { bufferSize: ENTRIES_AT_ONCE }).catch(() => []);
    for await (const entry of entries) {
      const file = path.join(next, entry.name);
      if (entry.isDirectory()) left.push(file);
      // One that stays keeps no result from coming.
      else if (isPartialName(entry.name)) await fs.rm(file, { force: true }).catch(() => {});
    }
  }
}

/** Enough first bytes to distinguish most mirrors and results. */
export const HEAD_BYTES = 1024;

/** The digest of a file, or of its first `end` bytes; undefined if it is no regular file. Follows no link. */
export async function digestOf(
  calls: FileCalls,
  file: string,
  end = Number.POSITIVE_INFINITY,
): Promise<FileDigest | undefined> {
  return await readRegular(calls, file, async (opened, size) => {
    const buffer = spare ?? Buffer.allocUnsafeSlow(PIECE_BYTES);
    spare = undefined;
    try {
      const small = size < AT_ONCE_BYTES ? await readSmall(opened, size, buffer) : undefined;
      if (small === undefined) return await readLarge(opened, end, buffer);
      const wanted = small.subarray(0, end);
      return { bytes: wanted.length, sha256: hash('sha256', wanted, 'hex') };
    } finally {
      spare = buffer;
    }
  });
}

/** The first bytes of a file, at most `max`; undefined if it is no regular file. Follows no link. */
export async function headOf(calls: FileCalls, file: string, max: number): Promise<Buffer | undefined> {
  return await readRegular(calls, file, async (opened, size) => {
    const head = Buffer.allocUnsafeSlow(Math.min(max, size));
    const { bytesRead } = await opened.read(head, 0, head.length, 0);
    return head.subarray(0, bytesRead);
  });
}

/** Reused: allocating a buffer takes longer than reading a small file. */
let spare: Buffer | undefined;

async function readRegular<T>(
  calls: FileCalls,
  file: string,
  read: (opened: RandomAccessFile, size: number) => Promise<T>,
): Promise<T | undefined> {
  let opened: RandomAccessFile;
  try {
    opened = await calls.open(file, READ);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ELOOP') return undefined;
    throw error;
  }
  try {
    const stat = await opened.stat(EXACT);
    return stat.isFile() ? await read(opened, Number(stat.size)) : undefined;
  } finally {
    await opened.close();
  }
}

async function readSmall(file: RandomAccessFile, size: number, buffer: Buffer): Promise<Buffer | undefined> {
  const { bytesRead } = await file.read(buffer, 0, size + 1, 0);
  return bytesRead === size ? buffer.subarray(0, size) : undefined;
}

async function readLarge(file: RandomAccessFile, end: number, buffer: Buffer): Promise<FileDigest> {
  const sha256 = createHash('sha256');
  for (let at = 0; ; ) {
    const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, end - at), at);
    if (bytesRead === 0) return { bytes: at, sha256: sha256.digest('hex') };
    sha256.update(buffer.subarray(0, bytesRead));
    at += bytesRead;
  }
}
