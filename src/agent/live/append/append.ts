/**
 * Appends the bytes after the end of the mirror: the certain bytes of the text; where a block edge cut a character,
 * those of two responses; undecodable bytes from a raw download; and where that is refused, substituted bytes of the
 * same width.
 */
import { GrowingBuffer } from '../../../growing-buffer.ts';
import { BEHIND_EVERY_END, type Follow } from '../../ports.ts';
import { HALF_BLOCK_BYTES, match } from '../match.ts';
import type { LiveFile } from '../mirror/live-file.ts';
import { alignDown } from '../offsets.ts';
import type { FirstResponse, FollowContext, FollowEnd, Response } from '../steps.ts';
import type { CodePage } from '../text/encoding.ts';
import type { Reading } from '../text/reading.ts';
import { fillInexact } from './inexact.ts';
import { shownBy } from './raw-download.ts';

const APPEND_BYTES = 1024 * 1024;
/** Maximum ranges that are substituted in one poll: each costs some requests. */
const MAX_FILLS = 8;

/** Appends raw bytes; undefined if none are available now. */
type ExtendRaw = () => Follow<FollowEnd | undefined>;

/**
 * Appends what follows the cursor of `response`, which is at the end of the mirror.
 */
export async function* appendRest(
  file: LiveFile,
  response: Response,
  first: FirstResponse,
  context: FollowContext,
  extendRaw: ExtendRaw,
): Follow<FollowEnd> {
  const { reading, decode } = response;
  await appendCertain(file, reading);
  if (reading.atEnd()) return 'current';
  const { codePage } = reading;
  if (codePage !== undefined) return yield* appendEncoded(file, reading, codePage, context, extendRaw);
  // A block edge may have cut the character: a second response, half a block later, has it whole. It starts within the
  // mirror, because a byte-order mark at the requested offset may change the text (docs/servers.md 1.4).
  const offset = await alignDown(file, response.offset + HALF_BLOCK_BYTES);
  if (offset >= file.length) return yield* appendUndecodable(file, response, first, context, extendRaw);
  const part = first.second ?? (yield offset);
  if (part === undefined) return 'absent';
  const second: Response = { offset: part.offset, part, reading: decode(part.content), decode };
  const found = await match(second.reading, file, { from: second.offset, to: file.length });
  if (found.kind !== 'same' || found.open || !(await appendBoth(file, response, second))) return 'unclear';
  if (second.reading.atEnd()) return 'current';
  return yield* appendUndecodable(file, second, first, context, extendRaw);
}

/**
 * Appends what is certain in either of two responses, as long as the other one shows it, too; both cursors are at the
 * end of the mirror. What only the later one has is newer. False if they contradict each other.
 */
export async function appendBoth(file: LiveFile, earlier: Response, later: Response): Promise<boolean> {
  // A block has few bytes: they are gathered.
  const gathered = new GrowingBuffer();
  let isAgreed = true;
  while (isAgreed && !earlier.reading.atEnd()) {
    const isCertain = (await earlier.reading.peek(1)).length > 0;
    const [certain, other] = isCertain ? [earlier, later] : [later, earlier];
    const bytes = await certain.reading.peek(APPEND_BYTES);
    if (bytes.length === 0) break;
    const from = file.length + gathered.length;
    const read = async (start: number, end: number) => bytes.subarray(start - from, end - from);
    const { offset, reading } = other;
    const found = await match(reading, { read }, { from, to: from + bytes.length, offset });
    isAgreed = (found.kind === 'same' && !found.open) || (found.kind === 'shorter' && other === earlier);
    if (isAgreed) gathered.append(bytes);
    certain.reading.advance(bytes.length);
    if (gathered.length >= APPEND_BYTES) await file.append(gathered.take());
  }
  if (gathered.length > 0) await file.append(gathered.take());
  if (isAgreed) await appendCertain(file, later.reading);
  return isAgreed;
}

/** Appends from a character whose byte is not certain in the possible code pages. */
async function* appendEncoded(
  file: LiveFile,
  text: Reading,
  { names }: CodePage,
  context: FollowContext,
  extendRaw: ExtendRaw,
): Follow<FollowEnd> {
  const { encoding, rawBytes, hasWholeFiles, final } = context;
  // Fewer code pages may have the characters that follow.
  const left = encoding.codePagesOf(await text.text(), names);
  if (left.names.length < names.length) {
    const rest = text.fork(left);
    await appendCertain(file, rest);
    if (rest.atEnd()) return 'current';
    return yield* appendEncoded(file, rest, left, context, extendRaw);
  }
  const end = yield* extendRaw();
  if (end !== undefined) return end;
  if (hasWholeFiles && rawBytes.areRefused(file, final)) throw encoding.undecided(left);
  return 'raw';
}

/**
 * Appends the raw bytes of a long backlog; `response` is the start of its text, with the cursor at the end of the
 * mirror.
 */
export async function* appendFar(
  file: LiveFile,
  { offset, reading }: Response,
  context: FollowContext,
): Follow<FollowEnd> {
  if (file.row.relativePath === null) {
    // A request after the end of the file returns its path without text.
    const named = yield BEHIND_EVERY_END;
    if (named === undefined) return 'absent';
    file.note({ relativePath: named.relativePath });
  }
  const before = file.length;
  const shown = await shownBy(offset, reading, context.encoding, before);
  const found = yield* context.rawBytes.compare(file, shown, context, 'toExtend');
  return found === 'same' && file.length > before ? 'current' : 'raw';
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
async function* appendUndecodable(
  file: LiveFile,
  { reading }: Response,
  first: Response,
  context: FollowContext,
  extendRaw: ExtendRaw,
): Follow<FollowEnd> {
  const { debounce, rawBytes, hasWholeFiles, final } = context;
  const rest = reading.fork();
  const replaced = await rest.skipUncertain();
  const tail = rest.atEnd() && replaced < 4;
  // A character that the end of a growing file cuts arrives with the next bytes.
  if (tail && !final && !debounce.hasPersisted(file, 'tail')) return 'tail';
  const end = yield* extendRaw();
  if (end !== undefined) debounce.clear(file, 'tail');
  if (end !== undefined) return end;
  if (!hasWholeFiles || !rawBytes.areRefused(file, final)) return tail ? 'tail' : 'raw';

  // Raw bytes are refused: substitute the same number of bytes.
  for (let fills = 0; fills < MAX_FILLS; fills++) {
    const filled = yield* fillInexact(file, file.length, first);
    if (typeof filled === 'string') return filled;
    await appendCertain(file, filled.reading);
    if (filled.reading.atEnd()) return 'current';
  }
  return 'raw';
}
