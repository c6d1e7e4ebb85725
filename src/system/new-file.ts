/** A new file that is written piece by piece; its digest is made, and most of it is flushed, on the way. */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import fs from 'node:fs/promises';
import { FileWriter } from './write-behind.ts';

/** Length and sha256 (in hex) of a file. */
export interface FileDigest {
  readonly bytes: number;
  readonly sha256: string;
}

/** So much at a time is flushed on the way. */
const FLUSH_BYTES = 128 * 1024 * 1024;

/** Resolves when the bytes are in the file; until then they stay as they are. */
export type WritePiece = (bytes: Buffer) => Promise<void>;

/**
 * Makes a file, which must not exist, of the pieces that `fill` writes one after the other; one that is not whole is
 * removed again. Not all of it is flushed at the end.
 * @throws what `fill` throws; JobtailError disk-full, permission, local-io
 */
export async function writeNewFile(
  file: string,
  mode: number,
  fill: (write: WritePiece) => Promise<unknown>,
): Promise<FileDigest> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  const handle = await fs.open(file, flags, mode);
  const hash = createHash('sha256');
  const writer = new FileWriter(handle, { path: file, flushBytes: FLUSH_BYTES });
  let bytes = 0;
  try {
    await fill((piece) => {
      writer.begin(piece);
      // Meanwhile: the writing is done by another thread.
      hash.update(piece);
      bytes += piece.length;
      return writer.written();
    });
    await writer.finish();
    await handle.close();
    return { bytes, sha256: hash.digest('hex') };
  } catch (error) {
    // What fails in between does not wait for the last piece: the file is closed only after it was written.
    await writer.settled();
    await handle.close();
    await fs.rm(file, { force: true });
    throw error;
  }
}
