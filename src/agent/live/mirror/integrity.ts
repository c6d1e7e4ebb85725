/** Whether a mirror is as the agent left it, before any of it is compared with the remote file. */
import type { LiveFileRow } from '../../../store/rows.ts';
import type { MirrorLook } from './mirror.ts';

/**
 * intact: nothing speaks against the mirror. modified: it was changed by somebody else, so a difference is mended from
 * the remote file. unknown: the state was lost, so nobody knows who is right, and the old bytes are kept.
 */
export type Integrity = 'intact' | 'modified' | 'unknown';

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
export const isAsCommitted = (row: LiveFileRow, look: MirrorLook) =>
  look.inode === row.inode && look.modifiedNs === row.modifiedNs;
