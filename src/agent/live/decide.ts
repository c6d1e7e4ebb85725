/**
 * Decides what a response shows about a mirror. The first row that matches decides; "-" matches each mirror.
 *
 *   the response                           the mirror                    decision
 *   ----------------------------------------------------------------------------------------------------------------
 *   nothing in it contradicts the mirror (`same`):
 *   1  bytes not shown                    has uncommitted bytes there   mirror-damaged: cut these
 *   2  bytes not shown; raw refused       -                             mirror-damaged: cut these
 *   3  bytes not shown                    -                             undetermined: raw bytes
 *   4  ends where the mirror ends         -                             unchanged
 *   5  continues after the mirror         -                             grown
 *   it differs from the mirror, or ends before the mirror does (`different`, `shorter`):
 *   6  differs                            has uncommitted bytes         mirror-damaged: cut these
 *   7  first poll, or shorter under 5 s   -                             undetermined: the next poll
 *   8  ends before                        has uncommitted bytes         mirror-damaged: cut these
 *   9  text, not by ASCII alone           -                             undetermined: raw bytes
 *   10 differs                            -                             rewritten: a new generation
 *   11 ends before                        -                             truncated: a new generation
 *
 * ";" stands for "and". "Not shown": the text has U+FFFD in place of bytes that must be compared. "Raw": the raw bytes
 * of the file, which are authoritative; after they were refused, the text alone decides. "Not by ASCII alone": the text
 * does not show all bytes before the difference, or either side has another character there. If another process changed
 * the mirror, all its bytes count as uncommitted; if the state was lost, none does.
 *
 * A cut loses nothing: the remote file still has these bytes. So a cut waits for another poll only if the size may be
 * stale (8). A new generation always waits. `byte-order-mark.ts` has already added a mark that the server stripped.
 */
import type { ShownBy } from './debounce.ts';
import type { Match } from './match.ts';
import type { Integrity } from './mirror/live-file.ts';

/** What is known about a response and the mirror. */
export interface Facts {
  readonly shown: Match;
  readonly by: ShownBy;
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
    /** The end of the bytes that were committed and are intact. */
    readonly undisputed: number;
    readonly integrity: Integrity;
  };
}

export type Decision =
  | { readonly kind: 'unchanged' | 'grown'; readonly at: number }
  | { readonly kind: 'truncated' | 'rewritten' | 'mirror-damaged'; readonly at: number; readonly reason: string }
  | { readonly kind: 'undetermined'; readonly at: number; readonly needs: Need };

export type Need = 'raw-bytes' | 'the-next-poll';

export function decide(facts: Facts): Decision {
  const { shown, isByAscii = false, areRawBytesRefused = false, mirror } = facts;
  const { length, undisputed, integrity } = mirror;
  // The text does not show what follows an open end, either.
  const isTornBehind = shown.kind === 'same' && shown.open && length > undisputed;
  const unshownFrom = facts.unshownFrom ?? (isTornBehind ? Math.max(shown.at, undisputed) : undefined);
  const isUncommitted = length > undisputed && integrity !== 'unknown';
  if (shown.kind === 'same') {
    if (unshownFrom !== undefined && (isUncommitted || areRawBytesRefused))
      return damaged(unshownFrom, 'the text does not show its uncommitted bytes'); // 1, 2
    const isShown = unshownFrom === undefined && !shown.open;
    if (!isShown && !areRawBytesRefused) return undetermined(unshownFrom ?? shown.at, 'raw-bytes'); // 3
    return { kind: facts.goesOn ? 'grown' : 'unchanged', at: length }; // 4, 5
  }
  const at = Math.min(shown.at, unshownFrom ?? shown.at);
  const isDifferent = shown.kind === 'different';
  const isText = facts.by === 'text';
  const cut = damaged(
    Math.max(at, undisputed),
    integrity === 'modified' ? 'another process changed it' : 'its uncommitted bytes differ from the remote file',
  );
  if (isUncommitted && isDifferent) return cut; // 6
  if (!facts.isConfirmed) return undetermined(at, 'the-next-poll'); // 7
  if (isUncommitted) return cut; // 8
  if (isText && !isByAscii && !areRawBytesRefused) return undetermined(at, 'raw-bytes'); // 9
  const seen = isText ? '' : ', as its raw bytes show';
  if (isDifferent) return { kind: 'rewritten', at, reason: `its byte ${at} differs from the mirror${seen}` }; // 10
  return { kind: 'truncated', at, reason: `it has at most ${at} bytes, the mirror has ${length}${seen}` }; // 11
}

const undetermined = (at: number, needs: Need): Decision => ({ kind: 'undetermined', at, needs });

function damaged(at: number, why: string): Decision {
  return { kind: 'mirror-damaged', at, reason: `${why}: requested again from byte ${at} on` };
}
