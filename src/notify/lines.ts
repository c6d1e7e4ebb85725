/** Reads complete lines of a mirror and of its old generations, from a stored position on. */
import fs from 'node:fs/promises';
import path from 'node:path';
import { NEWLINE, RETURN } from '../bytes.ts';
import type { JobId, LiveFileKey } from '../job.ts';
import { liveParts } from '../safe-names.ts';
import { undefinedIfMissing } from '../system/files.ts';
import { READ } from '../system/regular-files.ts';

const READ_BYTES = 256 * 1024;
/** A longer line is taken in pieces. */
const MAX_LINE_BYTES = 1024 * 1024;

interface LinesOptions {
  readonly mirrorDirectory: string;
  readonly jobId: JobId;
  readonly key: LiveFileKey;
  /** 1: the youngest old generation; 0: the mirror itself. */
  readonly former: number;
  readonly from: number;
  /** Bytes after it are not committed. */
  readonly end: number;
  /** Whether an unfinished line counts, because no more bytes follow. */
  readonly isLast: boolean;
}

export interface Lines {
  readonly lines: readonly string[];
  readonly next: number;
  /** Whether the last line goes on in the next piece. */
  readonly isCut: boolean;
}

/** Yields nothing if there is no such file. @throws errors of the file system */
export async function* readLines(options: LinesOptions): AsyncGenerator<Lines> {
  const { mirrorDirectory, jobId, key, former, end, isLast } = options;
  const mirror = path.join(mirrorDirectory, ...liveParts(jobId, key));
  const handle = await fs.open(former === 0 ? mirror : `${mirror}.${former}`, READ).catch(undefinedIfMissing);
  if (handle === undefined) return;
  try {
    if (!(await handle.stat()).isFile()) return;
    let { from } = options;
    for (let size = READ_BYTES; from < end; ) {
      const wanted = Math.min(size, end - from);
      const buffer = Buffer.allocUnsafe(wanted);
      const { bytesRead } = await handle.read(buffer, 0, wanted, from);
      if (bytesRead === 0) return;
      const bytes = buffer.subarray(0, bytesRead);
      const isEnd = from + bytesRead >= end || bytesRead < wanted;
      const complete = bytes.lastIndexOf(NEWLINE) + 1;
      const isRest = isEnd && isLast;
      const isCut = !isRest && complete === 0 && bytesRead >= MAX_LINE_BYTES;
      const taken = isRest ? bytesRead : isCut ? endOfPiece(bytes) : complete;
      if (taken === 0) {
        if (isEnd) return;
        size = MAX_LINE_BYTES;
        continue;
      }
      size = READ_BYTES;
      from += taken;
      const text = bytes.toString('utf8', 0, bytes[taken - 1] === NEWLINE ? taken - 1 : taken);
      yield { lines: text.split('\n'), next: from, isCut };
    }
  } finally {
    await handle.close();
  }
}

/** After the last state of a progress bar that is complete, if there is one. A CR at the end may belong to a newline. */
const endOfPiece = (bytes: Buffer) => bytes.lastIndexOf(RETURN, -2) + 1 || bytes.length;
