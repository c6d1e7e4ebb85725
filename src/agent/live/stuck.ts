/**
 * What to say of a live file that did not go on for a while, though the service answers: what was asked, and what came,
 * so that whoever reads it can ask the service the same.
 */
import { JobtailError } from '../../errors.ts';
import type { Part } from '../ports.ts';
import type { FollowEnd } from './steps.ts';

/** A question of a poll, and its answer; undefined if there is no such file. */
export interface Exchange {
  readonly offset: number;
  readonly part: Part | undefined;
}

const MOST_SHOWN = 6;
const SHOWN_BYTES = 8;

/** Why a file that is stuck ended its polls. */
const REASONS: Partial<Record<FollowEnd, string>> = {
  raw: 'its next bytes are not UTF-8, and its raw bytes are not to be had',
  unclear: 'what the service shows from one offset does not fit what it shows from another',
};

/** Whether a poll that ends so has work left which it could not do. */
export function isUnfinished(end: FollowEnd | undefined): end is FollowEnd {
  return end !== undefined && end in REASONS;
}

export async function stuckError(end: FollowEnd, exchanges: readonly Exchange[]): Promise<JobtailError> {
  const shown: string[] = [];
  for (const { offset, part } of exchanges.slice(0, MOST_SHOWN)) shown.push(`from ${offset}: ${await shownOf(part)}`);
  const message = `the mirror does not go on: ${REASONS[end]} (${shown.join('; ')})`;
  return new JobtailError('stuck', message, {
    hint: '`agent verify` compares it with the raw bytes; if it differs, report what stands in the brackets',
  });
}

async function shownOf(part: Part | undefined): Promise<string> {
  if (part === undefined) return 'no entry';
  const { content } = part;
  if (content.length === 0) return 'no text';
  const begins = (await content.read(0, SHOWN_BYTES)).toString('hex');
  return `${content.length} bytes of text that begin with ${begins}`;
}
