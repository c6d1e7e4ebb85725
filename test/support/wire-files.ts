/** What the process holds open, for the tests of the wire. */
import { readdirSync, readlinkSync } from 'node:fs';

/** Files of `directory` that are open now, also those without a name. */
export function openFilesIn(directory: string): number {
  return readdirSync('/proc/self/fd').filter((fd) => linkOf(fd).startsWith(directory)).length;
}

function linkOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    // The one that listed the directory is closed again.
    return '';
  }
}
