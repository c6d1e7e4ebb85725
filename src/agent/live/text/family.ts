/**
 * Whether a service decodes UTF-8 or a single-byte code page. Offsets count bytes, so a wrong guess would let the mirror
 * drift: before a character beyond ASCII is appended, either bytes of the mirror were shown as such, or the service is
 * asked from within it. Of UTF-8, the rest of the character comes back as U+FFFD; of a code page there is no rest, and
 * the text goes on behind it.
 */
import { isAscii } from 'node:buffer';
import { REPLACEMENT, standsAt, widthOfLead } from '../../../bytes.ts';
import type { Follow, Part } from '../../ports.ts';
import { shows, WITHIN_BLOCK_BYTES } from './blocks.ts';
import type { Family } from './encoding.ts';
import type { Reading } from './reading.ts';

const WINDOW_BYTES = 64 * 1024;
/** No code page has a character that takes so many bytes in UTF-8. */
const WIDEST_BYTES = 4;

/**
 * How the text was decoded that `text` has from `position` on, taken as UTF-8; `ascii` if nothing in it tells, `again`
 * if the file changed while it was looked at, or it fits neither.
 */
export async function* tellFamily(position: number, text: Reading): Follow<Family | 'ascii' | 'again'> {
  const probe = text.fork();
  // What a kill left of the mirror may end inside a character: its rest is known by what is there.
  const start = await probe.peek(WIDEST_BYTES);
  let begun = 0;
  while (((start[begun] ?? 0) & 0xc0) === 0x80) begun++;
  probe.advance(begun);
  const at = position + begun + (await skipAscii(probe));
  if (probe.atEnd()) return 'ascii';
  const seen = Buffer.from(await probe.text());
  const width = widthOfLead(seen[0] ?? 0);
  // No code page brings about a U+FFFD.
  if (width === WIDEST_BYTES || seen.includes(REPLACEMENT)) return 'utf-8';

  const found = yield* textFrom(at + 1);
  if (found === undefined) return 'again';
  if (standsAt(found, 0, REPLACEMENT)) return 'utf-8';
  // Only text that is there proves anything: an empty answer may be that of a file that was truncated meanwhile.
  const still = yield* textFrom(at);
  if (still === undefined || !shows(still, seen)) return 'again';
  return shows(found, seen.subarray(width)) ? 'code-page' : 'again';
}

/** Moves a reading to where it has something else than ASCII, and says how far that was. */
export async function skipAscii(
  reading: Reading,
  onAscii: (bytes: Buffer) => void | Promise<void> = () => {},
): Promise<number> {
  for (let skipped = 0; ; ) {
    const window = await reading.peek(WINDOW_BYTES);
    const count = isAscii(window) ? window.length : window.findIndex((byte) => byte >= 0x80);
    if (count === 0) return skipped;
    await onAscii(window.subarray(0, count));
    reading.advance(count);
    skipped += count;
    if (count < window.length) return skipped;
  }
}

async function* textFrom(offset: number): Follow<Buffer | undefined> {
  const part: Part | undefined = yield offset;
  return part?.content.read(0, WITHIN_BLOCK_BYTES);
}
