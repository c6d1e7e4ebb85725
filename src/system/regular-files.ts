/** Opens regular files: never through a link, and without waiting for the other end of a named pipe. */
import fs, { constants } from 'node:fs';
import { JobtailError } from '../errors.ts';

const SAFE = constants.O_NOFOLLOW | constants.O_NONBLOCK;
/** Flags for reading. */
export const READ = constants.O_RDONLY | SAFE;

/** @throws what `refuse` returns for a link, a directory, a named pipe and the like */
export function openRegular(
  file: string,
  refuse = (at: string): Error => inTheWay(at, 'file'),
  flags = READ,
  mode?: number,
): number {
  let opened: number;
  try {
    opened = fs.openSync(file, flags | SAFE, mode);
  } catch (error) {
    // A link; a directory; a pipe without a reader, or a socket.
    throw /^(?:ELOOP|EISDIR|ENXIO)$/.test(String((error as NodeJS.ErrnoException).code)) ? refuse(file) : error;
  }
  if (fs.fstatSync(opened).isFile()) return opened;
  fs.closeSync(opened);
  throw refuse(file);
}

/** Opens a regular file for reading; undefined if there is none. */
export function openIfThere(file: string): number | undefined {
  try {
    return openRegular(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

export function inTheWay(at: string, wanted: 'directory' | 'file' | 'socket'): JobtailError {
  return new JobtailError('local-io', `${at} is not a ${wanted}, and is not followed or replaced`, {
    hint: `move ${at} out of the way`,
  });
}
