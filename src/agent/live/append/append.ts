/**
 * Appends what the service has behind the mirror: the certain bytes of its text; where a block edge cut a character,
 * those of two readings; where the bytes are none of UTF-8, the raw bytes; and where these cannot be had either, bytes
 * of the same width that stand for them.
 */

import { BEHIND_EVERY_END, type Follow } from '../../ports.ts';
import { match } from '../match.ts';
import type { LiveFile } from '../mirror/live-file.ts';
import { alignDown } from '../offsets.ts';
import type { Answer, FirstResponse, FollowContext, FollowEnd } from '../steps.ts';
import { HALF_BLOCK_BYTES } from '../text/blocks.ts';
import { CodePage } from '../text/encoders.ts';
import type { Decode } from '../text/explain.ts';
import { skipAscii, tellFamily } from '../text/explain.ts';
import { merge } from '../text/merge-readings.ts';
import { EncodedReading, type Reading, Utf8Reading } from '../text/reading.ts';
import { fillInexact } from './inexact.ts';

const APPEND_BYTES = 1024 * 1024;
/** Undecodable stretches that are filled in one poll: each costs some calls. */
const MOST_FILLS = 8;

/** How the text behind the mirror is read, and whether that was identified for what is beyond ASCII. */
interface AppendContext extends FollowContext {
  readonly decode: Decode;
  readonly identified: boolean;
  /** The one that was compared with the mirror. */
  readonly first: FirstResponse;
  /** Appends raw bytes; undefined if there are none now. */
  readonly extendRaw: () => Follow<FollowEnd | undefined>;
}

/** `answer` stands at the end of the mirror. */
export async function* appendRest(file: LiveFile, answer: Answer, context: AppendContext): Follow<FollowEnd> {
  let { reading } = answer;
  // Before anything beyond ASCII is appended, make sure that its bytes are counted as the service counts them.
  if (!context.identified) {
    await skipAscii(reading, (bytes) => file.append(bytes));
    const family = yield* tellFamily(file.length, reading);
    if (family === 'again') return 'unclear';
    if (family === 'code-page') reading = reading.as(context.encoding.codePagesOf(await reading.text()));
    if (family === 'utf-8') context.encoding.learnUtf8((reason) => file.reportDecoder(reason));
  }
  await appendCertain(file, reading);
  if (reading.atEnd()) return 'current';
  if (reading instanceof EncodedReading) return yield* appendEncoded(file, reading, context);
  // A block edge may have cut the character: a second reading, half a block apart, has it whole. It begins within the
  // mirror: what it shows from behind the mirror may be what the service makes of a mark (docs/servers.md 1.4).
  const secondOffset = await alignDown(file, answer.offset + HALF_BLOCK_BYTES);
  if (secondOffset >= file.length || !(reading instanceof Utf8Reading))
    return yield* appendUndecodable(file, { ...answer, reading }, context);
  const second = answer.second ?? (yield secondOffset);
  if (second === undefined) return 'absent';
  const other = new Utf8Reading(second.content);
  const found = await match(other, file, { from: second.offset, to: file.length });
  if (found.kind !== 'same' || found.open) return 'unclear';
  for await (const bytes of ahead(merge(reading, other))) await file.append(bytes);
  // The second reading has what came in between.
  if (reading.atEnd()) await appendCertain(file, other);
  if (other.atEnd()) return 'current';
  if ((await other.peek(1)).length > 0) return 'unclear';
  return yield* appendUndecodable(file, { offset: second.offset, reading: other }, context);
}

/** The text goes on with a character of which the code pages, or UTF-16, give no certain bytes. */
async function* appendEncoded(file: LiveFile, text: EncodedReading, context: AppendContext): Follow<FollowEnd> {
  const { encoding, rawBytes, hasWholeFiles, final } = context;
  // Behind what a mark had made UTF-16, it is asked for without the mark.
  if (!(text.encoder instanceof CodePage)) return 'unclear';
  // Fewer of those that had what came may have what comes.
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

/** The raw bytes of a long backlog; `answer` is only the beginning of its text, which stands at the end of the mirror. */
export async function* appendFar(
  file: LiveFile,
  { offset, reading }: Answer,
  context: FollowContext,
): Follow<FollowEnd> {
  if (file.row.relativePath === null) {
    // From behind its end there is no text, so what comes with it is told.
    const named = yield BEHIND_EVERY_END;
    if (named === undefined) return 'absent';
    file.note({ relativePath: named.relativePath });
  }
  const texts = [reading];
  // How the service decodes is perhaps not identified yet: the raw bytes show it.
  if (reading instanceof Utf8Reading) {
    const names = context.encoding.codePagesShowing(Buffer.alloc(0), await reading.text());
    texts.push(reading.as(new CodePage(names)));
  }
  return (yield* context.rawBytes.extendFar(file, { from: file.length, offset, texts }, context)) ? 'current' : 'raw';
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

/** The answer stands where the mirror ends, and nothing more can be told from it. */
async function* appendUndecodable(file: LiveFile, answer: Answer, context: AppendContext): Follow<FollowEnd> {
  const { decode, first, sightings, rawBytes, hasWholeFiles, final } = context;
  const { reading: text } = answer;
  const probe = text.fork();
  const replaced = await probe.skipUncertain();
  const tail = probe.atEnd() && replaced < 4;
  // A character that is cut by the end of a growing file comes whole by itself, so there is time.
  if (tail && !final && !sightings.longSeen(file, 'tail')) return 'tail';
  const end = yield* context.extendRaw();
  if (end !== undefined) sightings.clear(file, 'tail');
  if (end !== undefined) return end;
  if (!hasWholeFiles || !rawBytes.areRefused(file, final)) return tail ? 'tail' : 'raw';

  // There is nothing but the text: what it does not show is left open, at its width.
  let rest = text;
  for (let fills = 0; fills < MOST_FILLS; fills++) {
    const filled = yield* fillInexact(file, rest, { first, decode });
    if (typeof filled === 'string') return filled;
    rest = filled.reading;
    await appendCertain(file, rest);
    if (rest.atEnd()) return 'current';
  }
  return 'raw';
}

/** Text beyond this length comes raw. A file of six times this length costs at most half as much again as its raw bytes. */
export const LONG_BACKLOG_BYTES = 64 * 1024;
/** A mirror of this part of it is next to nothing: a raw download begins with the file. */
const MIRRORED_PART = 1 / 256;
/** The part of it that is enough of later responses, once the text is known to be long. */
const ENOUGH_PART = 1 / 16;

/**
 * Bytes of text that are enough for now, if `longBytes` of it are a long backlog; undefined if all of it is wanted.
 * `isLong`: an earlier response of the poll was long.
 */
export function enoughTextOf(file: LiveFile, longBytes: number, isLong: boolean): number | undefined {
  if (file.memory.wantsWholeText === true || file.length > MIRRORED_PART * longBytes) return undefined;
  return isLong ? ENOUGH_PART * longBytes : longBytes;
}
