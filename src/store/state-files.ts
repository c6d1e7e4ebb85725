/**
 * The files of the state directory are regular ones. A link, a pipe or a directory in their place is neither followed
 * nor waited for: whoever may write the directory could have put it there for another user to fall for.
 */
import fs, { constants } from 'node:fs';
import { JobtailError } from '../errors.ts';

/** What SQLite keeps beside a database. Their last part it never follows; that they are no pipes is seen to here. */
const BESIDE_DATABASE = ['', '-wal', '-shm', '-journal'];

/** Opens a file; what it holds stays as it is. */
export function openStateFile(file: string, flags: number): number {
  let opened: number;
  try {
    opened = fs.openSync(file, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0o640);
  } catch (error) {
    // A link; a directory; a pipe that nobody reads, or a socket.
    if (/^(ELOOP|EISDIR|ENXIO)$/.test(String((error as NodeJS.ErrnoException).code))) throw notRegular(file);
    throw error;
  }
  if (fs.fstatSync(opened).isFile()) return opened;
  fs.closeSync(opened);
  throw notRegular(file);
}

/** Refuses a database if it, or a file that SQLite would open beside it, is there and no regular file. */
export function requireRegularDatabase(database: string): void {
  for (const suffix of BESIDE_DATABASE) {
    const file = `${database}${suffix}`;
    if (fs.lstatSync(file, { throwIfNoEntry: false })?.isFile() === false) throw notRegular(file);
  }
}

function notRegular(file: string): JobtailError {
  return new JobtailError('store', `${file} is no regular file, and is not followed, read or written`, {
    hint: `find out who put it there, and move it out of the way; the agent makes ${file} itself`,
  });
}
