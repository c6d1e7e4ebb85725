/** Memory and disk in the same state for every side. */
import fs from 'node:fs';
import path from 'node:path';

const BLOCK = Buffer.alloc(1024 * 1024, 'x');

/**
 * Writes a file of so many bytes, flushes and removes it: what is free then was in use a moment ago. On a virtual
 * machine the first use of memory or of disk space can cost ten times as much as the next one, whoever it meets.
 */
export function warmDisk(directory: string, bytes: number): void {
  const file = path.join(directory, 'warm');
  const descriptor = fs.openSync(file, 'w');
  for (let written = 0; written < bytes; written += BLOCK.length) fs.writeSync(descriptor, BLOCK);
  fs.fsyncSync(descriptor);
  fs.closeSync(descriptor);
  fs.rmSync(file);
}
