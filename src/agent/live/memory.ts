import type { BackOff } from '../../back-off.ts';
import type { JobtailError } from '../../errors.ts';

/**
 * The memory of one live file from poll to poll, for as long as this process follows its job. It starts empty.
 */
export interface FileMemory {
  /** This process left the mirror as it was committed, so a change by another process is detected. */
  leftIntact?: boolean;
  /** The last poll, if it changed nothing. */
  quiet?: QuietPoll | undefined;
  /** Symptoms that are not acted upon yet. */
  symptoms?: Map<SymptomKind, Symptom>;
  /** Attempts to download raw bytes. */
  rawBytes?: RawBytesTries;
  /** The start of a long text did not suffice, so all of it is requested. */
  wantsWholeText?: boolean;
  /** The last poll failed for this file alone. */
  failed?: FailedPoll | undefined;
}

/** A failure of one file, and the pause before the file is requested again. */
export interface FailedPoll {
  readonly error: JobtailError;
  readonly pause: BackOff;
}

/** A poll that changed nothing: its request and its response. */
export interface QuietPoll {
  readonly offset: number;
  /** The text of the response, one character a byte; null if the file did not exist. */
  readonly text: string | null;
  readonly end: 'current' | 'absent';
}

/** stuck: the poll left work undone; unclear: the responses contradict each other. */
export type SymptomKind = 'difference' | 'tail' | 'unclear' | 'stuck';

export interface Symptom {
  /** When it was first seen, in milliseconds. */
  readonly since: number;
  /** Length of the mirror at that time. */
  readonly length: number;
}

/** When raw bytes may be requested again, in milliseconds, for each purpose. */
export interface RawBytesTries {
  toExtend: number;
  toDecide: number;
  toMend: number;
  /** Consecutive failures. */
  refusals: number;
}
