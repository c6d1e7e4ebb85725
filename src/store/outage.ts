/** What the running agent reports of a service that fails, in a file of the state for other processes. */
import fs from 'node:fs';
import path from 'node:path';
import type { ErrorCode } from '../errors.ts';
import { readStateFile, writeStateFile } from './state-files.ts';

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
  if (outage === undefined) fs.rmSync(fileIn(directory), { force: true });
  else writeStateFile(fileIn(directory), JSON.stringify(outage));
}

/** Undefined also while it is being written. */
export function outageIn(directory: string): Outage | undefined {
  try {
    return JSON.parse(readStateFile(fileIn(directory)) ?? '') as Outage;
  } catch {
    return undefined;
  }
}
