/**
 * What the recipes of one poll share: they yield the offsets they ask for and are given what the service has from there,
 * so that one call can carry the questions of all files of a job.
 */
import type { Part } from '../ports.ts';
import type { RawBytes } from './append/raw-bytes.ts';
import type { Sightings } from './sightings.ts';
import type { TextEncoding } from './text/encoding.ts';
import type { Reading } from './text/reading.ts';

/**
 * current: the mirror has all there is. absent: there is no such file at present. tail: the file ends inside a
 * character. raw: the next byte is none of UTF-8, and its raw bytes are not to be had now. different: it looks truncated
 * or rewritten, and a second look is wanted. unclear: what it shows from one offset does not fit what it shows from
 * another; it changed meanwhile, or the text cannot tell.
 */
export type FollowEnd = 'current' | 'absent' | 'tail' | 'raw' | 'different' | 'unclear';

/** Whether the next poll may say more, so that it is wanted soon. */
export const wantsAnotherLook = (end: FollowEnd): boolean => end === 'different' || end === 'unclear';

export interface FollowContext {
  readonly encoding: TextEncoding;
  readonly sightings: Sightings;
  readonly rawBytes: RawBytes;
  /** Whether the service has whole files of the job: none before it is submitted (docs/rest.md 3.5). */
  readonly hasWholeFiles: boolean;
  /** The last pass of a job: raw bytes are fetched without waiting for quiet. */
  readonly final: boolean;
  readonly signal: AbortSignal;
}

/** What the service said of a file from `offset` on. */
export interface Answer {
  readonly offset: number;
  readonly reading: Reading;
  /** Another answer that is at hand: from about half a block behind `offset` on. */
  readonly second?: Part | undefined;
}

/** The response from the overlap on, which is compared with the mirror. */
export interface FirstResponse {
  readonly offset: number;
  readonly part: Part;
}
