/**
 * Long backlogs of which the mirror has next to nothing. Where the service could not decode all of one, two readings of
 * its text would be needed; the beginning of one is enough to take the raw bytes instead, once (docs/servers.md 1.5).
 */
import type { LiveFile } from '../mirror/live-file.ts';

/** Text of a backlog that is long. */
export const LONG_BACKLOG_BYTES = 16 * 1024 * 1024;
/** A mirror of this part of it is next to nothing: raw bytes begin with the file. */
const MIRRORED_PART = 1 / 256;
/** What of the text is enough once it is known to be long: that of the mirror, three times as long at most, and more. */
const ENOUGH_PART = 1 / 16;

/**
 * Bytes of text that are enough for now, if `longBytes` of it are a long backlog; undefined if all of it is wanted.
 * `isLong`: an answer before was long.
 */
export function enoughTextOf(file: LiveFile, longBytes: number, isLong: boolean): number | undefined {
  if (file.memory.wantsWholeText === true || file.length > MIRRORED_PART * longBytes) return undefined;
  return isLong ? ENOUGH_PART * longBytes : longBytes;
}
