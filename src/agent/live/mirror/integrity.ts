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
 * process itself had not left it as it was committed (`leftIntact`); the bytes behind the position are compared anyway.
 * Anything else was done by somebody else.
 */
export function integrityOf(row: LiveFileRow, look: MirrorLook, leftIntact: boolean): Integrity {
  if (row.inode === null) return look.length > 0 ? 'unknown' : 'intact';
  if (row.modifiedNs === null || look.inode !== row.inode || look.length < row.position) return 'modified';
  const wasAppending = row.bootId !== null && !leftIntact && look.length > row.position;
  return look.modifiedNs === row.modifiedNs || wasAppending ? 'intact' : 'modified';
}
