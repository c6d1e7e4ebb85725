/**
 * Decides what a response shows about a mirror. The first row that matches decides; "-" matches each mirror.
 *
 *   the response                          the mirror                    decision
 *   ----------------------------------------------------------------------------------------------------------------
 *   1  shows all of the mirror            -                             same: what follows is appended
 *   2  hides bytes, or differs            has uncommitted bytes         mirror-damaged: cut these
 *   3  hides bytes                        -                             undetermined: raw bytes
 *   4  first seen, or shorter under 5 s   -                             undetermined: the next poll
 *   5  ends before the mirror does        has uncommitted bytes         mirror-damaged: cut these
 *   6  differs, not by ASCII alone        -                             undetermined: raw bytes
 *   7  differs                            -                             rewritten: a new generation
 *   8  ends before the mirror does        -                             truncated: a new generation
 *
 * "Hides": certain bytes end before the mirror does, and the file goes on. "Not by ASCII alone": a response that is not
 * raw, and either side has another character there. Raw bytes are authoritative. If another process changed the mirror,
 * all its bytes count as uncommitted; if the state was lost, none does.
 *
 * A cut loses only bytes that were never promised, or that another process changed: they are requested again. So a cut
 * waits for another poll only if the size may be stale (5). A new generation always waits.
 */
import type { ShownBy } from './debounce.ts';
import type { Integrity } from './mirror/live-file.ts';

/**
 * What a response shows. same: all of the mirror, and its cursor is at the end of the mirror. shows-less: the mirror up to `at`
 * only. shorter: the file ends at `at`. different: the byte at `at` is another one.
 */
export type Match =
  | { readonly kind: 'same' | 'shows-less' | 'shorter'; readonly at: number }
  | {
      readonly kind: 'different';
      readonly at: number;
      /** Both have an ASCII character there: it means the same in each way to decode. */
      readonly isByAscii: boolean;
    };

/** What is known about a response and the mirror. */
export interface Facts {
  readonly found: Match;
  readonly by: ShownBy;
  /** An earlier poll saw it too, long enough ago (debounce.ts). */
  readonly isConfirmed: boolean;
  readonly mirror: {
    readonly length: number;
    /** The end of the bytes that were committed and are intact. */
    readonly undisputed: number;
    readonly integrity: Integrity;
  };
}

export type Decision =
  | { readonly kind: 'same'; readonly at: number }
  | { readonly kind: 'truncated' | 'rewritten' | 'mirror-damaged'; readonly at: number; readonly reason: string }
  | { readonly kind: 'undetermined'; readonly at: number; readonly needs: 'raw-bytes' | 'the-next-poll' };

export function decide({ found, by, isConfirmed, mirror }: Facts): Decision {
  const { length, undisputed, integrity } = mirror;
  const { at } = found;
  if (found.kind === 'same') return { kind: 'same', at }; // 1
  const isUncommitted = length > undisputed && integrity !== 'unknown';
  if (isUncommitted && found.kind !== 'shorter') return damaged(found, mirror); // 2
  if (found.kind === 'shows-less') return { kind: 'undetermined', at, needs: 'raw-bytes' }; // 3
  if (!isConfirmed) return { kind: 'undetermined', at, needs: 'the-next-poll' }; // 4
  if (isUncommitted) return damaged(found, mirror); // 5
  const isCertain = by === 'raw bytes' || found.kind !== 'different' || found.isByAscii;
  if (!isCertain) return { kind: 'undetermined', at, needs: 'raw-bytes' }; // 6
  const seen = by === 'raw bytes' ? ', as its raw bytes show' : '';
  if (found.kind === 'different')
    return { kind: 'rewritten', at, reason: `its byte ${at} differs from the mirror${seen}` }; // 7
  return { kind: 'truncated', at, reason: `it has at most ${at} bytes, the mirror has ${length}${seen}` }; // 8
}

function damaged({ kind, at }: Match, { undisputed, integrity }: Facts['mirror']): Decision {
  const theirs = kind === 'shows-less' ? 'are not shown by the service' : 'differ from the remote file';
  const why = integrity === 'modified' ? 'another process changed it' : `its uncommitted bytes ${theirs}`;
  const from = Math.max(at, undisputed);
  return { kind: 'mirror-damaged', at: from, reason: `${why}: requested again from byte ${from} on` };
}
