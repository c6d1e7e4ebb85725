/** Opens a live file: finishes an interrupted rotation, and detects changes, before anything is compared. */
import type { LiveFileRow } from '../../../store/rows.ts';
import type { FileMemory } from '../memory.ts';
import { finishRotation } from './generations.ts';
import { type Integrity, LiveFile } from './live-file.ts';
import type { LiveFileOptions, MirrorStat } from './mirror.ts';

/** Opens the mirror (created if missing), finishes a rotation that a kill interrupted, and detects changes. */
export async function openLiveFile(row: LiveFileRow, memory: FileMemory, options: LiveFileOptions): Promise<LiveFile> {
  const mirror = await options.mirrors.open(row.jobId, row);
  try {
    let found = await finishRotation(row, mirror, options);
    const begun = found.mismatches.at(-1);
    if (row.rotation !== null && begun !== undefined) options.onMismatch?.(found, begun);
    const stat = await mirror.stat();
    const { inode, modifiedNs, length } = stat;
    if (found.inode === null && length === 0) {
      // The inode is committed before the first bytes: otherwise a kill makes the file look foreign.
      found = { ...found, inode, modifiedNs };
      options.commitNow(found);
    }
    const hasChecksum = async () => (await mirror.checksum(found.position)) === found.checksum;
    const hasCommittedBytes = async () => {
      if (found.position === 0) return true;
      return await checkedSometimes(memory, hasChecksum, () => options.onUnsteady?.(found));
    };
    const integrity = await integrityOf(found, stat, hasCommittedBytes);
    if (isAsCommitted(found, stat)) memory.unsteady.times = 0;
    const file = new LiveFile(found, mirror, integrity, memory, options);
    // Avoids the checksum at the next poll.
    if (integrity === 'intact' && !isAsCommitted(found, stat)) file.markChanged();
    return file;
  } catch (error) {
    await mirror.close();
    throw error;
  }
}

/** From so many right checksums in a row on, one is computed after such a time. */
const UNSTEADY_TIMES = 5;
const UNSTEADY_MS = 10 * 60_000;

/**
 * Some network file systems show another inode or time at each stat, and the checksum of a large mirror takes all of
 * their bandwidth.
 */
async function checkedSometimes(
  { unsteady, monotonic }: FileMemory,
  check: () => Promise<boolean>,
  onUnsteady: () => void,
): Promise<boolean> {
  const now = monotonic();
  if (unsteady.times >= UNSTEADY_TIMES && now - unsteady.checkedAt < UNSTEADY_MS) return true;
  const isRight = await check();
  unsteady.times = isRight ? unsteady.times + 1 : 0;
  unsteady.checkedAt = now;
  if (unsteady.times === UNSTEADY_TIMES) onUnsteady();
  return isRight;
}

/**
 * After a kill or a power loss, a mirror may be longer than committed, and other than it was left: the checksum of the
 * committed bytes decides (`hasCommittedBytes`). The uncommitted tail is compared with the remote file in any case.
 */
export async function integrityOf(
  row: LiveFileRow,
  stat: MirrorStat,
  hasCommittedBytes: () => Promise<boolean>,
): Promise<Integrity> {
  if (row.inode === null) return stat.length > 0 ? 'unknown' : 'intact';
  if (row.modifiedNs === null || stat.length < row.position) return 'modified';
  if (isAsCommitted(row, stat)) return 'intact';
  // An earlier version committed them without a checksum.
  if (row.checksum === null && row.position > 0) return 'unknown';
  return (await hasCommittedBytes()) ? 'intact' : 'modified';
}

/** Whether inode and modification time are those that were committed. */
const isAsCommitted = (row: LiveFileRow, stat: MirrorStat) =>
  stat.inode === row.inode && stat.modifiedNs === row.modifiedNs;
