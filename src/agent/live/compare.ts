/**
 * Holds an answer of the service against the mirror. The text says nothing of bytes that it could not decode: those of
 * the mirror that need a proof are held against a second reading, and what even that leaves open is named; and if the
 * mirror ends in such bytes, it is found out where in the text that is.
 */
import { BYTE_ORDER_MARK, standsAt, startsAlike, widthOfLead } from '../../chunk.ts';
import type { InexactRegion } from '../../store/rows.ts';
import type { Answer, Follow, FollowContext } from './follow.ts';
import { commonRegions } from './inexact-regions.ts';
import type { LiveFile } from './live-file.ts';
import { type Difference, match } from './match.ts';
import type { Reading } from './reading.ts';

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
  const end = yield* findEnd(file, { ...found, answer }, context);
  return end === 'again' || end.kind !== 'same' ? end : { ...end, unproven };
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
  const offset = await file.alignDown(position);
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
  { answer, at, replaced }: { readonly answer: Answer; readonly at: number; readonly replaced: number },
  { encoding, final }: FollowContext,
): Follow<Same | Difference | 'again'> {
  const { reading } = answer;
  if (reading.atEnd() && replaced <= file.length - at && !final) return { kind: 'same', answer, unproven: [] };

  // Perhaps it ends in a character that is not complete yet, or that a block edge cut.
  const last = await file.alignDown(file.length - 1);
  if (widthOfLead((await file.read(last, last + 1))[0] ?? 0) > 1) {
    const part = yield last;
    if (part === undefined) return 'again';
    const whole = encoding.reading(part.content);
    const found = await match(whole, file, { from: last, to: file.length });
    if (found.kind === 'same' && found.aligned) {
      const answer = { offset: last, reading: whole };
      return (await goesOnLike(whole, reading)) === undefined ? 'again' : { kind: 'same', answer, unproven: [] };
    }
  }

  const part = yield file.length;
  if (part === undefined) return 'again';
  const rest = encoding.reading(part.content);
  const onward = await goesOnLike(rest, reading);
  if (onward === undefined) return { kind: 'different', at };
  const uncertain = !rest.atEnd() && (await rest.peek(1)).length === 0;
  if (onward === 'earlier' || (onward === 'alike' && uncertain))
    return { kind: 'same', answer: { offset: file.length, reading: rest }, unproven: [] };
  // All is there, or more than all: an offset past the end of the file has an empty answer, too.
  if (reading.atEnd() && rest.atEnd()) {
    const before = yield file.length - 1;
    if (before === undefined) return 'again';
    if (before.content.length === 0) return { kind: 'shorter', at };
  }
  return { kind: 'same', answer, unproven: [] };
}

const RESUME_BYTES = 64;

/**
 * How a later answer goes on like an earlier one, each behind the replacement characters at which it may stand; undefined
 * if it does not. alike: with the same bytes. earlier: with a character before them, which a block edge had cut.
 * unmarked: behind the byte-order mark of the other one, for it was asked for at the mark, and that was swallowed.
 */
export async function goesOnLike(
  later: Reading,
  earlier: Reading,
): Promise<'alike' | 'earlier' | 'unmarked' | undefined> {
  const [ours, theirs] = [later.fork(), earlier.fork()];
  await ours.skipUncertain();
  await theirs.skipUncertain();
  const expected = await theirs.peek(RESUME_BYTES);
  if (await begins(ours, 0, expected)) return 'alike';
  const width = widthOfLead((await ours.peek(1))[0] ?? 0);
  if (width > 1 && (await begins(ours, width, expected))) return 'earlier';
  if (!standsAt(expected, 0, BYTE_ORDER_MARK)) return undefined;
  theirs.advance(BYTE_ORDER_MARK.length);
  await theirs.skipUncertain();
  return (await begins(ours, 0, await theirs.peek(RESUME_BYTES))) ? 'unmarked' : undefined;
}

/** Whether a reading has `expected` behind `skip` bytes, as far as it is certain; but it does not end before. */
async function begins(reading: Reading, skip: number, expected: Buffer): Promise<boolean> {
  const found = await reading.peek(skip + RESUME_BYTES);
  const length = found.length - skip;
  const ends = reading.remaining() === found.length;
  return startsAlike(found.subarray(skip), expected) && (length >= expected.length || (length > 0 && !ends));
}
