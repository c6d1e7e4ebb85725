/**
 * One poll of one live file: request from a little before the position, find how the response is decoded, compare it
 * with the mirror, decide (decide.ts), and execute the decision.
 */
import { JobtailError } from '../../errors.ts';
import type { InexactRegion } from '../../store/rows.ts';
import type { Follow } from '../ports.ts';
import { appendFar, appendRest } from './append/append.ts';
import { fillInexact } from './append/inexact.ts';
import type { Shown } from './append/raw-bytes.ts';
import { shownBy } from './append/raw-download.ts';
import { type Decision, decide, type Facts, type Need } from './decide.ts';
import { type Difference, match } from './match.ts';
import { overlaps } from './mirror/inexact-regions.ts';
import type { LiveFile } from './mirror/live-file.ts';
import { FINGERPRINT_BYTES } from './mirror/mirror.ts';
import { alignDown, askFrom } from './offsets.ts';
import type { FirstResponse, FollowContext, FollowEnd, Response } from './steps.ts';
import { UnknownCodePage } from './text/encoding.ts';
import { explain } from './text/explain.ts';
import { Reading } from './text/reading.ts';

const MAX_ATTEMPTS = 4;

/** Follows a file by its decoded text; by its raw bytes where the text stays undetermined, or in the last pass. */
export async function* follow(file: LiveFile, context: FollowContext): Follow<FollowEnd> {
  let end: FollowEnd;
  try {
    end = yield* followText(file, context);
  } catch (error) {
    if (!(error instanceof UnknownCodePage)) throw error;
    const byRaw = yield* compareRawBytes(file, shownAtEnd(context), context);
    if (byRaw === undefined) throw error;
    end = byRaw;
  }
  if (end !== 'unclear') context.debounce.clear(file, 'unclear');
  else if (context.debounce.hasPersisted(file, 'unclear') || context.final)
    return (yield* compareRawBytes(file, shownAtEnd(context), context)) ?? end;
  return end;
}

async function* followText(file: LiveFile, context: FollowContext): Follow<FollowEnd> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const offset = await askFrom(file);
    const part = yield offset;
    if (part === undefined) return 'absent';
    if (!part.isBeginning || part.content.length === 0) file.note({ relativePath: part.relativePath });
    if (part.isBeginning && part.content.length === 0) return yield* fillRaw(file, context);

    const explained = yield* explain(offset, part, file, context);
    if (explained === 'again') return 'unclear';
    const proof = await shownBy(offset, explained.reading.fork(), context.encoding);
    const first: FirstResponse = { offset, part, ...explained, shown: proof };
    const { facts, unshown } = await compareText(file, first);
    const { shown } = facts;
    let decision = yield* decideWith(facts, file, context, first);

    if (isNeeded(decision, 'raw-bytes')) {
      // A character that the end of a growing file cuts arrives with the next bytes.
      const rest = first.reading.fork();
      await rest.skipUncertain();
      const isTail = shown.kind === 'same' && rest.atEnd();
      if (isTail && !context.final && !context.debounce.hasPersisted(file, 'tail')) return 'tail';
      const end = yield* compareRawBytes(file, first.shown, context, { isConfirmed: shown.kind !== 'same' });
      if (end === 'current') context.debounce.clear(file, 'tail');
      if (end !== undefined) return end;
      const isUndisputed = shown.kind === 'same' && unshown.length === 0;
      if (!context.rawBytes.areRefused(file, context.final)) return isUndisputed ? 'raw' : 'different';
      // Raw bytes are not available: the text alone decides.
      decision = decide({ ...facts, isConfirmed: true, hasRawBytes: false });
      if (isNeeded(decision, 'the-next-poll') && facts.isBehindInexact) return 'unclear';
    }
    if (decision.kind === 'unchanged' || decision.kind === 'grown') {
      file.markCompared(unshown);
      if (file.row.inexact.length > 0) {
        const found = yield* context.rawBytes.compare(file, first.shown, context, 'toMend');
        // What follows the mirror was appended, too.
        if (found === 'same') return 'current';
        if (found !== undefined) return yield* resolve(found, file, context);
      }
      context.debounce.clear(file, 'shorter', 'different');
      let response: Response = first;
      if (shown.kind === 'same' && shown.open) {
        const filled = yield* fillInexact(file, shown.at, first);
        if (typeof filled === 'string') return filled;
        response = filled;
      }
      if (part.isBeginning) return yield* appendFar(file, response, context);
      return yield* appendRest(file, response, first, context, () => extendByRawBytes(file, first, context));
    }
    if (!(await act(decision, file, context))) return 'different';
  }
  return 'unclear';
}

/** Decides, and determines what the decision needs, except raw bytes: the caller requests them. */
async function* decideWith(
  facts: Facts,
  file: LiveFile,
  context: FollowContext,
  response?: Response,
): Follow<Decision> {
  const decision = decide(facts);
  if (isNeeded(decision, 'its-end')) {
    const isShown = response !== undefined && (yield* showsEnd(decision.at, file, response));
    return yield* decideWith({ ...facts, showsEnd: isShown }, file, context);
  }
  if (!isNeeded(decision, 'confirmation')) return decision;
  const kind = facts.shown.kind === 'shorter' ? 'shorter' : 'different';
  return decide({ ...facts, isConfirmed: context.debounce.hasPersisted(file, kind) });
}

/** Whether the remote file still has the committed end of a mirror that was changed at `at`, before it. */
async function* showsEnd(at: number, file: LiveFile, { decode }: Response): Follow<boolean> {
  const start = Math.max(0, file.row.position - FINGERPRINT_BYTES);
  if (at >= start) return false;
  const from = await alignDown(file, start);
  const part = yield from;
  if (part === undefined) return false;
  return (await match(decode(part.content), file, { from, to: file.committed })).kind === 'same';
}

/** Executes a decision. Returns whether the mirror changed, so that the file can be requested again. */
async function act(decision: Decision, file: LiveFile, { debounce }: FollowContext): Promise<boolean> {
  if (decision.kind !== 'undetermined') debounce.clear(file, 'shorter', 'different');
  switch (decision.kind) {
    case 'mirror-damaged':
      await file.cut(decision.at, decision.reason);
      return true;
    case 'truncated':
    case 'rewritten': {
      const { kind, at, reason } = decision;
      await file.startGeneration({ kind, at, reason });
      return true;
    }
    case 'undetermined':
      if (decision.needs !== 'all-of-the-mirror') return false;
      file.markModified();
      return true;
    default:
      return false;
  }
}

const isNeeded = (decision: Decision, need: Need) => decision.kind === 'undetermined' && decision.needs === need;

/** Compares a text with the mirror. `unshown`: the disputed bytes of the mirror that the text does not show. */
async function compareText(
  file: LiveFile,
  { offset, reading }: Response,
): Promise<{ readonly facts: Facts; readonly unshown: readonly InexactRegion[] }> {
  const unshown: InexactRegion[] = [];
  let isBehindInexact = false;
  const shown = await match(reading, file, { from: offset, to: file.length }, (start, end) => {
    isBehindInexact ||= file.row.inexact.some((region) => overlaps(region, start, end));
    const open = Math.max(start, file.undisputed);
    if (open < end) unshown.push({ start: open, length: end - open });
  });
  const seen = { shown, unshownFrom: unshown[0]?.start, isBehindInexact, goesOn: !reading.atEnd() };
  return { facts: await factsOf(file, { ...seen, by: 'text' }), unshown };
}

async function factsOf(file: LiveFile, seen: Omit<Facts, 'mirror'>): Promise<Facts> {
  const { length, committed, integrity } = file;
  const hasFingerprint = seen.shown.kind === 'same' || (await file.hasItsFingerprint());
  return { ...seen, mirror: { length, committed, integrity, hasFingerprint } };
}

/** Decides and executes what raw bytes that differ require. */
async function* resolve(
  found: Difference,
  file: LiveFile,
  context: FollowContext,
  isConfirmed = false,
): Follow<FollowEnd> {
  const facts = await factsOf(file, { shown: found, by: 'raw bytes', goesOn: false });
  await act(isConfirmed ? decide({ ...facts, isConfirmed }) : yield* decideWith(facts, file, context), file, context);
  return 'different';
}

/** Appends raw bytes where the file is longer than the server can send as text. */
async function* fillRaw(file: LiveFile, context: FollowContext): Follow<FollowEnd> {
  const end = yield* compareRawBytes(file, shownAtEnd(context), context);
  if (end !== undefined) return end;
  throw new JobtailError('stuck', 'longer than this service can send as text', {
    hint: 'the raw download failed; it is repeated with back-off',
  });
}

/** The text that is requested near the end of the raw bytes proves them. */
const shownAtEnd =
  ({ encoding }: FollowContext): Shown =>
  (offset, { content }) =>
    shownBy(offset, new Reading(content), encoding);

/** Undefined if the raw bytes end with the mirror, or are not available now. */
async function* extendByRawBytes(
  file: LiveFile,
  first: FirstResponse,
  context: FollowContext,
): Follow<FollowEnd | undefined> {
  const before = file.length;
  const end = yield* compareRawBytes(file, first.shown, context, { purpose: 'toExtend' });
  return end === 'current' && file.length === before ? undefined : end;
}

/** Undefined if the raw bytes are not available now. */
async function* compareRawBytes(
  file: LiveFile,
  shown: Shown,
  context: FollowContext,
  { purpose = 'toDecide', isConfirmed = false }: { purpose?: 'toDecide' | 'toExtend'; isConfirmed?: boolean } = {},
): Follow<FollowEnd | undefined> {
  if (!context.hasWholeFiles) return undefined;
  const found = yield* context.rawBytes.compare(file, shown, context, purpose);
  if (found === undefined) return undefined;
  if (found === 'same') return 'current';
  return yield* resolve(found, file, context, isConfirmed);
}
