/** Appends the certain bytes of the text. Where a block edge cut a character, two responses are certain together. */
import { GrowingBuffer } from '../../../bytes.ts';
import { HALF_BLOCK_BYTES, match } from '../match.ts';
import type { LiveFile } from '../mirror/live-file.ts';
import { alignDown } from '../offsets.ts';
import type { FileContext, FirstResponse, Response } from '../steps.ts';
import { Reading } from '../text/reading.ts';

const APPEND_BYTES = 1024 * 1024;

/**
 * Appends what follows the cursor of `first`, which is at the end of the mirror. Returns the response whose cursor is
 * at the new end: of the text, or before bytes that it does not show.
 */
export async function appendText(
  file: LiveFile,
  first: FirstResponse,
  { parts }: FileContext,
): Promise<Response | 'absent' | 'unclear'> {
  const { reading } = first;
  await appendCertain(file, reading);
  if (reading.atEnd() || reading.isAsciiOnly) return first;
  // A block edge may have cut the character: a second response, half a block later, has it whole. It starts within the
  // mirror, because a byte-order mark at the requested offset may change the text (docs/dev/servers.md 1.4).
  const offset = await alignDown(file, first.offset + HALF_BLOCK_BYTES);
  if (offset >= file.length) return first;
  const part = await parts.at(offset);
  if (part === undefined) return 'absent';
  const second: Response = { ...part, reading: new Reading(part.content) };
  const found = await match(second.reading, file, { from: part.offset, to: file.length });
  const isAgreed = found.kind === 'same' && !found.open && (await appendBoth(file, first, second));
  return isAgreed ? second : 'unclear';
}

/**
 * Appends what is certain in either of two responses, as long as the other one shows it, too, or ends; both cursors are at
 * the end of the mirror. False if they contradict each other.
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
    isAgreed = found.kind === 'shorter' || (found.kind === 'same' && !found.open);
    if (isAgreed) gathered.append(bytes);
    certain.reading.advance(bytes.length);
    if (gathered.length >= APPEND_BYTES) await file.append(gathered.take());
  }
  if (gathered.length > 0) await file.append(gathered.take());
  if (isAgreed) await appendCertain(file, later.reading);
  return isAgreed;
}

export async function appendCertain(file: LiveFile, reading: Reading): Promise<void> {
  for (;;) {
    const bytes = await reading.peek(APPEND_BYTES);
    if (bytes.length === 0) return;
    await file.append(bytes);
    reading.advance(bytes.length);
  }
}
