/**
 * The token that opens the view: in a file that only its owner reads. It is made once, and stays, so that pages stay open
 * over a restart of the agent; remove the file and start again for another one.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import fs, { constants } from 'node:fs';
import path from 'node:path';
import { asJobtailError, JobtailError } from '../../errors.ts';
import { inTheWay } from '../../system/directories.ts';
import type { ViewSettings } from '../settings.ts';

const TOKEN_BYTES = 32;
/** What somebody chose for a file of their own is long enough, and needs no escape in an address. */
const TOKEN = /^[A-Za-z0-9_-]{32,256}$/;
const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const MAKE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

export function tokenFileOf({ tokenFile, stateDirectory }: Pick<ViewSettings, 'tokenFile' | 'stateDirectory'>): string {
  return tokenFile ?? path.join(stateDirectory, 'view-token');
}

/** Of a view that serves already; undefined if there is none. @throws JobtailError if it is none, or others may read it */
export function readToken(file: string): string | undefined {
  let opened: number;
  try {
    opened = fs.openSync(file, READ);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw code === 'ELOOP' || code === 'ENXIO' ? inTheWay(file, 'file') : asJobtailError(error);
  }
  try {
    const stat = fs.fstatSync(opened);
    if (!stat.isFile()) throw inTheWay(file, 'file');
    if ((stat.mode & 0o077) !== 0) throw unusable(`others than its owner may read ${file}`, `chmod 600 ${file}`);
    const text = Buffer.alloc(512);
    const token = text.toString('latin1', 0, fs.readSync(opened, text)).trim();
    if (TOKEN.test(token)) return token;
    throw unusable(`${file} holds no token`, 'remove it, and start again: it is made then');
  } finally {
    fs.closeSync(opened);
  }
}

/** The token of the file, which is made if it is not there. @throws JobtailError */
export function tokenOf(file: string): string {
  const found = readToken(file);
  if (found !== undefined) return found;
  const token = randomBytes(TOKEN_BYTES).toString('base64url');
  // Under its name only when it is whole.
  const partial = `${file}.${process.pid}.new`;
  try {
    fs.rmSync(partial, { force: true });
    const made = fs.openSync(partial, MAKE, 0o600);
    try {
      fs.writeSync(made, `${token}\n`);
    } finally {
      fs.closeSync(made);
    }
    fs.renameSync(partial, file);
  } catch (error) {
    throw asJobtailError(error);
  }
  return token;
}

/** Says whether what somebody shows is the token; takes as long whatever it is. */
export function tokenCheck(token: string): (shown: string | undefined) => boolean {
  const wanted = digest(token);
  return (shown) => shown !== undefined && timingSafeEqual(digest(shown), wanted);
}

const digest = (text: string) => createHash('sha256').update(text).digest();

const unusable = (message: string, hint: string) => new JobtailError('config', message, { hint });
