/** What the steps of one poll share. */
import type { BytesRange, LiveBytes, LiveSource } from '../ports/server.ts';
import type { RawBytes } from './raw-bytes.ts';

/**
 * How the poll of a file ended.
 *   current    the mirror has all bytes of the file
 *   absent     the file does not exist at present
 *   tail       the file ends inside a character; its other bytes may follow
 *   raw        the service does not show the next bytes, and raw bytes are not available now
 *   different  the file looks truncated or rewritten, and the next poll must confirm it; or that was acted upon
 *   unclear    responses contradict each other, because the file changed meanwhile
 */
export type FollowEnd = 'current' | 'absent' | 'tail' | 'raw' | 'different' | 'unclear';

/** Whether the next poll may decide more, so that it should run soon. */
export const needsAnotherPoll = (end: FollowEnd): boolean => end === 'different' || end === 'unclear';

/** What one live file needs to be followed in one poll. */
export interface FollowContext {
  readonly source: LiveSource;
  readonly rawBytes: RawBytes;
  /** A complete pass (`sync`, the end of a job): raw bytes are fetched without waiting for quiet. */
  readonly isFinal: boolean;
  /** The answer from an offset on; undefined if the file does not exist at present. The poll releases it. */
  request(range: BytesRange): Promise<LiveBytes | undefined>;
  /** Waits until each other file waits as well, and what was appended is committed. */
  waitForCommit(): Promise<void>;
}
