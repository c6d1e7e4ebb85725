/** What a response shows of a mirror that is not the beginning of its remote file. Undetermined is requested again. */

/** mirror-damaged: the mirror was changed, and was repaired from the remote file. */
export const MISMATCH_KINDS = ['truncated', 'rewritten', 'mirror-damaged'] as const;
export type MismatchKind = (typeof MISMATCH_KINDS)[number];

export interface Mismatch {
  readonly kind: MismatchKind;
  /** Byte offset of the first byte that does not fit. */
  readonly at: number;
  readonly reason: string;
}

/** A mismatch as it is kept with its live file. */
export interface KeptMismatch extends Mismatch {
  /** The generation that began with it, or in which it was found. */
  readonly generation: number;
  readonly seenAt: number;
}

/** The name of each in the log and in `agent status`. */
export const MISMATCH_EVENTS: Readonly<Record<MismatchKind, string>> = {
  truncated: 'remote file truncated',
  rewritten: 'remote file rewritten',
  'mirror-damaged': 'mirror repaired',
};

/** A progress file is truncated again and again. */
const MAX_KEPT = 10;

export function withMismatch(kept: readonly KeptMismatch[], found: KeptMismatch): KeptMismatch[] {
  return [...kept, found].slice(-MAX_KEPT);
}

/** Whether a generation began with a mismatch. */
export function beginsGeneration({ kind }: Mismatch): boolean {
  return kind === 'truncated' || kind === 'rewritten';
}
