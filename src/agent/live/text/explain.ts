/**
 * Identifies the decoder of a response: which bytes its text stands for. The undisputed bytes of the mirror show it.
 * Where they do not, a request from another offset distinguishes the possible decoders. Earlier polls do not count, so
 * a server that changes its decoder is detected.
 *
 * UTF-8 or a single-byte code page: offsets count bytes, so a wrong guess would shift the mirror. Before a non-ASCII
 * character is appended, the mirror must show the decoder, or a request from within the character does: UTF-8 returns
 * U+FFFD for its rest; a code page has no rest, and returns the next character.
 */
import { isAscii } from 'node:buffer';
import { StringDecoder } from 'node:string_decoder';
import { REPLACEMENT, standsAt, widthOfLead } from '../../../bytes.ts';
import type { Content, Follow, Part } from '../../ports.ts';
import { match } from '../match.ts';
import type { LiveFile } from '../mirror/live-file.ts';
import type { FollowContext } from '../steps.ts';
import { shows, WITHIN_BLOCK_BYTES } from './blocks.ts';
import { findMark } from './byte-order-mark.ts';
import type { Family, TextEncoding } from './encoding.ts';
import { type Mark, Marked, mayBeMark } from './marks.ts';
import { EncodedReading, type Reading, Utf8Reading } from './reading.ts';

/** Makes a reading with the identified decoder. */
export type Decode = (text: Content) => Reading;

export interface Explained {
  /** The whole response, with a byte-order mark that the server stripped. */
  readonly reading: Reading;
  /** For other responses for this file. */
  readonly decode: Decode;
  /** Whether the decoder of non-ASCII characters is identified. */
  readonly identified: boolean;
  /** A second response, about half a block after this one. */
  readonly second?: Part | undefined;
}

const KNOWN_BYTES = 64 * 1024;
const ASCII_WINDOW_BYTES = 64 * 1024;
/** No code page has a character with this many bytes in UTF-8. */
const WIDEST_BYTES = 4;
const decodeUtf8: Decode = (text) => new Utf8Reading(text);

/** `again`: the file changed between the requests. */
export async function* explain(
  from: number,
  { content }: Part,
  file: LiveFile,
  { encoding, final }: Pick<FollowContext, 'encoding' | 'final'>,
): Follow<Explained | 'again'> {
  const known = await file.read(from, knownEnd(file, from));
  // Most empty files stay empty for long: only the last pass checks for a file that is a byte-order mark alone.
  const mayBeMarked = (content.length > 0 || final) && mayBeMark(known);
  const marked = mayBeMarked ? yield* findMark(content, from, known) : undefined;
  if (marked?.mark === 'again') return 'again';
  const second = marked?.second;
  if (marked !== undefined && marked.mark !== 'none') {
    encoding.learnUtf8((reason) => file.reportDecoder(reason));
    return { reading: readMarked(content, marked.mark), decode: decodeUtf8, identified: true, second };
  }
  const text = new Utf8Reading(content);
  const family = yield* familyOf(from, known, { text, file, encoding });
  if (family === 'again') return 'again';
  if (family === 'code-page') {
    const shown = await text.text();
    const showing = isAscii(known) ? [] : encoding.codePagesShowing(known, shown);
    if (showing.length > 0) encoding.learnCodePages(showing, (reason) => file.reportDecoder(reason));
    const pages = encoding.codePagesOf(shown);
    const decode = (other: Content) => new EncodedReading(other, pages);
    return { reading: decode(content), decode, identified: true };
  }
  if (family === 'utf-8') encoding.learnUtf8((reason) => file.reportDecoder(reason));
  return { reading: text, decode: decodeUtf8, identified: family === 'utf-8', second };
}

/** The text after a stripped byte-order mark, with the mark. */
export function readMarked(content: Content, { encoder }: Mark): Reading {
  const text = new Marked(content);
  return encoder === undefined ? new Utf8Reading(text) : new EncodedReading(text, encoder);
}

/** The end of the bytes of the mirror that are certain. */
function knownEnd({ undisputed, row }: LiveFile, from: number): number {
  const unknown = row.inexact.find(({ start, length }) => start + length > from);
  return Math.min(undisputed, from + KNOWN_BYTES, Math.max(from, unknown?.start ?? undisputed));
}

interface Asked {
  readonly text: Utf8Reading;
  readonly file: LiveFile;
  readonly encoding: TextEncoding;
}

/**
 * The decoder of non-ASCII characters in a text from `from` on, where the file has `known`; `ascii` if all are ASCII.
 */
async function* familyOf(
  from: number,
  known: Buffer,
  { text, file, encoding }: Asked,
): Follow<Family | 'ascii' | 'again'> {
  const showing = await familyShowing(known, { text, encoding });
  if (showing === 'ascii' && file.length === from + known.length) return showing;
  // A rewritten file may look like one that the server decodes in another way.
  if (showing !== undefined && showing !== 'ascii' && showing === (encoding.family ?? showing)) return showing;
  const identified = yield* identifyFamily(from, text);
  return identified === 'ascii' ? (showing ?? identified) : identified;
}

/** The decoder that matches the known bytes; undefined if none does with certainty. */
async function familyShowing(
  known: Buffer,
  { text, encoding }: Pick<Asked, 'text' | 'encoding'>,
): Promise<Family | 'ascii' | undefined> {
  const read = async (start: number, end: number) => known.subarray(start, end);
  const found = await match(text.fork(), { read }, { from: 0, to: known.length });
  if (found.kind !== 'different') {
    const shown = found.kind === 'same' ? known : known.subarray(0, found.at);
    if (isAscii(shown)) return 'ascii';
    // The last byte may be a whole character, or the start of one.
    return isAscii(Buffer.from(new StringDecoder('utf8').write(shown))) ? undefined : 'utf-8';
  }
  return encoding.codePagesShowing(known, await text.text()).length > 0 ? 'code-page' : undefined;
}

/**
 * Identifies the decoder of `text`, read as UTF-8 from `position` on. `ascii`: all of it is ASCII. `again`: the file
 * changed between the requests, or the text matches no decoder.
 */
export async function* identifyFamily(position: number, text: Reading): Follow<Family | 'ascii' | 'again'> {
  const probe = text.fork();
  // The mirror may end inside a character after a kill: skip its rest.
  const start = await probe.peek(WIDEST_BYTES);
  let begun = 0;
  while (((start[begun] ?? 0) & 0xc0) === 0x80) begun++;
  probe.advance(begun);
  const at = position + begun + (await skipAscii(probe));
  if (probe.atEnd()) return 'ascii';
  const seen = Buffer.from(await probe.text());
  const width = widthOfLead(seen[0] ?? 0);
  // No code page decodes a byte to U+FFFD.
  if (width === WIDEST_BYTES || seen.includes(REPLACEMENT)) return 'utf-8';

  const found = yield* textFrom(at + 1);
  if (found === undefined) return 'again';
  if (standsAt(found, 0, REPLACEMENT)) return 'utf-8';
  // An empty response proves nothing: the file may have been truncated meanwhile.
  const still = yield* textFrom(at);
  if (still === undefined || !shows(still, seen)) return 'again';
  return shows(found, seen.subarray(width)) ? 'code-page' : 'again';
}

/** Moves a reading to its next non-ASCII character; returns the number of bytes skipped. */
export async function skipAscii(
  reading: Reading,
  onAscii: (bytes: Buffer) => void | Promise<void> = () => {},
): Promise<number> {
  for (let skipped = 0; ; ) {
    const window = await reading.peek(ASCII_WINDOW_BYTES);
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
