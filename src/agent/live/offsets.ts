/**
 * From where the service is asked for a file: from the beginning of a character of the mirror, so that the answer begins
 * with what is there, but behind byte-order marks, which some services swallow at the offset (field notes 1).
 */
import { BYTE_ORDER_MARK, characterStart, standsAt } from '../../chunk.ts';
import type { LiveFile } from './live-file.ts';

const LONGEST_CHARACTER_BYTES = 4;

/** A little before the committed position; the beginning while there is a doubt. */
export async function askFrom(file: LiveFile): Promise<number> {
  const overlap = Math.max(0, file.committed - file.overlapBytes);
  return alignDown(file, file.doubt === 'none' ? overlap : 0);
}

/** The position at or before `position` where a character of the mirror begins, or behind the marks that stand there. */
export async function alignDown(file: LiveFile, position: number): Promise<number> {
  const start = Math.max(0, position - LONGEST_CHARACTER_BYTES);
  const around = await file.read(start, position + LONGEST_CHARACTER_BYTES);
  const aligned = start + characterStart(around, position - start);
  const clear = start + pastByteOrderMark(around, aligned - start);
  // One mark may stand behind the other.
  return Math.min(file.length, clear > aligned ? await alignDown(file, clear) : clear);
}

/** Behind the byte-order mark that `index` is in; `index` itself if it is in none. */
function pastByteOrderMark(bytes: Buffer, index: number): number {
  for (const back of [0, 1, 2]) {
    if (index - back >= 0 && standsAt(bytes, index - back, BYTE_ORDER_MARK))
      return index - back + BYTE_ORDER_MARK.length;
  }
  return index;
}
