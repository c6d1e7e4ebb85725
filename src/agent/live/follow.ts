/**
 * One poll of one live file, in one direction: request from a little before the committed offset, compare the response
 * with the mirror, decide (decide.ts), execute the decision. `nextOffset` in offsets.ts decides where a poll begins.
 */
import { JobtailError } from '../../errors.ts';
import type { Part } from '../ports/server.ts';
import { appendText } from './append/append.ts';
import { substitute } from './append/inexact.ts';
import type { RawBytes } from './append/raw-bytes.ts';
import type { ShownBy } from './debounce.ts';
import { type Decision, decide, type Facts } from './decide.ts';
import { type Match, match } from './match.ts';
import type { LiveFile } from './mirror/live-file.ts';
import { nextOffset } from './offsets.ts';
import type { FileContext, FirstResponse, FollowEnd, Shown } from './steps.ts';
import { mayBeUtf16, mayLackMark, wholeText } from './text/byte-order-mark.ts';
import { Reading } from './text/reading.ts';

export interface FollowContext extends FileContext {
  readonly rawBytes: RawBytes;
}

const MAX_ATTEMPTS = 4;
/** Bytes of the mirror that show whether a mark may be missing. */
const KNOWN_BYTES = 4;
/** Follows a file by its decoded text; by its raw bytes where the text stays undetermined, or in the last pass. */
export async function follow(file: LiveFile, context: FollowContext): Promise<FollowEnd> {
  const { symptoms } = file.memory;
  const end = await followText(file, context);
  if (end !== 'unclear') symptoms.clear('unclear');
  else if (symptoms.hasPersisted('unclear', file.length) || context.isFinal) {
    const part = await context.parts.at(await nextOffset(file));
    return part === undefined ? 'absent' : ((await compareRawBytes(file, context, shownOf(part))) ?? end);
  }
  return end;
}

async function followText(file: LiveFile, context: FollowContext): Promise<FollowEnd> {
  const { parts } = context;
  let part: Part | undefined;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const offset = await nextOffset(file);
    // After a rewrite, the response that showed it serves the new generation, too.
    if (part?.offset !== offset) part = await parts.at(offset);
    if (part === undefined) return 'absent';
    if (part.isBeginning) return await followLong(file, part, context);
    file.note({ relativePath: part.relativePath });
    const first = await responseOf(part, file, context);
    if (first === undefined)
      return (context.decoding.server !== 'utf-8' && (await compareRawBytes(file, context, part))) || 'unclear';
    const facts = await compareText(file, first);
    let decision = decide(facts);
    if (decision.kind === 'undetermined' && decision.needs === 'raw-bytes') {
      const end = await requestRawBytes(file, first, context);
      if (end !== undefined) return end;
      decision = decide({ ...facts, areRawBytesRefused: true });
    }
    if (decision.kind === 'unchanged' || decision.kind === 'grown') {
      file.markCompared('text');
      if (file.row.inexact.length > 0 && context.isFinal) {
        const end = await compareRawBytes(file, context, first.part);
        if (end !== undefined) return end;
      }
      return await append(file, first, facts.shown, context);
    }
    if (!(await act(decision, file))) return 'different';
  }
  return 'unclear';
}

/** The whole text of a response; undefined if it is unclear whether the server stripped a mark. */
async function responseOf(
  part: Part,
  file: LiveFile,
  { decoding, isFinal, parts }: FollowContext,
): Promise<FirstResponse | undefined> {
  const { offset, content } = part;
  const known = await file.read(offset, Math.max(offset, Math.min(file.undisputed, offset + KNOWN_BYTES)));
  if (offset === 0 && mayBeUtf16(known)) return undefined;
  // Most empty files stay empty for long: only the last pass checks for a file that is a byte-order mark alone.
  const isChecked = (content.length > 0 || isFinal) && mayLackMark(offset, known);
  const whole = isChecked ? await wholeText(offset, content, parts) : content;
  return whole && { part, offset, content: whole, reading: new Reading(whole, decoding.server !== 'utf-8') };
}

/** The text of a part; undefined if the server cannot send it. */
const shownOf = (part: Part): Shown | undefined => (part.isBeginning && part.content.length === 0 ? undefined : part);

/** Compares a text with the mirror. */
async function compareText(file: LiveFile, { offset, reading }: FirstResponse): Promise<Facts> {
  let isAllShown = true;
  let unshownFrom: number | undefined;
  const shown = await match(reading, file, { from: offset, to: file.length }, (start, end) => {
    isAllShown = false;
    if (end > file.undisputed) unshownFrom ??= Math.max(start, file.undisputed);
  });
  const isByAscii = isAllShown && (shown.kind === 'shorter' || (await isAscii(shown.at, file, reading)));
  return { ...factsOf(file, shown, 'text'), unshownFrom, isByAscii, goesOn: !reading.atEnd() };
}

/** Whether both the mirror and the text have ASCII characters at a difference. */
async function isAscii(at: number, file: LiveFile, reading: Reading): Promise<boolean> {
  const bytes = Buffer.concat([await file.read(at, at + 1), await reading.text(1)]);
  return bytes.every((byte) => byte < 0x80);
}

/** Records a difference, so that the next poll confirms it, or that it is gone. */
function factsOf(file: LiveFile, shown: Match, by: ShownBy): Facts {
  const { symptoms } = file.memory;
  if (shown.kind === 'same') symptoms.noteLength(shown.at);
  const isConfirmed = shown.kind !== 'same' && symptoms.hasPersisted(shown.kind, file.length, shown.at, by);
  return { shown, by, goesOn: false, isConfirmed, mirror: file };
}

/** Executes a decision. Returns whether the mirror changed, so that the file can be requested again. */
async function act(decision: Decision, file: LiveFile): Promise<boolean> {
  if (!('reason' in decision)) return false;
  file.memory.symptoms.clear('shorter', 'different');
  if (decision.kind === 'mirror-damaged') await file.cut(decision.at, decision.reason);
  else await file.startGeneration(decision);
  return true;
}

/** Appends what follows the mirror, which the text shows up to its end unless `shown` is open. */
async function append(file: LiveFile, first: FirstResponse, shown: Match, context: FollowContext): Promise<FollowEnd> {
  const { parts } = context;
  // For an open end, raw bytes were requested before (decide.ts).
  const isOpen = shown.kind === 'same' && shown.open;
  if (!isOpen) {
    const appended = await appendText(file, first, context);
    if (typeof appended === 'string') return appended;
    if (appended.reading.atEnd()) return 'current';
    const end = await requestRawBytes(file, first, context, true);
    if (end !== undefined) return end;
  }
  return await substitute(file, isOpen ? shown.at : file.length, {
    first: first.part,
    parts,
    reason: file.memory.raw.reason,
  });
}

/** Requests raw bytes, as the text does not show what follows its cursor. Undefined if they are refused. */
async function requestRawBytes(
  file: LiveFile,
  first: FirstResponse,
  context: FollowContext,
  mustGrow = false,
): Promise<FollowEnd | undefined> {
  const { decoding, rawBytes, isFinal } = context;
  const rest = first.reading.fork(false);
  // A character that the end of a growing file cuts arrives with the next bytes; the next poll has one that came later.
  const isTail = ((await rest.skipUncertain()) > 0 || mustGrow) && rest.atEnd();
  if (isTail && !isFinal && !file.memory.symptoms.hasPersisted('tail', file.length)) return 'tail';
  const end = await compareRawBytes(file, context, first.part, mustGrow);
  if (end === 'current') file.memory.symptoms.clear('tail');
  if (end !== undefined) return end;
  if (!rawBytes.areRefused(file, isFinal)) return isTail ? 'tail' : 'raw';
  if (decoding.server === 'unknown') return await identify(file, first, context);
  // Raw bytes proved that it decodes otherwise: no text overrules them.
  return decoding.server === 'utf-8' ? undefined : 'raw';
}

/**
 * Finds out without raw bytes how the server decodes: only a decoder of UTF-8 makes U+FFFD, of the first character beyond
 * ASCII or of what a request from within that character returns. Then the next poll goes on.
 */
async function identify(
  file: LiveFile,
  { offset, content }: Shown,
  { parts, decoding }: FollowContext,
): Promise<FollowEnd> {
  const rest = new Reading(content, true);
  let at = offset;
  for (let length = 1; length > 0; at += length) {
    ({ length } = await rest.peek(content.length));
    rest.advance(length);
  }
  const within = await parts.at(at + 1);
  if (within === undefined) return 'absent';
  const isUtf8 = async (text: Reading) => (await text.skipUncertain(1)) > 0;
  if (!(await isUtf8(rest.fork(false))) && !(await isUtf8(new Reading(within.content)))) return 'raw';
  decoding.learn('utf-8', file);
  return 'unclear';
}

/** Follows a file whose text is long, or longer than the server can send: by its raw bytes. */
async function followLong(file: LiveFile, part: Part, context: FollowContext): Promise<FollowEnd> {
  file.note({ relativePath: part.relativePath });
  const shown = shownOf(part);
  const end = await compareRawBytes(file, context, shown, shown !== undefined);
  if (end !== undefined || shown !== undefined || !context.rawBytes.areRefused(file, true)) return end ?? 'raw';
  throw new JobtailError('stuck', 'longer than this service can send as text', {
    hint: 'the raw download failed; it is repeated with back-off',
  });
}

/**
 * Compares the mirror with raw bytes, which the text `shown` proves, and appends or decides. Undefined if they are not
 * available now, or do not extend the mirror although they must.
 */
async function compareRawBytes(
  file: LiveFile,
  context: FollowContext,
  shown: Shown | undefined,
  mustGrow = false,
): Promise<FollowEnd | undefined> {
  const { rawBytes, isFinal, parts } = context;
  if (!rawBytes.isDue(file.memory, isFinal, shown)) return undefined;
  await parts.waitForCommit();
  const before = file.length;
  const found = await rawBytes.compare(file, context, shown);
  if (found === undefined) return undefined;
  if (found === 'same') return mustGrow && file.length === before ? undefined : 'current';
  await act(decide(factsOf(file, found, 'raw bytes')), file);
  return 'different';
}
