/** Opens a live file: what a kill interrupted goes on, and what it left is promised, before anything is compared. */
import type { LiveFileRow } from '../../../store/rows.ts';
import type { FileMemory } from '../memory.ts';
import { finishRotation } from './generations.ts';
import { LiveFile, type LiveFileOptions } from './live-file.ts';

/** Opens the mirror (made if it is missing), finishes a rotation that a kill interrupted, and looks for changes. */
export async function openLiveFile(row: LiveFileRow, memory: FileMemory, options: LiveFileOptions): Promise<LiveFile> {
  const mirror = await options.mirrors.take(row.jobId, row);
  try {
    const finished = await finishRotation(row, mirror, options);
    const look = await mirror.look();
    const { inode, modifiedNs, length } = look;
    if (finished.inode === null && length === 0) {
      // The first bytes of a new mirror have to be known as its own, should a kill come before they are committed.
      const begun = { ...finished, inode, modifiedNs };
      options.commit(begun);
      return new LiveFile(begun, { mirror, look, memory }, options);
    }
    const file = new LiveFile(finished, { mirror, look, memory }, options);
    if (finished.bootId !== null && finished.bootId === options.bootId) await file.promiseWritten();
    return file;
  } catch (error) {
    await options.mirrors.giveBack(mirror, { grew: false });
    throw error;
  }
}
