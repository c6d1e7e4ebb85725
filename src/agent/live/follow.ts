/**
 * One poll of one live file, in one direction: request from a little before the committed offset, compare the response
 * with the mirror, decide (decide.ts), execute the decision. `nextOffset` in offsets.ts decides where a poll begins.
 */
import { JobtailError } from '../../errors.ts';
import type { InexactRegion } from '../../store/rows.ts';
import { BEHIND_EVERY_END, type Part } from '../ports.ts';
import { appendText } from './append/append.ts';
import { substitute } from './append/inexact.ts';
import type { ShownPart } from './append/raw-download.ts';
import { type Decision, decide, type Facts } from './decide.ts';
import { type Match, match } from './match.ts';
import type { LiveFile } from './mirror/live-file.ts';
import { nextOffset } from './offsets.ts';
import type { FirstResponse, FollowContext, FollowEnd } from './steps.ts';
import { mayBeUtf16, mayLackMark, wholeText } from './text/byte-order-mark.ts';
import { Reading } from './text/reading.ts';

const MAX_ATTEMPTS = 4;
/** Bytes of the mirror that show whether a mark may be missing. */
const KNOWN_BYTES = 4;
/** Bytes of text after a character that are compared. */
const FOLLOWING_BYTES = 64;

/** Follows a file by its decoded text; by its raw bytes where the text stays undetermined, or in the last pass. */
export async function follow(file: LiveFile, context: FollowContext): Promise<FollowEnd> {
  const end = await followText(file, context);
  if (end !== 'unclear') context.debounce.clear(file, 'unclear');
  else if (context.debounce.hasPersisted(file, 'unclear') || context.final) {
    const part = await context.parts.at(await nextOffset(file));
    return part === undefined ? 'absent' : ((await compareRawBytes(file, context, shownOf(part))) ?? end);
  }
  return end;
}

async function followText(file: LiveFile, context: FollowContext): Promise<FollowEnd> {
  const { debounce, decoding, parts } = context;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const offset = await nextOffset(file);
    const part = await parts.at(offset);
    if (part === undefined) return 'absent';
    if (part.isBeginning) return await followLong(file, part, context);
    file.note({ relativePath: part.relativePath });
    if (decoding.server === 'unknown' && (await new Reading(part.content).isBeyondAscii())) {
      const end = await identify(file, part, context);
      if (end !== undefined) return end;
    }
    if (decoding.server === 'other') return await followOther(file, part, context);

    const first = await responseOf(offset, part, file, context);
    if (first === undefined) return 'unclear';
    const { facts, unshown } = await compareText(file, first, context);
    let decision = decide(facts);
    if (decision.kind === 'undetermined' && decision.needs === 'raw-bytes') {
      const end = await requestRawBytes(file, first, first.reading, context);
      if (end !== undefined) return end;
      decision = decide({ ...facts, areRawBytesRefused: true });
    }
    if (decision.kind === 'unchanged' || decision.kind === 'grown') {
      file.markCompared(unshown);
      if (file.row.inexact.length > 0 && context.final) {
        const end = await compareRawBytes(file, context, firstShown(first));
        if (end !== undefined) return end;
      }
      debounce.clear(file, 'shorter', 'different');
      return await append(file, first, facts.shown, context);
    }
    if (!(await act(decision, file, context))) return 'different';
  }
  return 'unclear';
}

/** The whole text of a response; undefined if it is unclear whether the server stripped a mark. */
async function responseOf(
  offset: number,
  part: Part,
  file: LiveFile,
  { final, parts }: FollowContext,
): Promise<FirstResponse | undefined> {
  const known = await file.read(offset, Math.max(offset, Math.min(file.undisputed, offset + KNOWN_BYTES)));
  if (offset === 0 && mayBeUtf16(known)) return undefined;
  // Most empty files stay empty for long: only the last pass checks for a file that is a byte-order mark alone.
  const isChecked = (part.content.length > 0 || final) && mayLackMark(offset, known);
  const whole = isChecked ? await wholeText(offset, part.content, parts) : { content: part.content };
  if (whole === undefined) return undefined;
  const shown = new Reading(whole.content);
  return { offset, part, shown, reading: shown.fork(), second: whole.second };
}

const firstShown = ({ offset, shown }: FirstResponse): ShownPart => ({ offset, text: shown });

/** The text of a part; undefined if the server cannot send it. */
const shownOf = ({ offset, content, isBeginning }: Part): ShownPart | undefined =>
  isBeginning && content.length === 0 ? undefined : { offset, text: new Reading(content) };

/** Compares a text with the mirror. `unshown`: the disputed bytes of the mirror that the text does not show. */
async function compareText(
  file: LiveFile,
  { offset, reading }: FirstResponse,
  context: FollowContext,
): Promise<{ readonly facts: Facts; readonly unshown: readonly InexactRegion[] }> {
  const unshown: InexactRegion[] = [];
  let isAllShown = true;
  const shown = await match(reading, file, { from: offset, to: file.length }, (start, end) => {
    isAllShown = false;
    const open = Math.max(start, file.undisputed);
    if (open < end) unshown.push({ start: open, length: end - open });
  });
  const facts = factsOf(file, shown, 'text', context);
  const isByAscii = isAllShown && (shown.kind === 'shorter' || (await isAscii(shown.at, file, reading)));
  return { facts: { ...facts, unshownFrom: unshown[0]?.start, isByAscii, goesOn: !reading.atEnd() }, unshown };
}

/** Whether both the mirror and the text have ASCII characters at a difference. */
async function isAscii(at: number, file: LiveFile, reading: Reading): Promise<boolean> {
  const bytes = Buffer.concat([await file.read(at, at + 1), await reading.text(1)]);
  return bytes.every((byte) => byte < 0x80);
}

/** Records a difference, so that the next poll confirms it. */
function factsOf(file: LiveFile, shown: Match, by: Facts['by'], { debounce }: FollowContext): Facts {
  const isConfirmed = shown.kind !== 'same' && debounce.hasPersisted(file, shown.kind);
  return { shown, by, goesOn: false, isConfirmed, mirror: file };
}

/** Executes a decision. Returns whether the mirror changed, so that the file can be requested again. */
async function act(decision: Decision, file: LiveFile, { debounce }: FollowContext): Promise<boolean> {
  if (decision.kind === 'undetermined') return false;
  debounce.clear(file, 'shorter', 'different');
  if (!('reason' in decision)) return false;
  if (decision.kind === 'mirror-damaged') await file.cut(decision.at, decision.reason);
  else await file.startGeneration(decision);
  return true;
}

/** Appends what follows the mirror, which the text shows up to its end unless `shown` is open. */
async function append(file: LiveFile, first: FirstResponse, shown: Match, context: FollowContext): Promise<FollowEnd> {
  const { rawBytes, parts } = context;
  // An open end was shown to the raw bytes before (decide.ts).
  const isOpen = shown.kind === 'same' && shown.open;
  if (!isOpen) {
    const appended = await appendText(file, first, context);
    if (typeof appended === 'string') return appended;
    if (appended.reading.atEnd()) return 'current';
    const end = await requestRawBytes(file, first, appended.reading, context, true);
    if (end !== undefined) return end;
  }
  return await substitute(file, isOpen ? shown.at : file.length, { first, parts, reason: rawBytes.reasonOf(file) });
}

/**
 * Finds out how the server decodes, at its first text beyond ASCII: by raw bytes. Where these are refused, a request from
 * within the first such character shows U+FFFD if the decoder is one of UTF-8. Undefined as soon as it is known.
 */
async function identify(
  file: LiveFile,
  { offset, content }: Part,
  context: FollowContext,
): Promise<FollowEnd | undefined> {
  const { parts, decoding, rawBytes, final } = context;
  const text = new Reading(content);
  const isUtf8 = async (shown: Reading) => (await shown.skipUncertain(1)) > 0;
  const rest = text.fork(true);
  let at = offset;
  for (let length = 1; length > 0; at += length) {
    ({ length } = await rest.peek(content.length));
    rest.advance(length);
  }
  // No decoder of single bytes makes U+FFFD.
  if (await isUtf8(rest.fork(false))) return undefined;
  const end = await compareRawBytes(file, context, { offset, text }, true);
  if (end !== undefined || decoding.server !== 'unknown') return end;
  if (!rawBytes.areRefused(file, final)) return 'raw';
  const within = await parts.at(at + 1);
  const again = await parts.at(offset);
  if (within === undefined || again === undefined) return 'absent';
  if (await isUtf8(new Reading(within.content))) {
    decoding.learn('utf-8', () => {});
    return undefined;
  }
  // From its next byte, a decoder of single bytes shows the next character.
  await rest.skipUncertain(1);
  const isNext = (await rest.text(FOLLOWING_BYTES)).equals(await within.content.read(0, FOLLOWING_BYTES));
  if (again.content.length !== content.length || !isNext) return 'unclear';
  decoding.learn('other', () => {});
  return 'refused';
}

/**
 * Requests raw bytes, because the text does not show what follows the cursor `reading`. Undefined if they are refused:
 * the text alone decides.
 */
async function requestRawBytes(
  file: LiveFile,
  first: FirstResponse,
  reading: Reading,
  context: FollowContext,
  mustGrow = false,
): Promise<FollowEnd | undefined> {
  const { debounce, rawBytes, final } = context;
  const rest = reading.fork();
  // A character that the end of a growing file cuts arrives with the next bytes.
  const isTail = (await rest.skipUncertain()) > 0 && rest.atEnd();
  if (isTail && !final && !debounce.hasPersisted(file, 'tail')) return 'tail';
  const end = await compareRawBytes(file, context, firstShown(first), mustGrow);
  if (end === 'current') debounce.clear(file, 'tail');
  if (end !== undefined || rawBytes.areRefused(file, final)) return end;
  return isTail ? 'tail' : 'raw';
}

/** Follows a file whose text is long, or longer than the server can send: by its raw bytes. */
async function followLong(file: LiveFile, part: Part, context: FollowContext): Promise<FollowEnd> {
  const { content, relativePath } = part;
  if (content.length === 0) file.note({ relativePath });
  else if (file.row.relativePath === null) {
    // A request after the end of the file returns its path without text.
    const named = await context.parts.at(BEHIND_EVERY_END);
    if (named === undefined) return 'absent';
    file.note({ relativePath: named.relativePath });
  }
  const shown = shownOf(part);
  const end = await compareRawBytes(file, context, shown, shown !== undefined);
  if (end !== undefined || shown !== undefined || !context.rawBytes.areRefused(file, true)) return end ?? 'raw';
  throw new JobtailError('stuck', 'longer than this service can send as text', {
    hint: 'the raw download failed; it is repeated with back-off',
  });
}

/** Follows a file of a server that does not decode UTF-8: by its raw bytes. */
async function followOther(file: LiveFile, part: Part, context: FollowContext): Promise<FollowEnd> {
  const end = await compareRawBytes(file, context, shownOf(part));
  return end ?? (context.rawBytes.areRefused(file, context.final) ? 'refused' : 'later');
}

/**
 * Compares the mirror with raw bytes, which the text `shown` proves, and appends or decides. Undefined if they are not
 * available now, or do not extend the mirror although they must.
 */
async function compareRawBytes(
  file: LiveFile,
  context: FollowContext,
  shown: ShownPart | undefined,
  mustGrow = false,
): Promise<FollowEnd | undefined> {
  const { rawBytes, final, parts } = context;
  if (!rawBytes.isDue(file, final)) return undefined;
  await parts.settle();
  const before = file.length;
  const found = await rawBytes.compare(file, context, shown, mustGrow);
  if (found === undefined) return undefined;
  if (found === 'same') return mustGrow && file.length === before ? undefined : 'current';
  await act(decide(factsOf(file, found, 'raw bytes', context)), file, context);
  return 'different';
}
