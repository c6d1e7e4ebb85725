/**
 * One poll of one live file, in one direction: request from a little before the committed offset, compare the answer
 * with the mirror, decide (decide.ts), execute the decision, append what follows.
 */
import type { LiveBytes, LiveSource } from '../ports/server.ts';
import { compare, type Match } from './compare.ts';
import type { ShownBy } from './debounce.ts';
import { type Decision, decide, type Facts } from './decide.ts';
import type { LiveFile } from './mirror/live-file.ts';
import type { FollowContext, FollowEnd } from './steps.ts';

const MAX_ATTEMPTS = 4;
const APPEND_BYTES = 1024 * 1024;

export async function follow(file: LiveFile, context: FollowContext): Promise<FollowEnd> {
  const end = await attempt(file, context);
  if (end !== 'unclear') file.memory.symptoms.clear('unclear');
  return end;
}

/** Where a request starts: at the overlap, which shows a truncation or rewrite; at 0 unless the mirror is intact. */
export async function nextOffset(file: LiveFile, source: LiveSource): Promise<number> {
  const start = Math.max(0, file.undisputed - file.overlapBytes);
  return start + source.overlapIn(await file.read(start, file.undisputed));
}

async function attempt(file: LiveFile, context: FollowContext): Promise<FollowEnd> {
  for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts++) {
    const from = await nextOffset(file, context.source);
    const known = file.undisputed - from;
    const isThorough = context.isFinal || (known === 0 && file.length > 0);
    const answer = await context.request({ from, known, isThorough });
    if (answer === undefined) return 'absent';
    file.note({ relativePath: answer.relativePath });
    const decision = decide(factsOf(file, await compare(answer, file), answer.isRaw ? 'raw bytes' : 'text'));
    if (decision.kind === 'same') return await appendRest(file, answer, context);
    if (decision.kind === 'undetermined' && decision.needs === 'raw-bytes')
      return wasCompared(file, answer) ? 'current' : ((await compareRawBytes(file, answer, context)) ?? 'raw');
    if (!(await act(decision, file))) return 'different';
  }
  return 'unclear';
}

/** Records a difference, so that the next poll confirms it, or that it is gone. */
function factsOf(file: LiveFile, found: Match, by: ShownBy): Facts {
  const { symptoms } = file.memory;
  const { kind, at } = found;
  if (kind === 'same') symptoms.noteLength(at);
  const isMismatch = kind === 'shorter' || kind === 'different';
  const isConfirmed = isMismatch && symptoms.hasPersisted(kind, file.length, at, by);
  return { found, by, isConfirmed, mirror: file };
}

/** Executes a decision. Returns whether the mirror changed, so that the file can be requested again. */
async function act(decision: Decision, file: LiveFile): Promise<boolean> {
  if (!('reason' in decision)) return false;
  file.memory.symptoms.clear('shorter', 'different');
  if (decision.kind === 'mirror-damaged') await file.cut(decision.at, decision.reason);
  else await file.startGeneration(decision);
  return true;
}

/** Appends what follows the mirror: as far as the answer shows it, then by raw bytes. */
async function appendRest(file: LiveFile, answer: LiveBytes, context: FollowContext): Promise<FollowEnd> {
  const { symptoms, raw } = file.memory;
  file.markCompared(answer.isRaw ? 'raw bytes' : 'text');
  for (let bytes = await answer.next(APPEND_BYTES); bytes.length > 0; bytes = await answer.next(APPEND_BYTES))
    await file.append(bytes);
  const rest = await answer.rest();
  if (rest === 'end') return 'current';
  if (rest === 'unclear' && !symptoms.hasPersisted('unclear', file.length) && !context.isFinal) return 'unclear';
  // A character that the end of a growing file cuts arrives with the next bytes; the next poll has one that came later.
  const isTail = rest === 'begun';
  if (isTail && !symptoms.hasPersisted('tail', file.length) && !context.isFinal) return 'tail';
  const before = file.length;
  const end = await compareRawBytes(file, answer, context);
  if (end === 'current') symptoms.clear('tail');
  if (end !== undefined && (end !== 'current' || file.length > before)) return end;
  if (rest === 'unclear') return 'unclear';
  return isTail && raw.reason === '' ? 'tail' : 'raw';
}

/** Whether raw bytes showed that the mirror is that of this very answer, and nothing may follow unseen. */
function wasCompared({ memory, integrity, length }: LiveFile, { from, sameness, isEndShown }: LiveBytes): boolean {
  const { compared } = memory.raw;
  const isSame = sameness !== undefined && compared?.sameness === sameness && compared.from === from;
  return isSame && isEndShown && integrity === 'intact' && compared.length === length;
}

/** Compares the mirror with raw bytes, and appends or decides. Undefined if they are not available now. */
async function compareRawBytes(
  file: LiveFile,
  answer: LiveBytes,
  context: FollowContext,
): Promise<FollowEnd | undefined> {
  const { rawBytes, isFinal } = context;
  if (!rawBytes.isDue(file.memory, isFinal, answer)) return undefined;
  await context.waitForCommit();
  const found = await rawBytes.compare(file, answer, isFinal);
  if (found === undefined) return undefined;
  if (found.kind === 'same') return 'current';
  await act(decide(factsOf(file, found, 'raw bytes')), file);
  return 'different';
}
