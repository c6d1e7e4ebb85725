/** The disks of the directories of the agent. */
import fs from 'node:fs';
import type { Disk } from '../contract/service.ts';
import type { ViewSettings } from '../settings.ts';

/** Without those that cannot be asked now. */
export function disksOf({ mirrorDirectory, stateDirectory }: ViewSettings): Disk[] {
  return [...diskOf('mirror', mirrorDirectory), ...diskOf('state', stateDirectory)];
}

function diskOf(name: Disk['name'], directory: string): Disk[] {
  try {
    const { bavail, blocks, bsize } = fs.statfsSync(directory);
    return [{ name, directory, freeBytes: bavail * bsize, totalBytes: blocks * bsize }];
  } catch {
    return [];
  }
}
