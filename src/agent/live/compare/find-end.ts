/**
 * Where in an answer a mirror ends that ends in bytes which the service could not decode: the text says nothing of how
 * many of them it has.
 */

import { StringDecoder } from 'node:string_decoder';
import { BYTE_ORDER_MARK, REPLACEMENT_CHARACTER, startsAlike, widthOfLead } from '../../../bytes.ts';
import type { InexactRegion } from '../../../store/rows.ts';
import type { Follow } from '../../ports.ts';
import { overlaps, regionsBefore } from '../mirror/inexact-regions.ts';
import type { LiveFile } from '../mirror/live-file.ts';
import { alignDown, mayBeUtf16Mark } from '../offsets.ts';
import type { Answer, FollowContext } from '../steps.ts';
import { WITHIN_BLOCK_BYTES } from '../text/blocks.ts';
import { Utf16 } from '../text/encoder.ts';
import { type Decode, readUnknown } from '../text/explain.ts';
import { MARKS } from '../text/marks.ts';
import { EncodedReading, type Reading, Utf8Reading } from '../text/reading.ts';
import { goesOnLike } from './alike.ts';
import { type Difference, match } from './match.ts';
import { mostReplacements } from './replacements.ts';
import { mayShowSameBytes } from './same-bytes.ts';
import { isStillShown } from './still-shown.ts';

/** `answer` stands right behind the mirror; `undetermined` are bytes of the mirror of which nothing could be told. */
export interface Same {
  readonly kind: 'same';
  readonly answer: Answer;
  readonly undetermined: readonly InexactRegion[];
}

/** Where the mirror ends in undecodable bytes of an answer, and with how many U+FFFD these are shown. */
interface OpenEnd extends Omit<Same, 'kind'> {
  readonly at: number;
  readonly replaced: number;
}

interface EndContext extends Pick<FollowContext, 'final'> {
  readonly decode: Decode;
}

/** Questions about the bytes that the mirror ends in. */
const MOST_PROBES = 8;
/** Bytes that are looked at to see whether two answers show the same. */
const SHOWN_BYTES = 64;

/**
 * The mirror ends in bytes of `answer` that the service cannot decode (from `at` on, for `replaced` characters): only
 * from right behind them can it be told how it goes on.
 */
export async function* findEnd(
  file: LiveFile,
  open: OpenEnd,
  context: EndContext,
): Follow<Same | Difference | 'again'> {
  const { answer, undetermined, at, replaced } = open;
  const { reading } = answer;
  if (reading.atEnd() && !context.final && (await isAllShown(file, at, replaced)))
    return { kind: 'same', answer, undetermined };
  const shown = reading.fork();
  const found = yield* askForEnd(file, open, context);
  // Several answers said so: the file may have been rewritten between them.
  const isDoubtful = found !== 'again' && found.kind === 'same' && !(yield* isStillShown(file, shown, context.decode));
  return isDoubtful ? 'again' : found;
}

async function* askForEnd(
  file: LiveFile,
  { answer, undetermined, at, replaced }: OpenEnd,
  { decode }: EndContext,
): Follow<Same | Difference | 'again'> {
  const { reading } = answer;
  // Perhaps it ends in a character that is not complete yet, that a block edge cut, or that stands behind those bytes.
  const last = await alignDown(file, file.length - 1);
  const tail = await file.read(last, file.length);
  if (widthOfLead(tail[0] ?? 0) > 1) {
    const part = yield last;
    if (part === undefined) return 'again';
    const whole = decode(part.content);
    const begun = whole.fork();
    const left = regionsBefore(undetermined, last);
    const onward = await goesOnLike(begun, reading);
    // It is the byte-order mark behind those bytes, which was swallowed in the answer from there.
    if (onward === 'unmarked' && startsAlike(tail, BYTE_ORDER_MARK)) {
      reading.advance(tail.length);
      return { kind: 'same', answer, undetermined: left };
    }
    const found = await match(whole, file, { from: last, to: file.length, asked: last });
    if (found.kind === 'same' && found.aligned) {
      const alike = onward !== undefined || (await goesOnLike(whole, reading)) !== undefined;
      return alike ? { kind: 'same', answer: { offset: last, reading: whole }, undetermined: left } : 'again';
    }
  }

  const asked = yield* readBehind(file, decode);
  if (asked === 'again') return asked;
  const { reading: rest } = asked;
  // Bytes that were taken for a mark of UTF-16.
  if (rest instanceof EncodedReading && rest.encoder instanceof Utf16)
    return (await isShownBy(rest, reading)) ? { kind: 'same', answer: asked, undetermined } : 'again';
  const onward = await goesOnLike(rest, reading);
  // A block edge may have cut a character of this answer that stands whole in the other, or of both.
  const isCutInIt = onward === undefined && (await goesOnLike(reading, rest)) !== undefined;
  const standing = { answer: asked, at: file.length };
  if (onward === undefined && !isCutInIt && !(await mayShowSameBytes(standing, { answer, at, replaced }))) {
    const probe = rest.fork();
    await probe.skipUncertain();
    // What shows nothing certain there may be half a character of UTF-16, behind a mark.
    return reading.atEnd() || probe.atEnd() ? 'again' : { kind: 'different', at };
  }
  const uncertain = !rest.atEnd() && (await rest.peek(1)).length === 0;
  // All of these replacement characters stand for bytes of the mirror.
  const isUncut = reading.atEnd() && rest.atEnd() && file.length - answer.offset < WITHIN_BLOCK_BYTES;
  if (isUncut && replaced > mostReplacements(await file.read(at, file.length))) return 'again';
  const behind = onward === undefined || onward === 'earlier' || (onward === 'alike' && uncertain);
  const end: Same = { kind: 'same', answer: behind ? asked : answer, undetermined };
  return (yield* findText(file, { at, undecodable: at + replaced, isUncut }, decode)) ?? end;
}

/** Whether the bytes of `rest`, where they are those of UTF-8, are what `reading` shows behind its replacement characters. */
async function isShownBy(rest: Reading, reading: Reading): Promise<boolean> {
  const begins = await rest.fork().peek(SHOWN_BYTES);
  const text = new StringDecoder('utf8').write(begins);
  const [, certain = ''] = /^\ufffd*([^\ufffd]*)/.exec(text) ?? [];
  const shown = reading.fork();
  await shown.skipUncertain();
  const follows = await shown.peek(SHOWN_BYTES);
  if (certain.length === 0) return follows.length === 0 || begins.length === SHOWN_BYTES;
  return startsAlike(follows, Buffer.from(certain));
}

/** Whether the bytes end with no character that could go on. */
const isWhole = (bytes: Buffer) => new StringDecoder('utf8').write(bytes).length === bytes.toString().length;

/** Whether `replaced` replacement characters are what the service shows of the mirror from `at` on, and nothing more. */
async function isAllShown(file: LiveFile, at: number, replaced: number): Promise<boolean> {
  if (file.row.inexact.some((region) => overlaps(region, at, file.length))) return false;
  const there = await file.read(at, file.length);
  // More of a character that is begun is shown no otherwise.
  return isWhole(there) && there.toString() === REPLACEMENT_CHARACTER.repeat(replaced);
}

/** An answer that stands where the mirror ends, asked for from where no mark can stand. */
async function* readBehind(file: LiveFile, decode: Decode): Follow<Answer | 'again'> {
  const offset = await alignDown(file, file.length - 1);
  const known = await file.read(offset, file.length);
  const shown = Buffer.from(known.toString());
  // What a character begins may be shown together with what follows it, so that it cannot be told where it ends.
  const isKnown = isWhole(known) && !file.row.inexact.some((region) => overlaps(region, offset, file.length));
  if (!isKnown) return yield* readUnknown(file.length, decode);
  const part = yield offset;
  if (part === undefined) return 'again';
  const reading = decode(part.content);
  const isShown = (await part.content.read(0, shown.length)).equals(shown);
  // The end of the mirror may be what the file does not have.
  if (!isShown || !(reading instanceof Utf8Reading)) return yield* readUnknown(file.length, decode);
  reading.advance(shown.length);
  return { offset, reading };
}

/**
 * The mirror ends in bytes from `at` on that were not decoded, those before `undecodable` for sure. A file that repeats
 * itself goes on alike in many places, so the service is asked from the last of the others: if it shows something else
 * there, or nothing any more, the file is another one.
 */
async function* findText(
  file: LiveFile,
  { at, undecodable, isUncut }: { readonly at: number; readonly undecodable: number; readonly isUncut: boolean },
  decode: Decode,
): Follow<Difference | 'again' | undefined> {
  const to = file.length;
  for (let from = Math.max(Math.min(undecodable, to - 1), to - MOST_PROBES); from < to; from++) {
    const there = await file.read(from, Math.min(to, from + BYTE_ORDER_MARK.length));
    const part = yield from;
    if (part === undefined) return 'again';
    if (startsAlike(there, BYTE_ORDER_MARK) || mayBeUtf16Mark(there, 0)) {
      // It may be a mark, and swallowed, with what the file has behind the mirror; or nothing is there any more.
      const isMark = MARKS.some(({ bytes }) => bytes.equals(there)) || file.unknownUntil(from) !== undefined;
      if (part.content.length === 0 && !isMark) return 'again';
      continue;
    }
    const found = await match(decode(part.content), file, { from, to, asked: from });
    if (found.kind !== 'same') return { kind: found.kind, at };
    if (isUncut && !found.aligned && found.replaced > mostReplacements(await file.read(found.at, to))) return 'again';
  }
  return undefined;
}
