/** Length and sha256 of files, and how they begin. */
import { createHash, hash } from 'node:crypto';
import { constants } from 'node:fs';
import { AT_ONCE_BYTES, EXACT, type FileCalls, type FileDigest, type OpenFile } from '../../../system/files.ts';

const PIECE_BYTES = 1024 * 1024;
/** Of mirrors and results, to tell most of them apart. */
export const HEAD_BYTES = 1024;

/** The digest of a file, of its first `end` bytes if given; undefined if no regular file stands there. Follows no link. */
export async function digestOf(
  calls: FileCalls,
  file: string,
  end = Number.POSITIVE_INFINITY,
): Promise<FileDigest | undefined> {
  const opened = await openToRead(calls, file);
  if (opened === undefined) return undefined;
  const buffer = spare ?? Buffer.allocUnsafeSlow(PIECE_BYTES);
  spare = undefined;
  try {
    const stat = await opened.stat(EXACT);
    if (!stat.isFile()) return undefined;
    const small = stat.size < AT_ONCE_BYTES ? await readSmall(opened, Number(stat.size), buffer) : undefined;
    if (small === undefined) return await readLarge(opened, end, buffer);
    const wanted = small.subarray(0, end);
    return { bytes: wanted.length, sha256: hash('sha256', wanted, 'hex') };
  } finally {
    spare = buffer;
    await opened.close();
  }
}

/** The first bytes of a file, at most so many; undefined if no regular file stands there. Follows no link. */
export async function headOf(calls: FileCalls, file: string, most: number): Promise<Buffer | undefined> {
  const opened = await openToRead(calls, file);
  if (opened === undefined) return undefined;
  try {
    const stat = await opened.stat(EXACT);
    if (!stat.isFile()) return undefined;
    const head = Buffer.allocUnsafeSlow(Math.min(most, Number(stat.size)));
    const { bytesRead } = await opened.read(head, 0, head.length, 0);
    return head.subarray(0, bytesRead);
  } finally {
    await opened.close();
  }
}

/** Of the last file, for the next one: getting memory would cost a good part of the reading of a small file. */
let spare: Buffer | undefined;

async function openToRead(calls: FileCalls, file: string): Promise<OpenFile | undefined> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  try {
    return await calls.open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ELOOP') return undefined;
    throw error;
  }
}

/** All of a file; undefined if it is not of this size any more. */
async function readSmall(file: OpenFile, size: number, buffer: Buffer): Promise<Buffer | undefined> {
  const { bytesRead } = await file.read(buffer, 0, size + 1, 0);
  return bytesRead === size ? buffer.subarray(0, size) : undefined;
}

async function readLarge(file: OpenFile, end: number, buffer: Buffer): Promise<FileDigest> {
  const sha256 = createHash('sha256');
  for (let at = 0; ; ) {
    const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, end - at), at);
    if (bytesRead === 0) return { bytes: at, sha256: sha256.digest('hex') };
    sha256.update(buffer.subarray(0, bytesRead));
    at += bytesRead;
  }
}
