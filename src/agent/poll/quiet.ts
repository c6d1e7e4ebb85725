/**
 * A poll that changed nothing. The next one expects the same response to the same request, as long as the mirror is as
 * the agent left it: then no mirror is opened, and nothing is compared.
 */
import type { LiveFileRow } from '../../store/rows.ts';
import type { Mirrors } from '../live/mirror/mirror.ts';
import type { Part } from '../ports.ts';
import type { Exchange } from './stuck.ts';

/** The request of a quiet poll, and its response. */
export interface QuietPoll {
  readonly offset: number;
  /** The text of the response, one character a byte; null if the file did not exist. */
  readonly text: string | null;
  readonly end: 'current' | 'absent';
}

/** The response of a quiet poll is kept up to this length. */
const MAX_TEXT_BYTES = 4 * 1024;

/** What is kept of a poll of one request that changed nothing; undefined if its response is too long. */
export async function quietPoll({ offset, part }: Exchange, end: QuietPoll['end']): Promise<QuietPoll | undefined> {
  if ((part?.content.length ?? 0) > MAX_TEXT_BYTES) return undefined;
  return { offset, text: await textOf(part), end };
}

/** Whether the mirror is as the quiet poll left it. */
export async function isUnchanged(row: LiveFileRow, mirrors: Mirrors): Promise<boolean> {
  return row.rotation === null && row.inexact.length === 0 && (await mirrors.isAsLeft(row));
}

/** Whether a part is that of the quiet poll. */
export async function isSamePart({ text }: QuietPoll, part: Part | undefined, row: LiveFileRow): Promise<boolean> {
  if (part === undefined) return text === null;
  if (part.isBeginning) return false;
  if (part.content.length !== text?.length || part.relativePath !== row.relativePath) return false;
  return (await textOf(part)) === text;
}

async function textOf(part: Part | undefined): Promise<string | null> {
  return part === undefined ? null : (await part.content.read(0, part.content.length)).toString('latin1');
}
