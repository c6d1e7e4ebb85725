/** Small files that a process read as root, before it became a user who may not read them. */
import fs from 'node:fs';
import path from 'node:path';
import { isOfRoot } from './owners.ts';

const MAX_BYTES = 1024 * 1024;

const kept = new Map<string, Buffer>();

/** Keeps the content of a file, if root alone decides what it is; else only its owner's rights count. */
export function keepFile(file: string): void {
  try {
    const stat = fs.statSync(file);
    if (stat.isFile() && stat.size <= MAX_BYTES && isOfRoot(file)) kept.set(path.resolve(file), fs.readFileSync(file));
  } catch {
    // The reader of the file reports it.
  }
}

export function keptFile(file: string): Buffer | undefined {
  return kept.get(path.resolve(file));
}
