/**
 * One poll of one live file, as a recipe: ask from a little before the position, hold what comes back against the
 * mirror, append the rest. It yields the offsets it asks for and is given what the service has from there, so that one
 * call can carry the questions of all files of a job.
 */
import { BYTE_ORDER_MARK } from '../chunk.ts';
import { findMark } from './byte-order-mark.ts';
import { proveEncoding, type TextEncoding } from './encoding.ts';
import type { LiveFile } from './live-file.ts';
import { type Match, match } from './match.ts';
import { merge } from './merge.ts';
import type { Part } from './ports.ts';
import type { RawBytes } from './raw-bytes.ts';
import type { Reading } from './reading.ts';
import type { Witnesses } from './witnesses.ts';

/** Offsets go out, parts come in: undefined if the file does not exist. */
export type Follow<End> = AsyncGenerator<number, End, Part | undefined>;

/**
 * current: the mirror has all there is. absent: there is no such file at present. tail: the file ends inside a
 * character. raw: the next byte is none of UTF-8, and its raw bytes are not to be had now. witness: it looks truncated
 * or rewritten, and a second look is wanted.
 */
export type FollowEnd = 'current' | 'absent' | 'tail' | 'raw' | 'witness';

export interface FollowContext {
  readonly encoding: TextEncoding;
  readonly witnesses: Witnesses;
  readonly rawBytes: RawBytes;
  /** The last pass of a job: raw bytes are fetched without waiting for quiet. */
  readonly final: boolean;
  readonly signal: AbortSignal;
}

/** The service decodes blocks of this many bytes from the offset asked for (field notes 1). */
const BLOCK_BYTES = 1024;
const MOST_ATTEMPTS = 4;
const APPEND_BYTES = 1024 * 1024;

export async function* follow(file: LiveFile, context: FollowContext): Follow<FollowEnd> {
  for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
    const from = await file.askFrom();
    const part = yield from;
    if (part === undefined) return 'absent';
    file.note({ relativePath: part.relativePath });

    // Hold the answer against what is there; a difference is mended, kept as a generation, or looked at twice.
    const reading = context.encoding.reading(part.content);
    const found = await match(reading, file, from, file.length);
    if (found.kind !== 'same') {
      if (yield* settleDifference(found, file, context)) continue;
      return 'witness';
    }
    context.witnesses.clear(file, 'difference');
    file.trust();

    // The mirror ends in bytes the service cannot decode: only from right behind them can the rest be told.
    if (!found.aligned) {
      if (reading.atEnd()) return 'current';
      const rest = yield file.length;
      if (rest === undefined) return 'absent';
      return yield* appendRest(file, rest, context.encoding.reading(rest.content), context);
    }
    return yield* appendRest(file, part, reading, context);
  }
  return 'witness';
}

/** Appends all that is certain behind the mirror, at whose end `answer`, the reading of `part`, stands. */
async function* appendRest(file: LiveFile, part: Part, answer: Reading, context: FollowContext): Follow<FollowEnd> {
  if (answer.atEnd()) return 'current';
  const { encoding } = context;

  // Before anything is appended, make sure that its bytes are counted as the service counts them.
  let second: Part | undefined;
  if (file.length === 0 && !encoding.keepsMark) {
    const found = yield* findMark(part.content, encoding);
    if (found.mark === 'again') return 'witness';
    if (found.mark === 'swallowed') await file.append(BYTE_ORDER_MARK);
    second = found.second;
  }
  const reading = yield* proveEncoding(file.length, answer, encoding);
  if (reading === 'again') return 'witness';
  await appendCertain(file, reading);
  if (reading.atEnd()) return 'current';

  // A block edge may have cut the character: a second reading, half a block apart, has it whole.
  if (file.length - part.offset < BLOCK_BYTES - 4) return appendRaw(file, reading, context);
  second ??= yield await file.alignDown(part.offset + BLOCK_BYTES / 2);
  if (second === undefined) return 'absent';
  const other = encoding.reading(second.content);
  const found = await match(other, file, second.offset, file.length);
  if (found.kind !== 'same' || !found.aligned) return 'witness';
  await merge(reading, other, (bytes) => file.append(bytes));
  return other.atEnd() ? 'current' : appendRaw(file, other, context);
}

async function appendCertain(file: LiveFile, reading: Reading): Promise<void> {
  for (;;) {
    const bytes = await reading.peek(APPEND_BYTES);
    if (bytes.length === 0) return;
    await file.append(bytes);
    reading.advance(bytes.length);
  }
}

/** Nothing more can be told from text: the rest comes from the raw bytes, now or later. */
async function appendRaw(file: LiveFile, uncertain: Reading, context: FollowContext): Promise<FollowEnd> {
  const probe = uncertain.fork();
  const replaced = await probe.skipUncertain();
  const tail = probe.atEnd() && replaced < 4;
  // A character that is cut by the end of a growing file comes whole by itself, so there is time.
  if (tail && !context.final && !context.witnesses.longSeen(file, 'tail')) return 'tail';
  const brought = await context.rawBytes.extend(file, uncertain, context);
  if (!brought) return tail ? 'tail' : 'raw';
  context.witnesses.clear(file, 'tail');
  return 'current';
}

/** Whether the difference was settled, so that the service can be asked anew; else a second look is wanted. */
async function* settleDifference(
  found: Exclude<Match, { kind: 'same' }>,
  file: LiveFile,
  { encoding, witnesses }: FollowContext,
): Follow<boolean> {
  // What was never promised is simply not there: the remote file is right.
  const unpromised = found.at >= file.committed && file.doubt !== 'unknown';
  if (unpromised && (found.kind === 'different' || file.doubt === 'damaged')) {
    await file.cut(found.at);
    return true;
  }
  const intact = await file.hasItsFingerprint();
  if (file.doubt === 'none' && !intact) {
    file.raiseDoubt('damaged');
    return true;
  }
  // Somebody changed the mirror. If its end is still that of the remote file, only the mirror was changed.
  if (file.doubt === 'damaged' && found.kind === 'different') {
    if (!intact || (yield* endsLikeRemote(file, encoding))) {
      await file.cut(found.at);
      return true;
    }
  }
  if (!witnesses.confirm(file, found.kind)) return false;
  if (unpromised) await file.cut(found.at);
  else await file.startGeneration();
  return true;
}

async function* endsLikeRemote(file: LiveFile, encoding: TextEncoding): Follow<boolean> {
  const from = await file.overlapStart();
  const part = yield from;
  if (part === undefined) return false;
  const found = await match(encoding.reading(part.content), file, from, file.committed);
  return found.kind === 'same';
}
