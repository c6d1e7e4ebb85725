/**
 * Appends what the service has behind the mirror: the certain bytes of its text; where a block edge cut a character,
 * those of two readings; where the bytes are none of UTF-8, the raw bytes; and where these cannot be had either, bytes
 * of the same width that stand for them.
 */
import { HALF_BLOCK_BYTES } from './blocks.ts';
import { proveEncoding } from './encoding-proof.ts';
import { fillInexact } from './inexact.ts';
import type { LiveFile } from './live-file.ts';
import { match } from './match.ts';
import { merge } from './merge.ts';
import { alignDown } from './offsets.ts';
import { type Reading, Utf8Reading } from './reading.ts';
import type { Answer, Follow, FollowContext, FollowEnd } from './recipe.ts';

const APPEND_BYTES = 1024 * 1024;
/** No file is that long. */
const BEHIND_ALL_BYTES = 2 ** 50;
/** Undecodable stretches that are filled in one poll: each costs some calls. */
const MOST_FILLS = 8;

/** `answer` stands at the end of the mirror. */
export async function* appendRest(file: LiveFile, answer: Answer, context: FollowContext): Follow<FollowEnd> {
  const { encoding } = context;
  let { reading } = answer;
  if (reading.atEnd()) return 'current';

  // Before anything is appended, make sure that its bytes are counted as the service counts them.
  for (let before = -1; before < file.length && !reading.atEnd(); ) {
    before = file.length;
    const proven = yield* proveEncoding({ position: file.length }, reading, encoding);
    if (proven === 'again') return 'witness';
    reading = proven;
    await appendCertain(file, reading);
    // A character that a code page does not have may tell it from others.
    if (encoding.codePage === undefined) break;
  }
  if (reading.atEnd()) return 'current';
  const isFirstBlock = file.length - answer.offset < HALF_BLOCK_BYTES;
  if (isFirstBlock || !(reading instanceof Utf8Reading)) return yield* appendUndecodable(file, reading, context);

  // A block edge may have cut the character: a second reading, half a block apart, has it whole.
  const second = answer.second ?? (yield await alignDown(file, answer.offset + HALF_BLOCK_BYTES));
  if (second === undefined) return 'absent';
  const other = new Utf8Reading(second.content);
  const found = await match(other, file, { from: second.offset, to: file.length });
  if (found.kind !== 'same' || !found.aligned) return 'witness';
  for await (const bytes of ahead(merge(reading, other))) await file.append(bytes);
  // The second reading has what came in between.
  if (reading.atEnd()) await appendCertain(file, other);
  if (other.atEnd()) return 'current';
  if ((await other.peek(1)).length > 0) return 'witness';
  return yield* appendUndecodable(file, other, context);
}

/** The raw bytes of a long backlog; `answer` is only the beginning of its text, which stands at the end of the mirror. */
export async function* appendFar(file: LiveFile, { reading }: Answer, context: FollowContext): Follow<FollowEnd> {
  if (file.row.relativePath === null) {
    // From behind its end there is no text, so what comes with it is told.
    const named = yield BEHIND_ALL_BYTES;
    if (named === undefined) return 'absent';
    file.note({ relativePath: named.relativePath });
  }
  return (await context.rawBytes.extendFar(file, reading, context)) ? 'current' : 'raw';
}

/** The same, but the next one is asked for before the last one is used up. */
async function* ahead<T>(source: AsyncGenerator<T, void>): AsyncGenerator<T, void> {
  for (let next = source.next(); ; ) {
    const { value, done } = await next;
    if (done) return;
    next = source.next();
    // Whoever uses the last one may fail before anybody waits for this one.
    next.catch(() => {});
    yield value;
  }
}

async function appendCertain(file: LiveFile, reading: Reading): Promise<void> {
  for (;;) {
    const bytes = await reading.peek(APPEND_BYTES);
    if (bytes.length === 0) return;
    await file.append(bytes);
    reading.advance(bytes.length);
  }
}

/** `text` stands where the mirror ends, and nothing more can be told from it. */
async function* appendUndecodable(file: LiveFile, text: Reading, context: FollowContext): Follow<FollowEnd> {
  const { encoding, witnesses, rawBytes, final } = context;
  const probe = text.fork();
  const replaced = await probe.skipUncertain();
  const tail = probe.atEnd() && replaced < 4;
  // A character that is cut by the end of a growing file comes whole by itself, so there is time.
  if (tail && !final && !witnesses.longSeen(file, 'tail')) return 'tail';
  if (await rawBytes.extend(file, text, context)) {
    witnesses.clear(file, 'tail');
    return 'current';
  }
  if (!rawBytes.areRefused(file, final)) return tail ? 'tail' : 'raw';

  // There is nothing but the text: what it cannot say is left open, at its width.
  let rest = text;
  for (let fills = 0; fills < MOST_FILLS; fills++) {
    const filled = yield* fillInexact(file, rest, encoding);
    if (typeof filled === 'string') return filled;
    await appendCertain(file, filled);
    if (filled.atEnd()) return 'current';
    rest = filled;
  }
  return 'raw';
}
