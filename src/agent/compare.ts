/**
 * Holds an answer of the service against the mirror. The text says nothing of bytes that it could not decode: those of
 * the mirror that need a proof are held against a second reading, and what even that leaves open is named; and if the
 * mirror ends in such bytes, it is found out where in the text that is.
 */
import { BYTE_ORDER_MARK, standsAt, startsAlike, widthOfLead } from '../chunk.ts';
import type { InexactRegion } from '../store/rows.ts';
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
  const earlier = await goesOnLike(rest, reading);
  if (earlier === undefined) return { kind: 'different', at };
  const uncertain = !rest.atEnd() && (await rest.peek(1)).length === 0;
  if (uncertain || earlier > 0) return { kind: 'same', answer: { offset: file.length, reading: rest }, unproven: [] };
  // All is there, or more than all: an offset past the end of the file has an empty answer, too.
  if (reading.atEnd() && rest.atEnd()) {
    const before = yield file.length - 1;
    if (before === undefined) return 'again';
    if (before.content.length === 0) return { kind: 'shorter', at };
  }
  return { kind: 'same', answer, unproven: [] };
}

const RESUME_BYTES = 64;
const WIDEST_CHARACTER = 4;

/**
 * Whether `later` goes on like `earlier`, which was asked before it, each behind the replacement characters at which it
 * may stand: by how many bytes it begins earlier (one character at most, which a block edge cut), or undefined.
 */
export async function goesOnLike(later: Reading, earlier: Reading): Promise<number | undefined> {
  const [ours, theirs] = [later.fork(), earlier.fork()];
  await ours.skipUncertain();
  await theirs.skipUncertain();
  const expected = await theirs.peek(RESUME_BYTES);
  const found = await ours.peek(RESUME_BYTES + WIDEST_CHARACTER);
  const ends = ours.remaining() === found.length;
  // As far as both are certain; but a file that only grows does not end before.
  const begins = (skip: number, text: Buffer) =>
    startsAlike(found.subarray(skip), text) && (found.length - skip >= text.length || !ends);
  for (let skip = 0; skip <= WIDEST_CHARACTER; skip++) if (begins(skip, expected)) return skip;
  // A byte-order mark at the very offset may have been swallowed.
  return standsAt(expected, 0, BYTE_ORDER_MARK) && begins(0, expected.subarray(BYTE_ORDER_MARK.length)) ? 0 : undefined;
}
