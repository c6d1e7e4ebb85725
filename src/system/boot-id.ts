/**
 * The boot of the machine. As long as it is the same, the system has every byte that was written to a local file,
 * flushed or not, however the process that wrote it ended.
 */
import fs from 'node:fs';

/** Null where the system does not tell. */
export function readBootId(file = '/proc/sys/kernel/random/boot_id'): string | null {
  try {
    return fs.readFileSync(file, 'latin1').trim() || null;
  } catch {
    return null;
  }
}
