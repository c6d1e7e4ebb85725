/**
 * Appends the bytes after the end of the mirror: the certain bytes of the text; where a block edge cut a character,
 * those of two readings; undecodable bytes from a raw download; and where that is refused, substituted bytes of the
 * same width.
 */
import { BEHIND_EVERY_END, type Follow } from '../../ports.ts';
import { match } from '../match.ts';
import type { LiveFile } from '../mirror/live-file.ts';
import { alignDown } from '../offsets.ts';
import type { Answer, FirstResponse, FollowContext, FollowEnd } from '../steps.ts';
import { HALF_BLOCK_BYTES } from '../text/blocks.ts';
import { CodePage } from '../text/encoders.ts';
import type { Decode } from '../text/explain.ts';
import { identifyFamily, skipAscii } from '../text/explain.ts';
import { merge } from '../text/merge-readings.ts';
import { EncodedReading, type Reading, Utf8Reading } from '../text/reading.ts';
import { fillInexact } from './inexact.ts';

const APPEND_BYTES = 1024 * 1024;
/** Maximum ranges that are substituted in one poll: each costs some requests. */
const MAX_FILLS = 8;

/** The decoder of the text after the mirror, and whether it was identified for non-ASCII characters. */
interface AppendContext extends FollowContext {
  readonly decode: Decode;
  readonly identified: boolean;
  /** The response that was compared with the mirror. */
  readonly first: FirstResponse;
  /** Appends raw bytes; undefined if none are available now. */
  readonly extendRaw: () => Follow<FollowEnd | undefined>;
}

/** Appends what follows the cursor of `answer`, which is at the end of the mirror. */
export async function* appendRest(file: LiveFile, answer: Answer, context: AppendContext): Follow<FollowEnd> {
  let { reading } = answer;
  // Before the first non-ASCII character, the decoder must be identified: offsets count its bytes.
  if (!context.identified) {
    await skipAscii(reading, (bytes) => file.append(bytes));
    const family = yield* identifyFamily(file.length, reading);
    if (family === 'again') return 'unclear';
    if (family === 'code-page') reading = reading.as(context.encoding.codePagesOf(await reading.text()));
    if (family === 'utf-8') context.encoding.learnUtf8((reason) => file.reportDecoder(reason));
  }
  await appendCertain(file, reading);
  if (reading.atEnd()) return 'current';
  if (reading instanceof EncodedReading) return yield* appendEncoded(file, reading, context);
  // A block edge may have cut the character: a second response, half a block later, has it whole. It starts within the
  // mirror, because a byte-order mark at the requested offset may change the text (docs/servers.md 1.4).
  const secondOffset = await alignDown(file, answer.offset + HALF_BLOCK_BYTES);
  if (secondOffset >= file.length || !(reading instanceof Utf8Reading))
    return yield* appendUndecodable(file, { ...answer, reading }, context);
  const second = answer.second ?? (yield secondOffset);
  if (second === undefined) return 'absent';
  const other = new Utf8Reading(second.content);
  const found = await match(other, file, { from: second.offset, to: file.length });
  if (found.kind !== 'same' || found.open) return 'unclear';
  for await (const bytes of ahead(merge(reading, other))) await file.append(bytes);
  // The second response has the bytes that the server appended in between.
  if (reading.atEnd()) await appendCertain(file, other);
  if (other.atEnd()) return 'current';
  if ((await other.peek(1)).length > 0) return 'unclear';
  return yield* appendUndecodable(file, { offset: second.offset, reading: other }, context);
}

/** Appends from a character whose bytes are not certain in the possible code pages, or in UTF-16. */
async function* appendEncoded(file: LiveFile, text: EncodedReading, context: AppendContext): Follow<FollowEnd> {
  const { encoding, rawBytes, hasWholeFiles, final } = context;
  // After text that a byte-order mark turned into UTF-16, the next request starts after the mark.
  if (!(text.encoder instanceof CodePage)) return 'unclear';
  // Fewer code pages may have the characters that follow.
  const { names } = text.encoder;
  const left = encoding.codePagesOf(await text.text(), names);
  if (left.names.length < names.length) {
    const rest = text.as(left);
    await appendCertain(file, rest);
    if (rest.atEnd()) return 'current';
    return yield* appendEncoded(file, rest as EncodedReading, context);
  }
  const end = yield* context.extendRaw();
  if (end !== undefined) return end;
  if (hasWholeFiles && rawBytes.areRefused(file, final)) throw encoding.undecided(left);
  return 'raw';
}

/**
 * Appends the raw bytes of a long backlog; `answer` is the start of its text, with the cursor at the end of the mirror.
 */
export async function* appendFar(
  file: LiveFile,
  { offset, reading }: Answer,
  context: FollowContext,
): Follow<FollowEnd> {
  if (file.row.relativePath === null) {
    // A request after the end of the file returns its path without text.
    const named = yield BEHIND_EVERY_END;
    if (named === undefined) return 'absent';
    file.note({ relativePath: named.relativePath });
  }
  const texts = [reading];
  // The decoder may not be identified yet: the raw bytes decide.
  if (reading instanceof Utf8Reading) {
    const names = context.encoding.codePagesShowing(Buffer.alloc(0), await reading.text());
    texts.push(reading.as(new CodePage(names)));
  }
  return (yield* context.rawBytes.extendFar(file, { from: file.length, offset, texts }, context)) ? 'current' : 'raw';
}

/** Yields the same items, but requests the next one while the consumer uses the last one. */
async function* ahead<T>(source: AsyncGenerator<T, void>): AsyncGenerator<T, void> {
  for (let next = source.next(); ; ) {
    const { value, done } = await next;
    if (done) return;
    next = source.next();
    // If the consumer fails, nothing awaits this promise.
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

/** Appends undecodable bytes at the end of the mirror. */
async function* appendUndecodable(file: LiveFile, answer: Answer, context: AppendContext): Follow<FollowEnd> {
  const { decode, first, debounce, rawBytes, hasWholeFiles, final } = context;
  const { reading: text } = answer;
  const probe = text.fork();
  const replaced = await probe.skipUncertain();
  const tail = probe.atEnd() && replaced < 4;
  // A character that the end of a growing file cuts arrives with the next bytes.
  if (tail && !final && !debounce.hasPersisted(file, 'tail')) return 'tail';
  const end = yield* context.extendRaw();
  if (end !== undefined) debounce.clear(file, 'tail');
  if (end !== undefined) return end;
  if (!hasWholeFiles || !rawBytes.areRefused(file, final)) return tail ? 'tail' : 'raw';

  // Raw bytes are refused: substitute the same number of bytes.
  let rest = text;
  for (let fills = 0; fills < MAX_FILLS; fills++) {
    const filled = yield* fillInexact(file, rest, { first, decode });
    if (typeof filled === 'string') return filled;
    rest = filled.reading;
    await appendCertain(file, rest);
    if (rest.atEnd()) return 'current';
  }
  return 'raw';
}

/** A longer text is downloaded raw. A file six times as long costs at most 1.5 times its raw bytes. */
export const LONG_BACKLOG_BYTES = 64 * 1024;
/** A mirror up to this fraction of it is negligible: a raw download starts at the beginning of the file. */
const MIRRORED_PART = 1 / 256;
/** The part of it that is enough of later responses, once the text is known to be long. */
const ENOUGH_PART = 1 / 16;

/**
 * Bytes of text that suffice for now, if `longBytes` of text are a long backlog; undefined if all of it is needed.
 * `isLong`: an earlier response of the poll was long.
 */
export function enoughTextOf(file: LiveFile, longBytes: number, isLong: boolean): number | undefined {
  if (file.memory.wantsWholeText === true || file.length > MIRRORED_PART * longBytes) return undefined;
  return isLong ? ENOUGH_PART * longBytes : longBytes;
}
