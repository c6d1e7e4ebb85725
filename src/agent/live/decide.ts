/**
 * Decides what a response shows about a mirror. The first row that matches decides; "-" matches each mirror.
 *
 *   the response                           the mirror                    decision
 *   ----------------------------------------------------------------------------------------------------------------
 *   nothing in it contradicts the mirror (`same`):
 *   1  uncommitted bytes not shown         -                             mirror-damaged: cut these
 *   2  bytes not shown; raw not refused    -                             undetermined: raw bytes
 *   3  ends where the mirror ends          -                             unchanged
 *   4  continues after the mirror          -                             grown
 *   it differs from the mirror, or ends before the mirror does (`different`, `shorter`):
 *   5  differs                             has uncommitted bytes         mirror-damaged: cut these
 *   6  differs                             was changed                   mirror-damaged: cut to equal bytes
 *   7  first poll, or shorter under 5 s    -                             undetermined: the next poll
 *   8  ends before                         has uncommitted bytes         mirror-damaged: cut these
 *   9  raw ends before                     was changed                   mirror-damaged: cut to equal bytes
 *   10 text, not by ASCII alone            -                             undetermined: raw bytes
 *   11 differs                             -                             rewritten: a new generation
 *   12 ends before                         -                             truncated: a new generation
 *
 * ";" stands for "and". "Not shown": the text has U+FFFD in place of bytes that must be compared. "Raw": the raw bytes
 * of the file, which are authoritative; after they were refused, the text alone decides. "Not by ASCII alone": the text
 * does not show all bytes before the difference, or either side has another character there. "Was changed": by another
 * process, so that its bytes are no generation worth keeping. If the state was lost, no bytes are known to be uncommitted.
 *
 * The rows of uncommitted bytes come first (5 before 6, 8 before 9), because these bytes were never guaranteed. A cut
 * loses nothing: the remote file still has these bytes. So a cut waits for another poll only if the size may be stale
 * (8). A new generation always waits. `byte-order-mark.ts` has already added a mark that the server stripped.
 */
import type { Match } from './match.ts';
import type { Integrity } from './mirror/live-file.ts';

/** What is known about a response and the mirror. */
export interface Facts {
  readonly shown: Match;
  readonly by: 'text' | 'raw bytes';
  /** The first byte to be compared that the text does not show; undefined if there is none. */
  readonly unshownFrom?: number | undefined;
  /** ASCII characters alone show the difference: known decoders or not, they mean the same. */
  readonly isByAscii?: boolean;
  readonly areRawBytesRefused?: boolean;
  /** The response goes on after the mirror. */
  readonly goesOn: boolean;
  /** An earlier poll saw it too, long enough ago (debounce.ts). */
  readonly isConfirmed: boolean;
  readonly mirror: {
    readonly length: number;
    readonly committed: number;
    readonly integrity: Integrity;
  };
}

export type Decision =
  | { readonly kind: 'unchanged' | 'grown'; readonly at: number }
  | { readonly kind: 'truncated' | 'rewritten' | 'mirror-damaged'; readonly at: number; readonly reason: string }
  | { readonly kind: 'undetermined'; readonly at: number; readonly needs: Need };

export type Need = 'raw-bytes' | 'the-next-poll';

export function decide(facts: Facts): Decision {
  const { shown, unshownFrom, isByAscii = false, areRawBytesRefused = false, mirror } = facts;
  const { length, committed, integrity } = mirror;
  const isUncommitted = length > committed && integrity !== 'unknown';
  if (shown.kind === 'same') {
    if (isUncommitted && unshownFrom !== undefined && unshownFrom >= committed)
      // 1
      return damaged(
        unshownFrom,
        `the text does not show its uncommitted byte ${unshownFrom}: it is requested again from there on`,
      );
    const isShown = unshownFrom === undefined && !shown.open;
    if (!isShown && !areRawBytesRefused) return undetermined(unshownFrom ?? shown.at, 'raw-bytes'); // 2
    return { kind: facts.goesOn ? 'grown' : 'unchanged', at: length }; // 3, 4
  }
  const at = Math.min(shown.at, unshownFrom ?? shown.at);
  const isDifferent = shown.kind === 'different';
  const isText = facts.by === 'text';
  const isChanged = integrity === 'modified';
  if (isUncommitted && isDifferent) return cutToCommitted(at, committed); // 5
  if (isChanged && isDifferent) return cutToEqual(at); // 6
  if (!facts.isConfirmed) return undetermined(at, 'the-next-poll'); // 7
  if (isUncommitted) return cutToCommitted(at, committed); // 8
  if (isChanged && !isText) return cutToEqual(at); // 9
  if (isText && !isByAscii && !areRawBytesRefused) return undetermined(at, 'raw-bytes'); // 10
  const seen = isText ? '' : ', as its raw bytes show';
  const how = integrity === 'unknown' ? `${seen}; the state of the mirror was lost` : seen;
  if (isDifferent) return { kind: 'rewritten', at, reason: `its byte ${at} differs from the mirror${how}` }; // 11
  return { kind: 'truncated', at, reason: `it has at most ${at} bytes, the mirror has ${length}${how}` }; // 12
}

const undetermined = (at: number, needs: Need): Decision => ({ kind: 'undetermined', at, needs });

const damaged = (at: number, reason: string): Decision => ({ kind: 'mirror-damaged', at, reason });

const cutToEqual = (at: number) =>
  damaged(at, `another process changed it: from byte ${at} on it differs from the remote file`);

function cutToCommitted(differsAt: number, committed: number): Decision {
  const at = Math.max(differsAt, committed);
  return damaged(at, `it differs from the remote file: its uncommitted bytes from byte ${at} on are requested again`);
}
