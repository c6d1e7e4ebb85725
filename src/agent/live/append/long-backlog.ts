/**
 * The first fill: a file of which the mirror has next to nothing, and which is longer than one response should be. The
 * beginning of its text identifies the listed file, which then comes raw, once (docs/servers.md 1.5).
 */
import type { LiveFile } from '../mirror/live-file.ts';

/** Text beyond this length comes raw. A file of six times this length costs at most half as much again as its raw bytes. */
export const LONG_BACKLOG_BYTES = 64 * 1024;
/** A mirror of this part of it is next to nothing: a raw download begins with the file. */
const MIRRORED_PART = 1 / 256;
/** The part of it that is enough of later responses, once the text is known to be long. */
const ENOUGH_PART = 1 / 16;

/**
 * Bytes of text that are enough for now, if `longBytes` of it are a long backlog; undefined if all of it is wanted.
 * `isLong`: an earlier response of the poll was long.
 */
export function enoughTextOf(file: LiveFile, longBytes: number, isLong: boolean): number | undefined {
  if (file.memory.wantsWholeText === true || file.length > MIRRORED_PART * longBytes) return undefined;
  return isLong ? ENOUGH_PART * longBytes : longBytes;
}
