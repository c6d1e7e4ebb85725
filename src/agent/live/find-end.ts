/**
 * Where in an answer a mirror ends that ends in bytes which the service could not decode: the text says nothing of how
 * many of them it has.
 */
import { BYTE_ORDER_MARK, startsAlike, widthOfLead } from '../../chunk.ts';
import type { InexactRegion } from '../../store/rows.ts';
import { goesOnLike } from './alike.ts';
import type { TextEncoding } from './encoding.ts';
import { regionsBefore } from './inexact-regions.ts';
import type { LiveFile } from './live-file.ts';
import { type Difference, match } from './match.ts';
import { alignDown } from './offsets.ts';
import type { Answer, Follow, FollowContext } from './recipe.ts';

/** `answer` stands right behind the mirror; `unproven` are bytes of the mirror of which nothing could be told. */
export interface Same {
  readonly kind: 'same';
  readonly answer: Answer;
  readonly unproven: readonly InexactRegion[];
}

/** Questions about the bytes that the mirror ends in. */
const MOST_PROBES = 8;

/**
 * The mirror ends in bytes of `answer` that the service cannot decode (from `at` on, for `replaced` characters): only
 * from right behind them can it be told how it goes on.
 */
export async function* findEnd(
  file: LiveFile,
  { answer, unproven, at, replaced }: Omit<Same, 'kind'> & { readonly at: number; readonly replaced: number },
  { encoding, final }: Pick<FollowContext, 'encoding' | 'final'>,
): Follow<Same | Difference | 'again'> {
  const { reading } = answer;
  if (reading.atEnd() && replaced <= file.length - at && !final) return { kind: 'same', answer, unproven };

  // Perhaps it ends in a character that is not complete yet, that a block edge cut, or that stands behind those bytes.
  const last = await alignDown(file, file.length - 1);
  const tail = await file.read(last, file.length);
  if (widthOfLead(tail[0] ?? 0) > 1) {
    const part = yield last;
    if (part === undefined) return 'again';
    const whole = encoding.reading(part.content);
    const begun = whole.fork();
    const left = regionsBefore(unproven, last);
    const onward = await goesOnLike(begun, reading);
    // It is the byte-order mark behind those bytes, which was swallowed in the answer from there.
    if (onward === 'unmarked' && startsAlike(tail, BYTE_ORDER_MARK)) {
      reading.advance(tail.length);
      return { kind: 'same', answer, unproven: left };
    }
    const found = await match(whole, file, { from: last, to: file.length });
    if (found.kind === 'same' && found.aligned) {
      const alike = onward !== undefined || (await goesOnLike(whole, reading)) !== undefined;
      return alike ? { kind: 'same', answer: { offset: last, reading: whole }, unproven: left } : 'again';
    }
  }

  const part = yield file.length;
  if (part === undefined) return 'again';
  const rest = encoding.reading(part.content);
  const onward = await goesOnLike(rest, reading);
  if (onward === undefined) return reading.atEnd() ? 'again' : { kind: 'different', at };
  const uncertain = !rest.atEnd() && (await rest.peek(1)).length === 0;
  const behind = onward === 'earlier' || (onward === 'alike' && uncertain);
  const end: Same = { kind: 'same', answer: behind ? { offset: file.length, reading: rest } : answer, unproven };
  return (yield* findText(file, { at, undecodable: at + replaced }, encoding)) ?? end;
}

/**
 * The mirror ends in bytes from `at` on that were not decoded, those before `undecodable` for sure. A file that repeats
 * itself goes on alike in many places, so the service is asked from the last of the others: if it shows something else
 * there, or nothing any more, the file is another one.
 */
async function* findText(
  file: LiveFile,
  { at, undecodable }: { readonly at: number; readonly undecodable: number },
  encoding: TextEncoding,
): Follow<Difference | 'again' | undefined> {
  const to = file.length;
  for (let from = Math.max(Math.min(undecodable, to - 1), to - MOST_PROBES); from < to; from++) {
    // It may be a mark, and swallowed.
    if (startsAlike(await file.read(from, Math.min(to, from + BYTE_ORDER_MARK.length)), BYTE_ORDER_MARK)) continue;
    const part = yield from;
    if (part === undefined) return 'again';
    const found = await match(encoding.reading(part.content), file, { from, to });
    if (found.kind !== 'same') return { kind: found.kind, at };
  }
  return undefined;
}
