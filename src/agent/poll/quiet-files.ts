/**
 * What the poll of a quiet file looks like: the same answer to the same question, while its mirror lies there as the
 * agent left it, means the same as the last time. Then no mirror is opened and nothing is compared.
 */
import type { LiveFileRow } from '../../store/rows.ts';
import type { FileMemory, QuietPoll } from '../live/memory.ts';
import type { OpenMirrors } from '../live/mirror/open-mirrors.ts';
import type { Exchange } from '../live/stuck.ts';
import type { Part } from '../ports.ts';

/** Longer answers are not kept. */
const MAX_TEXT_BYTES = 4 * 1024;

/** The last poll of the file, if it was quiet and the mirror is as it was then. */
export async function lastQuietPoll(
  row: LiveFileRow,
  { quiet }: FileMemory,
  mirrors: OpenMirrors,
): Promise<QuietPoll | undefined> {
  if (quiet === undefined || row.rotation !== null || row.inexact.length > 0) return undefined;
  return (await mirrors.isAsLeft(row)) ? quiet : undefined;
}

/** What to keep of a poll of one question that changed nothing; undefined if its answer is too long for that. */
export async function quietPoll({ offset, part }: Exchange, end: QuietPoll['end']): Promise<QuietPoll | undefined> {
  if ((part?.content.length ?? 0) > MAX_TEXT_BYTES) return undefined;
  return { offset, text: await textOf(part), end };
}

/** Whether a part says the same as the quiet poll before. */
export async function saysTheSame(quiet: QuietPoll, part: Part | undefined, row: LiveFileRow): Promise<boolean> {
  if (part === undefined) return quiet.text === null;
  if (part.isBeginning) return false;
  if (part.content.length !== quiet.text?.length || part.relativePath !== row.relativePath) return false;
  return (await textOf(part)) === quiet.text;
}

async function textOf(part: Part | undefined): Promise<string | null> {
  return part === undefined ? null : (await part.content.read(0, part.content.length)).toString('latin1');
}
