/**
 * Holds an answer of the service against the mirror. The text says nothing of bytes that it could not decode: those of
 * the mirror that are disputed are held against a second reading, and what even that leaves open is named.
 */

import { BYTE_ORDER_MARK, startsAlike } from '../../../bytes.ts';
import type { InexactRegion } from '../../../store/rows.ts';
import type { Follow } from '../../ports.ts';
import { commonRegions } from '../mirror/inexact-regions.ts';
import type { LiveFile } from '../mirror/live-file.ts';
import { alignDown } from '../offsets.ts';
import type { Answer, FollowContext } from '../steps.ts';
import { HALF_BLOCK_BYTES, WITHIN_BLOCK_BYTES } from '../text/blocks.ts';
import type { Decode } from '../text/explain.ts';
import { findEnd, type Same } from './find-end.ts';
import { type Difference, match } from './match.ts';
import { mayEndInSameBytes } from './same-bytes.ts';

/** Questions about stretches of which nothing could be told. */
const MOST_SHIFTS = 16;

interface CompareContext extends Pick<FollowContext, 'final'> {
  readonly decode: Decode;
}

/** `again`: the file changed while it was looked at. */
export async function* compare(
  file: LiveFile,
  answer: Answer,
  context: CompareContext,
): Follow<Same | Difference | 'again'> {
  const skipped: InexactRegion[] = [];
  const { reading, offset: from } = answer;
  const found = await match(reading, file, { from, to: file.length, asked: from }, (start, end) => {
    const open = Math.max(start, file.undisputed);
    if (open < end) skipped.push({ start: open, length: end - open });
  });
  if (found.kind !== 'same') return fromFirst(skipped, found);

  // A character that a block edge cut in this reading is whole in another one.
  let undetermined = skipped;
  let second: SecondReading | undefined;
  if (skipped.length > 0 && file.length - from > HALF_BLOCK_BYTES) {
    const read = yield* readAgain(file, from + HALF_BLOCK_BYTES, context);
    if (read === 'again') return read;
    if (read.kind !== 'same') return fromFirst(skipped, read);
    second = read;
    undetermined = commonRegions(skipped, second.skipped);
  }
  const shifted = yield* findShift(file, undetermined, { ...context, behind: found.aligned ? answer : undefined });
  if (shifted !== undefined) return shifted;
  if (found.aligned) return { kind: 'same', answer, undetermined };
  if (second?.aligned) return { kind: 'same', answer: second.answer, undetermined };
  return yield* findEnd(file, { ...found, answer, undetermined }, context);
}

/** Whatever was skipped may be what is different: a mirror that is cut behind it would keep the damage. */
function fromFirst([first]: readonly InexactRegion[], { kind, at }: Difference): Difference {
  return { kind, at: Math.min(at, first?.start ?? at) };
}

interface SecondReading {
  readonly kind: 'same';
  readonly aligned: boolean;
  readonly answer: Answer;
  readonly skipped: readonly InexactRegion[];
}

/** Another reading from `position` on; all before it is taken for skipped. */
async function* readAgain(
  file: LiveFile,
  position: number,
  { decode }: CompareContext,
): Follow<SecondReading | Difference | 'again'> {
  const offset = await alignDown(file, position);
  const part = yield offset;
  if (part === undefined) return 'again';
  const reading = decode(part.content);
  const skipped = [{ start: 0, length: offset }];
  const found = await match(reading, file, { from: offset, to: file.length, asked: offset }, (start, end) => {
    skipped.push({ start, length: end - start });
  });
  if (found.kind !== 'same') return found;
  return { kind: 'same', aligned: found.aligned, answer: { offset, reading }, skipped };
}

/**
 * What nothing could be told of was skipped until the mirror goes on like the text, so a mirror with more or fewer
 * undecodable bytes than the file looked the same so far. Asked from right behind them, the service shows whether it is.
 * `behind` stands right behind what is mirrored.
 */
async function* findShift(
  file: LiveFile,
  undetermined: readonly InexactRegion[],
  { decode, behind }: CompareContext & { readonly behind: Answer | undefined },
): Follow<Difference | 'again' | undefined> {
  // Behind one that the mirror ends in, nothing of it could be shifted.
  const count = undetermined.filter(({ start, length }) => start + length < file.length).length;
  const step = Math.ceil(count / MOST_SHIFTS);
  // Where there are many, one question is for several of them, the last one always among these.
  for (let first = 0, next = ((count - 1) % step) + 1; first < count; first = next, next += step) {
    const last = undetermined[next - 1] ?? { start: 0, length: 0 };
    const end = last.start + last.length;
    const to = undetermined[next]?.start ?? file.length;
    if (end >= to) continue;
    const different = fromFirst(undetermined.slice(first), { kind: 'different', at: end });
    const from = await fromBehind(file, end, to);
    const part = yield from;
    if (part === undefined) return 'again';
    const reading = decode(part.content);
    const replaced = await reading.skipUncertain();
    const found = await match(reading, file, { from: Math.max(from, end), to, asked: from });
    if (replaced !== (from < end ? 1 : 0) || found.kind !== 'same') return different;
    if (to < file.length || behind === undefined) continue;
    // What is certain of the end in one answer is so in the other one, too, unless a block edge cuts it.
    if (!found.aligned && to - from < WITHIN_BLOCK_BYTES) return different;
    // Where the text repeats itself, only its end tells; it may have grown, too.
    if (!found.aligned) continue;
    if (Math.max(reading.remaining(), behind.reading.remaining()) >= WITHIN_BLOCK_BYTES) continue;
    const one = { answer: { offset: from, reading }, at: to };
    if (!(await mayEndInSameBytes(one, { answer: behind, at: to }))) return 'again';
  }
  return undefined;
}

/** `end`, or behind the marks there; or the last undecodable byte, shown as one U+FFFD, if nothing else is behind them. */
async function fromBehind(file: LiveFile, end: number, to: number): Promise<number> {
  const clear = await alignDown(file, end);
  const mayBeMark = startsAlike(await file.read(clear, to), BYTE_ORDER_MARK);
  return clear < end || clear >= to || mayBeMark ? end - 1 : clear;
}
