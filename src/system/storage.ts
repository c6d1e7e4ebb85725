/** The disk of a directory, asked at this moment: what is free on it, and why nothing can be written there. */
import fs, { constants, type Stats } from 'node:fs';
import path from 'node:path';
import { asJobtailError, JobtailError } from '../errors.ts';
import { ownUserName, userName } from './owners.ts';

export interface Storage {
  /** The directory, or the nearest one above it that is there. */
  readonly at: string;
  readonly freeBytes: number;
  /** Infinity on a file system without a limit. */
  readonly freeInodes: number;
  /** In the words of the system. */
  readonly error: JobtailError | undefined;
}

/** What SQLite needs at least. */
const TRIED = Buffer.alloc(64 * 1024);
/** Opens a file without a name in a directory; Node.js has no constant for it. */
const O_TMPFILE = 0o20000000 | constants.O_DIRECTORY;

/** Waits for a network file system whose server is away; meanwhile, the process does other work. */
export async function storageOf(directory: string): Promise<Storage> {
  const { at, stat, refused } = await nearestTo(directory);
  const { bavail, bsize, files, ffree } = await fs.promises.statfs(at);
  const none = stat.isDirectory() ? undefined : new JobtailError('local-io', `${at} is no directory`);
  const error = refused ?? none ?? whyNotWritable(at);
  const freeInodes = files === 0 ? Number.POSITIVE_INFINITY : ffree;
  return { at, freeBytes: bavail * bsize, freeInodes, error: error && withOwner(error, at, stat.uid) };
}

async function nearestTo(at: string): Promise<{ at: string; stat: Stats; refused: JobtailError | undefined }> {
  try {
    return { at, stat: await fs.promises.stat(at), refused: undefined };
  } catch (thrown) {
    if (at === path.dirname(at)) throw thrown;
    const above = await nearestTo(path.dirname(at));
    const isAbsent = /^(ENOENT|ENOTDIR)$/.test((thrown as NodeJS.ErrnoException).code ?? '');
    return { ...above, refused: above.refused ?? (isAbsent ? undefined : asJobtailError(thrown)) };
  }
}

/** Undefined if something can be written in a directory, or in a file; a quota is seen only by writing. */
export function whyNotWritable(directory: string, file = directory): JobtailError | undefined {
  let opened: number | undefined;
  try {
    fs.accessSync(directory, constants.W_OK | constants.X_OK);
    fs.accessSync(file, constants.W_OK);
    opened = withoutName(directory);
    if (opened !== undefined) fs.writeFileSync(opened, TRIED);
    return undefined;
  } catch (thrown) {
    const error = thrown as NodeJS.ErrnoException;
    return asJobtailError(Object.assign(error, { path: error.path ?? directory }));
  } finally {
    if (opened !== undefined) fs.closeSync(opened);
  }
}

/** Undefined where there are no such files: on network file systems, FUSE and FAT. */
function withoutName(directory: string): number | undefined {
  try {
    return fs.openSync(directory, constants.O_WRONLY | O_TMPFILE);
  } catch (thrown) {
    const { code = '' } = thrown as NodeJS.ErrnoException;
    if (/^(EOPNOTSUPP|ENOTSUP|EISDIR|ENOENT|EINVAL|ENOSYS)$/.test(code)) return undefined;
    throw thrown;
  }
}

/** Whether the system refuses a user what it allows another one. */
export const isRefusedToUser = ({ cause }: JobtailError) =>
  /^(EACCES|EPERM)$/.test((cause as NodeJS.ErrnoException | undefined)?.code ?? '');

/** Names who may do it. */
export function withOwner(error: JobtailError, at: string, owner = ownerOf(at)): JobtailError {
  if (!isRefusedToUser(error) || owner === undefined) return error;
  const [name, user] = [userName(owner), ownUserName()];
  return new JobtailError('permission', `${error.message}; ${at} belongs to the user ${name}, this is ${user}`, {
    cause: error.cause,
    hint: `run it as the user ${name}, or give the user ${user} the right to write ${at}`,
  });
}

function ownerOf(file: string): number | undefined {
  try {
    return fs.statSync(file).uid;
  } catch {
    return undefined;
  }
}
