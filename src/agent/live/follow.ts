/**
 * One poll of one live file: request from a little before the position, find how the response is decoded, compare it
 * with the mirror, decide (decide.ts), and execute the decision.
 */
import { JobtailError } from '../../errors.ts';
import type { InexactRegion } from '../../store/rows.ts';
import type { Follow, Part } from '../ports.ts';
import { appendFar, appendRest } from './append/append.ts';
import { isStillShown, readBehind } from './append/inexact.ts';
import type { Shown } from './append/raw-bytes.ts';
import type { ShownPart } from './append/raw-download.ts';
import { type Decision, decide, type Facts, type Need } from './decide.ts';
import { type Difference, type Match, match } from './match.ts';
import { commonRegions, overlaps } from './mirror/inexact-regions.ts';
import type { LiveFile } from './mirror/live-file.ts';
import { FINGERPRINT_BYTES } from './mirror/mirror.ts';
import { alignDown, askFrom } from './offsets.ts';
import type { Answer, FirstResponse, FollowContext, FollowEnd } from './steps.ts';
import { HALF_BLOCK_BYTES } from './text/blocks.ts';
import { CodePage } from './text/encoders.ts';
import { UnknownCodePage } from './text/encoding.ts';
import { type Decode, explain } from './text/explain.ts';
import { EncodedReading, type Reading, Utf8Reading } from './text/reading.ts';

const MAX_ATTEMPTS = 4;

/** Follows a file by its decoded text; by its raw bytes where the text stays undetermined, or in the last pass. */
export async function* follow(file: LiveFile, context: FollowContext): Follow<FollowEnd> {
  let end: FollowEnd;
  try {
    end = yield* followText(file, context);
  } catch (error) {
    if (!(error instanceof UnknownCodePage)) throw error;
    end = yield* followRawBytes(file, context);
    if (end === 'unclear') throw error;
  }
  if (end !== 'unclear') context.debounce.clear(file, 'unclear');
  else if (context.debounce.hasPersisted(file, 'unclear') || context.final) return yield* followRawBytes(file, context);
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
    const { second, decode, identified } = explained;
    let response: Answer = { offset, reading: explained.reading, second };
    let compared = await compareText(file, response);
    let facts = await factsOf(file, compared, 'text', response.reading);
    let decision = yield* decideWith(facts, file, context, decode);

    if (isNeeded(decision, 'a-second-response')) {
      const again = yield* compareAgain(file, compared, response, decode);
      if (again === undefined) return 'unclear';
      ({ compared, response } = again);
      facts = { ...(await factsOf(file, compared, 'text', response.reading)), isSecond: true };
      decision = yield* decideWith(facts, file, context, decode);
    }
    if (isNeeded(decision, 'raw-bytes')) {
      // A character that the end of a growing file cuts arrives with the next bytes.
      const rest = response.reading.fork();
      await rest.skipUncertain();
      const isTail = compared.shown.kind === 'same' && rest.atEnd();
      if (isTail && !context.final && !context.debounce.hasPersisted(file, 'tail')) return 'tail';
      const isConfirmed = compared.shown.kind !== 'same';
      const end = yield* compareRawBytes(file, await shownBy(offset, part, context), context, { isConfirmed });
      if (end === 'current') context.debounce.clear(file, 'tail');
      if (end !== undefined) return end;
      const isUndisputed = compared.shown.kind === 'same' && compared.unshown.length === 0;
      if (!context.rawBytes.areRefused(file, context.final)) return isUndisputed ? 'raw' : 'different';
      // Raw bytes are not available: the text alone decides.
      decision = decide({ ...facts, showsEnd: false, isConfirmed: true, hasRawBytes: false });
      if (isNeeded(decision, 'the-next-poll') && compared.isBehindInexact) return 'unclear';
      if (compared.shown.kind === 'same' && compared.shown.open) {
        const behind = yield* readBehind(response.reading, file.length, decode);
        if (behind === 'again' || !(yield* isStillShown({ offset, part }))) return 'unclear';
        response = behind;
      }
    }
    if (decision.kind === 'unchanged' || decision.kind === 'grown') {
      file.markCompared(compared.unshown);
      if (file.row.inexact.length > 0) {
        const found = yield* context.rawBytes.compare(file, await shownBy(offset, part, context), context, 'toMend');
        // What follows the mirror was appended, too.
        if (found === 'same') return 'current';
        if (found !== undefined) return yield* resolve(found, file, context);
      }
      context.debounce.clear(file, 'difference');
      if (part.isBeginning) return yield* appendFar(file, response, context);
      const first = { offset, part };
      const extendRaw = () => extendByRawBytes(file, first, context);
      return yield* appendRest(file, response, { ...context, decode, identified, first, extendRaw });
    }
    if (!(await act(decision, file, context))) return 'different';
  }
  return 'unclear';
}

/**
 * Decides, and determines what the decision needs, except raw bytes and a second response: the caller requests them.
 */
async function* decideWith(facts: Facts, file: LiveFile, context: FollowContext, decode?: Decode): Follow<Decision> {
  const decision = decide(facts);
  if (decision.kind !== 'undetermined') return decision;
  switch (decision.needs) {
    case 'its-end':
      return yield* decideWith(
        { ...facts, showsEnd: yield* showsEnd(decision.at, file, decode) },
        file,
        context,
        decode,
      );
    case 'confirmation': {
      const kind = facts.shown.kind === 'shorter' ? 'shorter' : 'different';
      return decide({ ...facts, isConfirmed: context.debounce.confirm(file, kind) });
    }
    default:
      return decision;
  }
}

/** Executes a decision. Returns whether the mirror changed, so that the file can be requested again. */
async function act(decision: Decision, file: LiveFile, { debounce }: FollowContext): Promise<boolean> {
  if (decision.kind !== 'undetermined') debounce.clear(file, 'difference');
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

/** The comparison of a text with the mirror. */
interface Compared {
  readonly shown: Match;
  /** The disputed bytes of the mirror that the text does not show. */
  readonly unshown: readonly InexactRegion[];
  readonly isBehindInexact: boolean;
}

async function compareText(file: LiveFile, { offset, reading }: Answer): Promise<Compared> {
  const unshown: InexactRegion[] = [];
  let isBehindInexact = false;
  const shown = await match(reading, file, { from: offset, to: file.length }, (start, end) => {
    isBehindInexact ||= file.row.inexact.some((region) => overlaps(region, start, end));
    const open = Math.max(start, file.undisputed);
    if (open < end) unshown.push({ start: open, length: end - open });
  });
  return { shown, unshown, isBehindInexact };
}

/**
 * Compares a second response, requested half a block later: only bytes that neither response shows are unshown. Returns
 * the response whose cursor is at the end of the mirror, too; undefined if the file does not exist any more.
 */
async function* compareAgain(
  file: LiveFile,
  first: Compared,
  response: Answer,
  decode: Decode,
): Follow<{ readonly compared: Compared; readonly response: Answer } | undefined> {
  const offset = await alignDown(file, response.offset + HALF_BLOCK_BYTES);
  if (offset >= file.length || first.shown.kind !== 'same') return { compared: first, response };
  const part = yield offset;
  if (part === undefined) return undefined;
  const other: Answer = { offset, reading: decode(part.content) };
  const second = await compareText(file, other);
  const unshown = commonRegions(first.unshown, [{ start: 0, length: offset }, ...second.unshown]);
  const isBehindInexact = first.isBehindInexact || second.isBehindInexact;
  const isOpen = second.shown.kind !== 'same' || first.shown.open;
  return {
    compared: { shown: isOpen ? second.shown : first.shown, unshown, isBehindInexact },
    response: first.shown.open ? other : response,
  };
}

async function factsOf(
  file: LiveFile,
  { shown, unshown, isBehindInexact }: Compared,
  by: Facts['by'],
  behind?: Reading,
): Promise<Facts> {
  const { length, committed, integrity } = file;
  const hasFingerprint = shown.kind === 'same' || (await file.hasItsFingerprint());
  const mirror = { length, committed, integrity, hasFingerprint };
  return { shown, by, unshownFrom: unshown[0]?.start, isBehindInexact, goesOn: behind?.atEnd() === false, mirror };
}

/** Whether the remote file still has the committed end of a mirror that was changed at `at`, before it. */
async function* showsEnd(at: number, file: LiveFile, decode?: Decode): Follow<boolean> {
  const start = Math.max(0, file.row.position - FINGERPRINT_BYTES);
  if (at >= start || decode === undefined) return false;
  const from = await alignDown(file, start);
  const part = yield from;
  if (part === undefined) return false;
  return (await match(decode(part.content), file, { from, to: file.committed })).kind === 'same';
}

/** Decides and executes what raw bytes that differ require. */
async function* resolve(
  found: Difference,
  file: LiveFile,
  context: FollowContext,
  isConfirmed = false,
): Follow<FollowEnd> {
  const facts = await factsOf(file, { shown: found, unshown: [], isBehindInexact: false }, 'raw bytes');
  await act(isConfirmed ? decide({ ...facts, isConfirmed }) : yield* decideWith(facts, file, context), file, context);
  return 'different';
}

/** Decides by the raw bytes, where the text matches no known decoder. */
async function* followRawBytes(file: LiveFile, context: FollowContext): Follow<FollowEnd> {
  const from = await askFrom(file);
  const part = yield from;
  if (part === undefined) return 'absent';
  return (yield* compareRawBytes(file, await shownBy(from, part, context), context)) ?? 'unclear';
}

/** Appends raw bytes where the file is longer than the server can send as text; the text at their end proves them. */
async function* fillRaw(file: LiveFile, context: FollowContext): Follow<FollowEnd> {
  const end = yield* compareRawBytes(file, async (from, part) => await shownBy(from, part, context), context);
  if (end !== undefined) return end;
  throw new JobtailError('stuck', 'longer than this service can send as text', {
    hint: 'the raw download failed; it is repeated with back-off',
  });
}

/** Undefined if the raw bytes end with the mirror, or are not available now. */
async function* extendByRawBytes(
  file: LiveFile,
  { offset, part }: FirstResponse,
  context: FollowContext,
): Follow<FollowEnd | undefined> {
  const before = file.length;
  const end = yield* compareRawBytes(file, await shownBy(offset, part, context), context, { purpose: 'toExtend' });
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

/** The text of a response, read as UTF-8 and as a code page. */
async function shownBy(from: number, { content }: Part, { encoding }: FollowContext): Promise<ShownPart> {
  const text = new Utf8Reading(content);
  const codePages = new CodePage(encoding.codePagesShowing(Buffer.alloc(0), await text.text()));
  const texts: Reading[] = [text, new EncodedReading(content, codePages)];
  return { from, offset: from, texts };
}
