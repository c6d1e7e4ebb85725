/**
 * One poll of one live file, in one direction: request from a little before the committed offset, compare the response
 * with the mirror, decide (decide.ts), execute the decision, append what follows.
 */
import { commonLength } from '../../bytes.ts';
import type { BytesRange, LiveBytes, LiveSource } from '../ports/live-source.ts';
import type { ShownBy } from './debounce.ts';
import { type Decision, decide, type Facts, type Match } from './decide.ts';
import type { LiveFile } from './mirror/live-file.ts';
import type { RawBytes } from './raw-bytes.ts';

/**
 * The outcome of the poll of one file.
 *   current               the mirror has all bytes of the file
 *   absent                the file does not exist at present
 *   incomplete-character  the file ends inside a character; its other bytes may follow
 *   raw-unavailable       the service does not show the next bytes, and raw bytes are not available now
 *   changing              the file looks truncated or rewritten, and the next poll must confirm it; or that was acted upon
 *   unclear               responses contradict each other, because the file changed meanwhile
 */
export type PollOutcome = 'current' | 'absent' | 'incomplete-character' | 'raw-unavailable' | 'changing' | 'unclear';

/** Whether the next poll may decide more, so that it should run soon. */
export const needsAnotherPoll = (outcome: PollOutcome): boolean => outcome === 'changing' || outcome === 'unclear';

/** What the poll of one live file needs. */
export interface CatchUpContext {
  readonly source: LiveSource;
  readonly rawBytes: RawBytes;
  /** A complete pass (`sync`, the end of a job): raw bytes are fetched without the pauses between downloads. */
  readonly isFinal: boolean;
  /** The response from an offset on; undefined if the file does not exist at present. The poll releases it. */
  request(range: BytesRange): Promise<LiveBytes | undefined>;
  /** Waits until each other file waits as well, and what was appended is committed; then one file goes on at a time. */
  waitForCommit(): Promise<void>;
}

const MAX_ATTEMPTS = 4;
const APPEND_BYTES = 1024 * 1024;
const COMPARED_BYTES = 64 * 1024;

export async function catchUp(file: LiveFile, context: CatchUpContext): Promise<PollOutcome> {
  const outcome = await attempt(file, context);
  if (outcome !== 'unclear') file.memory.symptoms.clear('unclear');
  return outcome;
}

/** Where a request starts: at the overlap, which shows a truncation or rewrite; at 0 unless the mirror is intact. */
async function requestFrom(file: LiveFile, source: LiveSource): Promise<number> {
  const start = Math.max(0, file.undisputed - file.overlapBytes);
  return start + source.overlapStart(await file.read(start, file.undisputed));
}

async function attempt(file: LiveFile, context: CatchUpContext): Promise<PollOutcome> {
  for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts++) {
    const from = await requestFrom(file, context.source);
    const known = file.undisputed - from;
    const isThorough = context.isFinal || (known === 0 && file.length > 0);
    const response = await context.request({ from, known, isThorough });
    if (response === undefined) return 'absent';
    file.note({ relativePath: response.relativePath });
    const decision = decide(noteFacts(file, await compare(response, file), response.isRaw ? 'raw bytes' : 'text'));
    if (decision.kind === 'same') return await appendRest(file, response, context);
    if (decision.kind === 'undetermined' && decision.needs === 'raw-bytes') {
      if (!wasCompared(file, response)) return (await catchUpByRawBytes(file, response, context)) ?? 'raw-unavailable';
      file.memory.symptoms.noteSame('raw bytes');
      return 'current';
    }
    if (!(await act(decision, file))) return 'changing';
  }
  return 'unclear';
}

/** Compares the certain bytes of a response with the mirror, byte by byte. */
async function compare(response: LiveBytes, file: LiveFile): Promise<Match> {
  let at = response.from;
  // What shows nothing of a mirror proves nothing about it.
  if (at === file.length && at > 0) return { kind: 'shows-less', at };
  while (at < file.length) {
    const bytes = await response.next(Math.min(COMPARED_BYTES, file.length - at));
    if (bytes.length === 0)
      return { kind: (await response.whatFollows()) === 'nothing' ? 'shorter' : 'shows-less', at };
    const there = await file.read(at, at + bytes.length);
    const common = commonLength(bytes, there);
    at += common;
    if (common < bytes.length) {
      const isByAscii = [bytes, there].every((each) => (each[common] ?? 0x80) < 0x80);
      return { kind: 'different', at, isByAscii };
    }
  }
  return { kind: 'same', at };
}

/** Records a difference, so that the next poll confirms it, or that it is gone. */
function noteFacts(file: LiveFile, found: Match, by: ShownBy): Facts {
  const { symptoms } = file.memory;
  const { kind, at } = found;
  if (kind !== 'shorter') symptoms.noteLength(at);
  const isMismatch = kind === 'shorter' || kind === 'different';
  const isConfirmed = isMismatch && symptoms.note(kind, file.length, at, by);
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

/** Appends what follows the mirror: as far as the response shows it, then by raw bytes. */
async function appendRest(file: LiveFile, response: LiveBytes, context: CatchUpContext): Promise<PollOutcome> {
  const { symptoms, raw } = file.memory;
  file.markCompared(response.isRaw ? 'raw bytes' : 'text');
  for (let bytes = await response.next(APPEND_BYTES); bytes.length > 0; bytes = await response.next(APPEND_BYTES))
    await file.append(bytes);
  const following = await response.whatFollows();
  if (following === 'nothing') return 'current';
  if (following !== 'hidden') {
    // A later response may show more: the rest of a character comes with the next bytes, and no file changes for ever.
    const hasPersisted = symptoms.note(following, file.length);
    if (!hasPersisted && !context.isFinal) return following;
  }
  const before = file.length;
  const outcome = await catchUpByRawBytes(file, response, context);
  if (outcome === 'current') symptoms.clear('incomplete-character');
  if (outcome !== undefined && (outcome !== 'current' || file.length > before)) return outcome;
  if (following === 'unclear') return 'unclear';
  return following === 'incomplete-character' && raw.reason === '' ? following : 'raw-unavailable';
}

/** Whether raw bytes showed that the mirror is that of this very response, and nothing may follow unseen. */
function wasCompared({ memory, integrity, length }: LiveFile, { from, sameness, isEndCertain }: LiveBytes): boolean {
  const { compared } = memory.raw;
  const isSame = sameness !== undefined && compared?.sameness === sameness && compared.from === from;
  return isSame && isEndCertain && integrity === 'intact' && compared.length === length;
}

/** Compares the mirror with raw bytes, and appends or decides. Undefined if they are not available now. */
async function catchUpByRawBytes(
  file: LiveFile,
  response: LiveBytes,
  context: CatchUpContext,
): Promise<PollOutcome | undefined> {
  const { rawBytes, isFinal } = context;
  if (!rawBytes.isDue(file.memory, isFinal, response)) return undefined;
  await context.waitForCommit();
  const found = await rawBytes.catchUp(file, response, isFinal);
  if (found === undefined) return undefined;
  if (found.kind === 'same') return 'current';
  await act(decide(noteFacts(file, found, 'raw bytes')), file);
  return 'changing';
}
