/** What the steps of one poll share. */
import type { FileParts, Part } from '../ports.ts';
import type { RawBytes } from './append/raw-bytes.ts';
import type { Debounce } from './debounce.ts';
import type { TextDecoding } from './text/decoding.ts';
import type { Reading } from './text/reading.ts';

/**
 * How the poll of a file ended.
 *   current    the mirror has all bytes of the file
 *   absent     the file does not exist at present
 *   tail       the file ends inside a character; its other bytes may follow
 *   raw        the text does not show the next bytes, and raw bytes are not available now
 *   later      the server does not decode UTF-8, and the raw bytes are requested with back-off
 *   refused    the server does not decode UTF-8, and refuses raw bytes
 *   different  the file looks truncated or rewritten, and the next poll must confirm it; or that was acted upon
 *   unclear    responses contradict each other, because the file changed meanwhile, or the text is ambiguous
 */
export type FollowEnd = 'current' | 'absent' | 'tail' | 'raw' | 'later' | 'refused' | 'different' | 'unclear';

/** Whether the next poll may decide more, so that it should run soon. */
export const needsAnotherPoll = (end: FollowEnd): boolean => end === 'different' || end === 'unclear';

/** What all live files share. */
export interface LiveParts {
  readonly decoding: TextDecoding;
  readonly debounce: Debounce;
  readonly rawBytes: RawBytes;
}

/** What the live files of one poll share. */
export interface PollMode {
  /** The last pass of a job: raw bytes are fetched without waiting for quiet. */
  readonly final: boolean;
  readonly signal: AbortSignal;
}

export interface FollowContext extends LiveParts, PollMode {
  readonly parts: FileParts;
}

/** A response: the text of the file from `offset` on. */
export interface Response {
  readonly offset: number;
  readonly part: Part;
  /** The cursor moves while the text is compared. */
  readonly reading: Reading;
}

/** The response that was compared with all of the mirror. */
export interface FirstResponse extends Response {
  /** All of the text: it proves raw bytes. */
  readonly shown: Reading;
  /** A response from another offset, which showed that no byte-order mark is missing. */
  readonly second?: Part | undefined;
}
