/** Checks that the files of the state are regular ones: another user could have put a link or a pipe there. */
import fs, { constants } from 'node:fs';
import { JobtailError } from '../errors.ts';
import { openRegular } from '../system/regular-files.ts';

/** A reader of these files could lock them, which stops the agent, and learn the names of jobs. */
const PRIVATE_MODE = 0o600;
const OPEN_TO_OTHERS = 0o077;
const MAX_READ_BYTES = 16 * 1024;

/** What SQLite keeps beside a database. Their last part it never follows; that they are no pipes is seen to here. */
const BESIDE_DATABASE = ['', '-wal', '-shm', '-journal'];

/** Writes a small file in its place: a disk that became full has room for it. */
export function writeStateFile(file: string, text: string): void {
  const opened = openRegular(file, notRegular, constants.O_WRONLY | constants.O_CREAT, PRIVATE_MODE);
  try {
    fs.ftruncateSync(opened, fs.writeSync(opened, text));
  } finally {
    fs.closeSync(opened);
  }
}

/** The beginning of a small file; undefined if it cannot be read. */
export function readStateFile(file: string): string | undefined {
  const bytes = Buffer.alloc(MAX_READ_BYTES);
  try {
    const opened = openRegular(file, notRegular);
    try {
      return bytes.toString('utf8', 0, fs.readSync(opened, bytes));
    } finally {
      fs.closeSync(opened);
    }
  } catch {
    return undefined;
  }
}

/** Refuses a database if it, or a file that SQLite would open beside it, is there and no regular file. */
export function requireRegularDatabase(database: string): void {
  for (const suffix of BESIDE_DATABASE) {
    const file = `${database}${suffix}`;
    if (fs.lstatSync(file, { throwIfNoEntry: false })?.isFile() === false) throw notRegular(file);
  }
}

/** Makes a database and what lies beside it private to the user; SQLite itself takes 0644. */
export function makePrivateDatabase(database: string): void {
  requireRegularDatabase(database);
  for (const suffix of BESIDE_DATABASE) {
    const file = `${database}${suffix}`;
    const stats = fs.lstatSync(file, { throwIfNoEntry: false });
    if (stats === undefined && suffix === '') {
      // An opened file must not be closed here if it is there already: that would drop this process's locks on it.
      fs.closeSync(fs.openSync(file, constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY, PRIVATE_MODE));
    } else if (stats !== undefined && (stats.mode & OPEN_TO_OTHERS) !== 0 && stats.uid === process.geteuid?.()) {
      fs.chmodSync(file, PRIVATE_MODE);
    }
  }
}

function notRegular(file: string): JobtailError {
  return new JobtailError('store', `${file} is no regular file, and is not followed, read or written`, {
    hint: `find out who put it there, and move it out of the way; the agent makes ${file} itself`,
  });
}
