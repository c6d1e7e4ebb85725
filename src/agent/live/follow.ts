/**
 * One poll of one live file: request from a little before the committed offset, find the decoder of the response, compare
 * it with the mirror, decide (decide.ts), and execute the decision.
 */
import { JobtailError } from '../../errors.ts';
import type { InexactRegion } from '../../store/rows.ts';
import { BEHIND_EVERY_END } from '../ports.ts';
import { appendText } from './append/append.ts';
import { fillInexact, substitute } from './append/inexact.ts';
import type { Purpose } from './append/raw-bytes.ts';
import { type ShownPart, shownBy } from './append/raw-download.ts';
import { type Decision, decide, type Facts, type Need } from './decide.ts';
import { type Match, match } from './match.ts';
import { overlaps } from './mirror/inexact-regions.ts';
import type { LiveFile } from './mirror/live-file.ts';
import { FINGERPRINT_BYTES } from './mirror/mirror.ts';
import { alignDown, overlapOffset } from './offsets.ts';
import type { FirstResponse, FollowContext, FollowEnd, Response } from './steps.ts';
import { UnknownCodePage, unidentified } from './text/encoding.ts';
import { explain } from './text/explain.ts';

const MAX_ATTEMPTS = 4;

/** Follows a file by its decoded text; by its raw bytes where the text stays undetermined, or in the last pass. */
export async function follow(file: LiveFile, context: FollowContext): Promise<FollowEnd> {
  let end: FollowEnd | undefined;
  try {
    end = await followText(file, context);
  } catch (error) {
    end = error instanceof UnknownCodePage ? await compareRawBytes(file, context) : undefined;
    if (end === undefined) throw error;
  }
  if (end !== 'unclear') context.debounce.clear(file, 'unclear');
  else if (context.debounce.hasPersisted(file, 'unclear') || context.final)
    return (await compareRawBytes(file, context)) ?? end;
  return end;
}

async function followText(file: LiveFile, context: FollowContext): Promise<FollowEnd> {
  const { debounce, encoding } = context;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const offset = await overlapOffset(file);
    const part = await context.parts.at(offset);
    if (part === undefined) return 'absent';
    if (!part.isBeginning || part.content.length === 0) file.note({ relativePath: part.relativePath });
    if (part.isBeginning && part.content.length === 0) return await followRaw(file, context);

    const explained = await explain(offset, part, file, context);
    if (explained === 'again') return 'unclear';
    const shown = await shownBy(offset, explained.reading.fork(), encoding);
    const first: FirstResponse = { ...explained, shown };
    let { facts, unshown } = await compareText(file, first, context);
    let decision = decide(facts);

    if (isNeeded(decision, 'its-end')) {
      facts = { ...facts, showsEnd: await showsEnd(decision.at, file, first, context) };
      decision = decide(facts);
    }
    if (isNeeded(decision, 'raw-bytes')) {
      const end = await requestRawBytes(file, first, first, context, 'toDecide');
      if (end !== undefined) return end;
      decision = decide({ ...facts, areRawBytesRefused: true });
      if (isNeeded(decision, 'the-next-poll')) return 'unclear';
    }
    if (decision.kind === 'unchanged' || decision.kind === 'grown') {
      file.markCompared(unshown);
      if (file.row.inexact.length > 0) {
        const end = await compareRawBytes(file, context, 'toMend', shown);
        if (end !== undefined) return end;
      }
      debounce.clear(file, 'shorter', 'different');
      return await append(file, first, facts.shown, context);
    }
    if (!(await act(decision, file, context))) return 'different';
  }
  return 'unclear';
}

const isNeeded = (decision: Decision, need: Need) => decision.kind === 'undetermined' && decision.needs === need;

/** Compares a text with the mirror. `unshown`: the disputed bytes of the mirror that the text does not show. */
async function compareText(
  file: LiveFile,
  { offset, reading }: Response,
  context: FollowContext,
): Promise<{ readonly facts: Facts; readonly unshown: readonly InexactRegion[] }> {
  const unshown: InexactRegion[] = [];
  let isBehindInexact = false;
  const shown = await match(reading, file, { from: offset, to: file.length }, (start, end) => {
    isBehindInexact ||= file.row.inexact.some((region) => overlaps(region, start, end));
    const open = Math.max(start, file.undisputed);
    if (open < end) unshown.push({ start: open, length: end - open });
  });
  const facts = await factsOf(file, shown, 'text', context);
  return { facts: { ...facts, unshownFrom: unshown[0]?.start, isBehindInexact, goesOn: !reading.atEnd() }, unshown };
}

/** Records a difference, so that the next poll confirms it. */
async function factsOf(file: LiveFile, shown: Match, by: Facts['by'], { debounce }: FollowContext): Promise<Facts> {
  const { length, committed, integrity } = file;
  const isSame = shown.kind === 'same';
  const mirror = { length, committed, integrity, hasFingerprint: isSame || (await file.hasItsFingerprint()) };
  return { shown, by, goesOn: false, isConfirmed: !isSame && debounce.hasPersisted(file, shown.kind), mirror };
}

/** Whether the remote file still has the committed end of a mirror that was changed at `at`, before it. */
async function showsEnd(at: number, file: LiveFile, { decode }: Response, { parts }: FollowContext): Promise<boolean> {
  const start = Math.max(0, file.row.position - FINGERPRINT_BYTES);
  if (at >= start) return false;
  const from = await alignDown(file, start);
  const part = await parts.at(from);
  if (part === undefined) return false;
  return (await match(decode(part.content), file, { from, to: file.committed })).kind === 'same';
}

/** Executes a decision. Returns whether the mirror changed, so that the file can be requested again. */
async function act(decision: Decision, file: LiveFile, { debounce }: FollowContext): Promise<boolean> {
  if (decision.kind === 'undetermined') {
    if (decision.needs !== 'all-of-the-mirror') return false;
    file.markModified();
    return true;
  }
  debounce.clear(file, 'shorter', 'different');
  if (!('reason' in decision)) return false;
  if (decision.kind === 'mirror-damaged') await file.cut(decision.at, decision.reason);
  else await file.startGeneration(decision);
  return true;
}

/** Appends what follows the mirror, which the text shows. */
async function append(file: LiveFile, first: FirstResponse, shown: Match, context: FollowContext): Promise<FollowEnd> {
  let response: Response = first;
  if (shown.kind === 'same' && shown.open) {
    const filled = await fillInexact(file, shown.at, first, context.parts);
    if (typeof filled === 'string') return filled;
    response = filled;
  }
  if (first.part.isBeginning) {
    if (file.row.relativePath === null) {
      // A request after the end of the file returns its path without text.
      const named = await context.parts.at(BEHIND_EVERY_END);
      if (named === undefined) return 'absent';
      file.note({ relativePath: named.relativePath });
    }
    return (await compareRawBytes(file, context, 'toExtend', first.shown)) ?? 'raw';
  }
  const appended = await appendText(file, response, first, context);
  if (typeof appended === 'string') return appended;
  const { codePage } = appended.reading;
  if (appended.reading.atEnd()) return 'current';
  const end = await requestRawBytes(file, first, appended, context, 'toExtend');
  if (end !== undefined) return end;
  if (codePage !== undefined) throw unidentified(codePage.names);
  return await substitute(file, first, context.parts);
}

/**
 * Requests raw bytes, because the text does not show what follows the cursor of `response`. Undefined if they are
 * refused: the text alone decides.
 */
async function requestRawBytes(
  file: LiveFile,
  { shown }: FirstResponse,
  { reading }: Response,
  context: FollowContext,
  purpose: Purpose,
): Promise<FollowEnd | undefined> {
  const { debounce, rawBytes, hasWholeFiles, final } = context;
  const rest = reading.fork();
  // A character that the end of a growing file cuts arrives with the next bytes.
  const isTail = reading.codePage === undefined && (await rest.skipUncertain()) > 0 && rest.atEnd();
  if (isTail && !final && !debounce.hasPersisted(file, 'tail')) return 'tail';
  const end = await compareRawBytes(file, context, purpose, shown);
  if (end === 'current') debounce.clear(file, 'tail');
  if (end !== undefined || (hasWholeFiles && rawBytes.areRefused(file, final))) return end;
  return isTail ? 'tail' : 'raw';
}

/** Follows a file that is longer than the server can send as text. */
async function followRaw(file: LiveFile, context: FollowContext): Promise<FollowEnd> {
  const end = await compareRawBytes(file, context);
  if (end !== undefined) return end;
  throw new JobtailError('stuck', 'longer than this service can send as text', {
    hint: 'the raw download failed; it is repeated with back-off',
  });
}

/**
 * Compares the mirror with raw bytes, which the text `shown` proves, and appends or decides. Undefined if they are not
 * available now, or do not extend the mirror as they should.
 */
async function compareRawBytes(
  file: LiveFile,
  context: FollowContext,
  purpose: Purpose = 'toDecide',
  shown?: ShownPart,
): Promise<FollowEnd | undefined> {
  if (!context.hasWholeFiles) return undefined;
  const before = file.length;
  const found = await context.rawBytes.compare(file, context, purpose, shown);
  if (found === undefined) return undefined;
  if (found === 'same') return purpose === 'toExtend' && file.length === before ? undefined : 'current';
  await act(decide(await factsOf(file, found, 'raw bytes', context)), file, context);
  return 'different';
}
