/** What the steps of one poll share. */
import type { Content, FileParts, Part, Remote } from '../ports/server.ts';
import type { TextDecoding } from './text/decoding.ts';
import type { Reading } from './text/reading.ts';

/**
 * How the poll of a file ended.
 *   current    the mirror has all bytes of the file
 *   absent     the file does not exist at present
 *   tail       the file ends inside a character; its other bytes may follow
 *   raw        the text does not show the next bytes, and raw bytes are not available now
 *   different  the file looks truncated or rewritten, and the next poll must confirm it; or that was acted upon
 *   unclear    responses contradict each other, because the file changed meanwhile, or the text is ambiguous
 */
export type FollowEnd = 'current' | 'absent' | 'tail' | 'raw' | 'different' | 'unclear';

/** Whether the next poll may decide more, so that it should run soon. */
export const needsAnotherPoll = (end: FollowEnd): boolean => end === 'different' || end === 'unclear';

/** What the live files of one poll share. */
export interface PollMode {
  /** A complete pass (`sync`, the end of a job): raw bytes are fetched without waiting for quiet. */
  readonly isFinal: boolean;
  /** Downloads whole files; its calls wait in the queue of the job. */
  readonly whole: Remote;
  readonly signal: AbortSignal;
}

/** What one live file needs to be compared with the server. */
export interface FileContext extends PollMode {
  readonly decoding: TextDecoding;
  readonly parts: FileParts;
}

/** The text of a file from `offset` on. */
export interface Shown {
  readonly offset: number;
  readonly content: Content;
}

/** A text that is compared: the cursor moves. */
export interface Response extends Shown {
  readonly reading: Reading;
}

/** The response that was compared with all of the mirror. */
export interface FirstResponse extends Response {
  /** As it was received: without a byte-order mark that the server stripped. */
  readonly part: Part;
}
