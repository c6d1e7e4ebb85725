/** Opens a live file: what a kill interrupted goes on, and what it left is promised, before anything is compared. */
import type { LiveFileRow } from '../../../store/rows.ts';
import type { FileMemory } from '../memory.ts';
import { finishRotation } from './generations.ts';
import { regionsBefore } from './inexact-regions.ts';
import { type Integrity, LiveFile, type LiveFileOptions } from './live-file.ts';
import { LiveRow } from './live-row.ts';
import type { MirrorLook } from './mirror.ts';
import { MirrorWriter } from './mirror-writer.ts';

/** Opens the mirror (made if it is missing), finishes a rotation that a kill interrupted, and looks for changes. */
export async function openLiveFile(row: LiveFileRow, memory: FileMemory, options: LiveFileOptions): Promise<LiveFile> {
  const mirror = await options.mirrors.take(row.jobId, row);
  try {
    let found = await finishRotation(row, mirror, options);
    const begun = found.mismatches.at(-1);
    if (row.rotation !== null && begun !== undefined) options.onMismatch?.(found, begun);
    const look = await mirror.look();
    const { inode, modifiedNs, length } = look;
    if (found.inode === null && length === 0) {
      // The first bytes of a new mirror have to be known as its own, should a kill come before they are committed.
      found = { ...found, inode, modifiedNs };
      options.commit(found);
    }
    // Behind the position, what stands for bytes that cannot be had is only there if what was written is.
    const isWritten = found.bootId !== null && found.bootId === options.bootId;
    const inexact = regionsBefore(found.inexact, isWritten ? length : Math.min(length, found.position));
    const liveRow = new LiveRow({ ...found, bootId: null, inexact }, memory, options);
    // A flush failed: no start may take what is not promised for right, whatever the system still shows of it.
    const writer = new MirrorWriter(mirror, length, () => liveRow.commit({ bootId: null }));
    const hasCommittedBytes = async () =>
      found.checksum !== null && (await mirror.checksum(found.position)) === found.checksum;
    const integrity = await integrityOf(found, look, memory.leftIntact === true, hasCommittedBytes);
    // The checksum need not be computed again at the next poll.
    if (integrity === 'intact' && !isAsCommitted(found, look)) liveRow.markChanged();
    const file = new LiveFile({ row: liveRow, mirror, writer, integrity }, options);
    if (isWritten) await file.promiseWritten();
    return file;
  } catch (error) {
    await options.mirrors.giveBack(mirror, { grew: false });
    throw error;
  }
}

/**
 * A mirror that is longer than committed is what a kill leaves behind, if bytes were being appended (`bootId`) and this
 * process itself had not left it as it was committed (`leftIntact`). Where that is not known, because the state is an
 * older copy, or the machine lost power, the checksum of the committed bytes decides (`hasCommittedBytes`). The bytes
 * after the committed offset are compared with the remote file in any case.
 */
export async function integrityOf(
  row: LiveFileRow,
  look: MirrorLook,
  leftIntact: boolean,
  hasCommittedBytes: () => Promise<boolean>,
): Promise<Integrity> {
  if (row.inode === null) return look.length > 0 ? 'unknown' : 'intact';
  if (row.modifiedNs === null || look.length < row.position) return 'modified';
  if (isAsCommitted(row, look)) return 'intact';
  const wasAppending = row.bootId !== null && !leftIntact && look.length > row.position;
  if (wasAppending && look.inode === row.inode) return 'intact';
  return (await hasCommittedBytes()) ? 'intact' : 'modified';
}

/** Whether the system shows the file that was committed, and no later write. */
const isAsCommitted = (row: LiveFileRow, look: MirrorLook) =>
  look.inode === row.inode && look.modifiedNs === row.modifiedNs;
