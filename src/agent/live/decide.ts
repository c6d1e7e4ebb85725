/**
 * Decides what a response shows about a mirror: one table. `decide` receives the facts that are known so far and
 * requests nothing itself. Where they do not suffice, the decision names what is needed, and is made again with it.
 *
 *   the response                          the mirror                          decision
 *   ----------------------------------------------------------------------------------------------------------------
 *   shows all of it, and ends there       -                                   unchanged
 *   shows all of it, and goes on          -                                   grown
 *   does not show uncommitted bytes       -                                   mirror-damaged: cut uncommitted bytes
 *   does not show others to be compared   -                                   undetermined: raw bytes
 *   ends in bytes that it cannot show     ends there, too                     undetermined: raw bytes
 *   one of these two                      raw bytes are refused               unchanged or grown: they are inexact
 *   its text differs                      has uncommitted bytes               mirror-damaged: cut uncommitted bytes
 *   its text ends before                  changed; has uncommitted bytes      mirror-damaged: cut uncommitted bytes
 *   its text differs, or ends before      lacks its committed bytes           undetermined: all of the mirror
 *   its text differs                      changed                             undetermined: its committed end
 *   its text differs                      changed; its end is shown or lost   mirror-damaged: cut to equal bytes
 *   differs, seen once                    -                                   undetermined: another poll
 *   ends before, seen for less than 5 s   -                                   undetermined: another poll
 *   raw bytes differ, or end before       changed                             mirror-damaged: cut to equal bytes
 *   differs, or ends before               has uncommitted bytes               mirror-damaged: cut uncommitted bytes
 *   differs after bytes it cannot show    -                                   undetermined: raw bytes
 *   differs after an inexact range        raw bytes are refused               undetermined: another poll
 *   differs after others not shown        raw bytes are refused               rewritten or truncated
 *   differs, seen twice                   -                                   rewritten: a new generation
 *   ends before, seen for 5 s             -                                   truncated: a new generation
 *
 * Raw bytes are authoritative: what they show of a mirror that another process changed needs no further proof. A
 * response that another decoder made is not different: explain.ts finds the decoder first, and reports its change.
 */
import type { Difference, Match } from './match.ts';
import type { Integrity } from './mirror/live-file.ts';

/** What is known about a response and the mirror. Undefined: not determined yet. */
export interface Facts {
  readonly shown: Match;
  readonly by: 'text' | 'raw bytes';
  /** The first byte to be compared that the text does not show; undefined if there is none. */
  readonly unshownFrom?: number | undefined;
  /** The comparison went through an inexact range of the mirror. */
  readonly isBehindInexact?: boolean;
  /** False: the raw bytes cannot be had. */
  readonly hasRawBytes?: boolean;
  /** The response goes on behind the mirror. */
  readonly goesOn: boolean;
  readonly mirror: {
    readonly length: number;
    readonly committed: number;
    readonly integrity: Integrity;
    /** The last bytes before the committed offset have the checksum that was committed. */
    readonly hasFingerprint: boolean;
  };
  /** The remote file has the committed end of the mirror, where that was changed before it. */
  readonly showsEnd?: boolean;
  /** An earlier poll saw it too, long enough ago. False: not yet. Undefined: not asked. */
  readonly isConfirmed?: boolean;
}

export type Decision =
  | { readonly kind: 'unchanged' | 'grown'; readonly at: number }
  | { readonly kind: 'truncated' | 'rewritten' | 'mirror-damaged'; readonly at: number; readonly reason: string }
  | { readonly kind: 'undetermined'; readonly at: number; readonly needs: Need };

export type Need = 'raw-bytes' | 'all-of-the-mirror' | 'its-end' | 'confirmation' | 'the-next-poll';

export function decide(facts: Facts): Decision {
  const { shown, by, unshownFrom, goesOn, mirror, showsEnd, isConfirmed } = facts;
  const { length, committed, integrity, hasFingerprint } = mirror;
  const uncommitted = length > committed && integrity !== 'unknown';
  if (shown.kind === 'same') {
    // It is requested again together with what follows it.
    if (uncommitted && unshownFrom !== undefined && unshownFrom >= committed) return cutUnshown(unshownFrom);
    const isOpen = shown.open || unshownFrom !== undefined;
    // Without raw bytes, an undecodable byte stays inexact.
    if (isOpen && facts.hasRawBytes !== false) return undetermined(unshownFrom ?? shown.at, 'raw-bytes');
    return { kind: goesOn ? 'grown' : 'unchanged', at: length };
  }
  const at = Math.min(shown.at, unshownFrom ?? shown.at);
  const isDifferent = shown.kind === 'different';
  if (by === 'text') {
    if (uncommitted && (isDifferent || integrity === 'modified')) return cutToCommitted(at, committed);
    if (integrity === 'intact' && !hasFingerprint) return undetermined(0, 'all-of-the-mirror');
    if (integrity === 'modified' && isDifferent && (!hasFingerprint || showsEnd === true)) return cutToEqual(at);
    if (integrity === 'modified' && isDifferent && showsEnd === undefined) return undetermined(at, 'its-end');
  }
  if (isConfirmed !== true) return undetermined(at, isConfirmed === undefined ? 'confirmation' : 'the-next-poll');
  if (by === 'raw bytes' && integrity === 'modified') return cutToEqual(at);
  if (uncommitted) return cutToCommitted(at, committed);
  // After undecodable bytes, an offset in the text is not certain.
  const isUncertain = by === 'text' && (unshownFrom !== undefined || facts.isBehindInexact === true);
  if (isUncertain && facts.hasRawBytes !== false) return undetermined(at, 'raw-bytes');
  if (isUncertain && facts.isBehindInexact === true) return undetermined(at, 'the-next-poll');
  return begunAnew({ kind: shown.kind, at }, facts);
}

const undetermined = (at: number, needs: Need): Decision => ({ kind: 'undetermined', at, needs });

function cutToEqual(at: number): Decision {
  const reason = `another process changed it: from byte ${at} on it differs from the remote file`;
  return { kind: 'mirror-damaged', at, reason };
}

/** Removes uncommitted bytes before committed ones are doubted: they were never promised. */
function cutToCommitted(differsAt: number, committed: number): Decision {
  const at = Math.max(differsAt, committed);
  return {
    kind: 'mirror-damaged',
    at,
    reason: `it differs from the remote file: its uncommitted bytes from byte ${at} on are requested again`,
  };
}

function cutUnshown(at: number): Decision {
  const reason = `the text does not show its uncommitted byte ${at}: it is requested again from there on`;
  return { kind: 'mirror-damaged', at, reason };
}

function begunAnew({ kind, at }: Difference, { mirror, by }: Facts): Decision {
  const seen = by === 'text' ? '' : ', as its raw bytes show';
  const lost = mirror.integrity === 'unknown' ? '; the state of the mirror was lost' : '';
  if (kind === 'different')
    return { kind: 'rewritten', at, reason: `its byte ${at} differs from the mirror${seen}${lost}` };
  const reason = `it has at most ${at} bytes, the mirror has ${mirror.length}${seen}${lost}`;
  return { kind: 'truncated', at, reason };
}
