/** Whether a mirror is as the agent left it, before any of it is compared with the remote file. */
import type { LiveFileRow } from '../../../store/rows.ts';
import type { MirrorLook } from './mirror.ts';

/**
 * What is known against a mirror. none: nothing. damaged: it was changed by somebody else, so a difference is mended
 * from the remote file. unknown: the state was lost, so nobody knows who is right, and the old bytes are kept.
 */
export type Doubt = 'none' | 'damaged' | 'unknown';

/**
 * A mirror that is longer than committed is what a kill leaves behind, unless this process itself had left it in
 * order (`settled`); the bytes behind the position are compared anyway. Anything else was done by somebody else.
 */
export function doubtOf(row: LiveFileRow, look: MirrorLook, settled: boolean): Doubt {
  if (row.inode === null) return look.length > 0 ? 'unknown' : 'none';
  if (row.modifiedNs === null || look.inode !== row.inode || look.length < row.position) return 'damaged';
  const touched = look.modifiedNs !== row.modifiedNs;
  return touched && (settled || look.length === row.position) ? 'damaged' : 'none';
}
