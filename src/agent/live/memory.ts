import type { BackOff } from '../../back-off.ts';
import type { JobtailError } from '../../errors.ts';

/**
 * What is remembered of one live file from poll to poll, for as long as this process follows its job. It begins with
 * nothing, and each part is there once there is something to be remembered.
 */
export interface FileMemory {
  /** This process has left the mirror as it was committed, so whoever else touches it is found out. */
  leftIntact?: boolean;
  /** How the last poll went, if it changed nothing. */
  quiet?: QuietPoll | undefined;
  /** What was seen and is not acted upon yet. */
  sightings?: Map<Sight, Sighting>;
  /** How it went when its raw bytes were asked for. */
  rawBytes?: RawBytesTries;
  /** The beginning of its text, which is long, led to nothing, so all of it is wanted. */
  wantsWholeText?: boolean;
  /** The last poll failed for this file alone. */
  failed?: FailedPoll | undefined;
}

/** A failure of one file, and the pause before the service is asked for the file again. */
export interface FailedPoll {
  readonly error: JobtailError;
  readonly pause: BackOff;
}

/** A poll that changed nothing: what was asked, and what came. */
export interface QuietPoll {
  readonly offset: number;
  /** The answer's text, one character a byte; null if there was no such file. */
  readonly text: string | null;
  readonly end: 'current' | 'absent';
}

/** stuck: work was left that could not be done; unclear: because what the service shows fits nothing. */
export type Sight = 'difference' | 'tail' | 'unclear' | 'stuck';

export interface Sighting {
  /** When it was first seen, in milliseconds. */
  readonly since: number;
  /** That of the mirror then. */
  readonly length: number;
}

/** When raw bytes may be requested again, in milliseconds, for each purpose. */
export interface RawBytesTries {
  toExtend: number;
  toDecide: number;
  toMend: number;
  /** How often in a row they could not be had. */
  refusals: number;
}
