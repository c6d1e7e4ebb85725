/**
 * Holds an answer of the service against the mirror. The text says nothing of bytes that it could not decode: those of
 * the mirror that need a proof are held against a second reading, and what even that leaves open is named; and if the
 * mirror ends in such bytes, it is found out where in the text that is.
 */
import { BYTE_ORDER_MARK, startsAlike, widthOfLead } from '../../chunk.ts';
import type { InexactRegion } from '../../store/rows.ts';
import { goesOnLike } from './alike.ts';
import type { Answer, Follow, FollowContext } from './follow.ts';
import { commonRegions, regionsBefore } from './inexact-regions.ts';
import type { LiveFile } from './live-file.ts';
import { type Difference, match } from './match.ts';
import { alignDown } from './offsets.ts';

/** `answer` stands right behind the mirror; `unproven` are bytes of the mirror of which nothing could be told. */
export interface Same {
  readonly kind: 'same';
  readonly answer: Answer;
  readonly unproven: readonly InexactRegion[];
}

/** The service decodes blocks of 1,024 bytes from the offset asked for (field notes 1). */
export const HALF_BLOCK_BYTES = 512;

/** `again`: the file changed while it was looked at. */
export async function* compare(
  file: LiveFile,
  answer: Answer,
  context: FollowContext,
): Follow<Same | Difference | 'again'> {
  const passed: InexactRegion[] = [];
  const { reading, offset: from } = answer;
  const found = await match(reading, file, { from, to: file.length }, (start, end) => {
    const open = Math.max(start, file.trusted);
    if (open < end) passed.push({ start: open, length: end - open });
  });
  if (found.kind !== 'same') return found;

  // A character that a block edge cut in this reading is whole in another one.
  let unproven = passed;
  if (passed.length > 0 && file.length - from > HALF_BLOCK_BYTES) {
    const second = yield* readAgain(file, from + HALF_BLOCK_BYTES, context);
    if (second === 'again' || second.kind !== 'same') return second;
    unproven = commonRegions(passed, second.passed);
    if (!found.aligned && second.aligned) return { kind: 'same', answer: second.answer, unproven };
  }
  if (found.aligned) return { kind: 'same', answer, unproven };
  return yield* findEnd(file, { ...found, answer, unproven }, context);
}

interface SecondReading {
  readonly kind: 'same';
  readonly aligned: boolean;
  readonly answer: Answer;
  readonly passed: readonly InexactRegion[];
}

/** Another reading from `position` on; all before it is taken for passed over. */
async function* readAgain(
  file: LiveFile,
  position: number,
  { encoding }: FollowContext,
): Follow<SecondReading | Difference | 'again'> {
  const offset = await alignDown(file, position);
  const part = yield offset;
  if (part === undefined) return 'again';
  const reading = encoding.reading(part.content);
  const passed = [{ start: 0, length: offset }];
  const found = await match(reading, file, { from: offset, to: file.length }, (start, end) => {
    passed.push({ start, length: end - start });
  });
  if (found.kind !== 'same') return found;
  return { kind: 'same', aligned: found.aligned, answer: { offset, reading }, passed };
}

/**
 * The mirror ends in bytes of `answer` that the service cannot decode (from `at` on, for `replaced` characters): only
 * from right behind them can it be told how it goes on.
 */
async function* findEnd(
  file: LiveFile,
  { answer, unproven, at, replaced }: Omit<Same, 'kind'> & { readonly at: number; readonly replaced: number },
  { encoding, final }: FollowContext,
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
    const found = await match(whole, file, { from: last, to: file.length });
    if (found.kind === 'same' && found.aligned) {
      const alike = onward !== undefined || (await goesOnLike(whole, reading)) !== undefined;
      return alike ? { kind: 'same', answer: { offset: last, reading: whole }, unproven: left } : 'again';
    }
    // It is the byte-order mark behind those bytes, which was swallowed in the answer from there.
    if (onward === 'unmarked' && startsAlike(tail, BYTE_ORDER_MARK)) {
      reading.advance(tail.length);
      return { kind: 'same', answer, unproven: left };
    }
  }

  const part = yield file.length;
  if (part === undefined) return 'again';
  const rest = encoding.reading(part.content);
  const onward = await goesOnLike(rest, reading);
  if (onward === undefined) return reading.atEnd() ? 'again' : { kind: 'different', at };
  const uncertain = !rest.atEnd() && (await rest.peek(1)).length === 0;
  if (onward === 'earlier' || (onward === 'alike' && uncertain))
    return { kind: 'same', answer: { offset: file.length, reading: rest }, unproven };
  // All is there, or more than all: an offset past the end of the file has an empty answer, too.
  if (reading.atEnd() && rest.atEnd()) {
    const before = yield file.length - 1;
    if (before === undefined) return 'again';
    if (before.content.length === 0) return { kind: 'shorter', at };
  }
  return { kind: 'same', answer, unproven };
}
