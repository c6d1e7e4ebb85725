/** The file of the token, from which all that opens the view is derived (proof.ts). Only its owner reads it. */
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { asJobtailError, JobtailError } from '../errors.ts';
import { openIfThere } from '../system/regular-files.ts';
import type { ViewSettings } from './settings.ts';

const TOKEN_BYTES = 32;
/** Long enough, also if an operator wrote it, and without characters that need an escape in an address. */
const TOKEN = /^[A-Za-z0-9_-]{32,256}$/;

export function tokenFileOf({ tokenFile, stateDirectory }: Pick<ViewSettings, 'tokenFile' | 'stateDirectory'>): string {
  return tokenFile ?? path.join(stateDirectory, 'view-token');
}

/** Undefined if there is no file. @throws JobtailError if it has no token, or others may read it */
export function readToken(file: string): string | undefined {
  let opened: number | undefined;
  try {
    opened = openIfThere(file);
  } catch (error) {
    throw asJobtailError(error);
  }
  if (opened === undefined) return undefined;
  try {
    const stat = fs.fstatSync(opened);
    if ((stat.mode & 0o077) !== 0) throw unusable(`others than its owner may read ${file}`, `chmod 600 ${file}`);
    const text = Buffer.alloc(512);
    const token = text.toString('latin1', 0, fs.readSync(opened, text)).trim();
    if (TOKEN.test(token)) return token;
    throw unusable(`${file} contains no token`, 'remove it, and start again: a new one is created');
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
    fs.writeFileSync(partial, `${token}\n`, { flag: 'wx', mode: 0o600 });
    fs.renameSync(partial, file);
  } catch (error) {
    throw asJobtailError(error);
  }
  return token;
}

const unusable = (message: string, hint: string) => new JobtailError('config', message, { hint });
