/**
 * The error for a live file without progress though the server responds. It lists requests and responses, so that the
 * operator can repeat them.
 */
import { JobtailError } from '../../errors.ts';
import type { FollowEnd } from '../live/steps.ts';
import type { Part } from '../ports.ts';

/** One request of a poll and its response; undefined if the file does not exist. */
export interface Exchange {
  readonly offset: number;
  readonly part: Part | undefined;
}

const MAX_SHOWN = 6;
const SHOWN_BYTES = 8;

/** Why the polls of a stuck file ended early. */
const REASONS: Partial<Record<FollowEnd, string>> = {
  raw: 'the next bytes are not UTF-8, and the raw download failed',
  unclear: 'responses from different offsets contradict each other',
};

/** Whether a poll with this end left work undone. */
export function isUnfinished(end: FollowEnd | undefined): end is FollowEnd {
  return end !== undefined && end in REASONS;
}

export async function stuckError(end: FollowEnd, exchanges: readonly Exchange[]): Promise<JobtailError> {
  const shown: string[] = [];
  for (const { offset, part } of exchanges.slice(0, MAX_SHOWN)) shown.push(`from ${offset}: ${await shownOf(part)}`);
  const message = `no progress: ${REASONS[end]} (${shown.join('; ')})`;
  return new JobtailError('stuck', message, {
    hint: 'run `agent verify` to compare the mirror with raw bytes; if it differs, report this message',
  });
}

async function shownOf(part: Part | undefined): Promise<string> {
  if (part === undefined) return 'no entry';
  const { content } = part;
  if (content.length === 0) return 'no text';
  const begins = (await content.read(0, SHOWN_BYTES)).toString('hex');
  return `${content.length} bytes of text that begin with ${begins}`;
}
