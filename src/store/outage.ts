/** What the running agent reports of a service that fails, in a file of the state for other processes. */
import fs, { constants } from 'node:fs';
import path from 'node:path';
import type { ErrorCode } from '../errors.ts';
import { openStateFile } from './state-files.ts';

export interface Outage {
  readonly code: ErrorCode;
  readonly message: string;
  readonly hint: string | null;
  /** In milliseconds since 1970. */
  readonly since: number;
}

const fileIn = (directory: string) => path.join(directory, 'outage.json');

/** Undefined: the service answers. */
export function saveOutage(directory: string, outage: Outage | undefined): void {
  if (outage === undefined) {
    fs.rmSync(fileIn(directory), { force: true });
    return;
  }
  const file = openStateFile(fileIn(directory), constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC);
  try {
    fs.writeSync(file, JSON.stringify(outage));
  } finally {
    fs.closeSync(file);
  }
}

/** Undefined also while it is being written. */
export function outageIn(directory: string): Outage | undefined {
  try {
    const file = openStateFile(fileIn(directory), constants.O_RDONLY);
    try {
      return JSON.parse(fs.readFileSync(file, 'utf8')) as Outage;
    } finally {
      fs.closeSync(file);
    }
  } catch {
    return undefined;
  }
}
