/**
 * Identifies the decoder of a response: which bytes its text stands for. The undisputed bytes of the mirror show it.
 * Where they do not, each possible decoder predicts the text from another offset, and a request from there shows which
 * one is right. Earlier polls do not count, so a server that changes its decoder is detected.
 *
 *   UTF-8, or a single-byte code page     offsets count bytes, so a wrong guess would shift the mirror. From within the
 *                                         first non-ASCII character, UTF-8 shows U+FFFD, a code page the next character
 *   a byte-order mark                     some servers strip it at the requested offset (docs/servers.md 1.4). Only at
 *                                         the start of a file: offsets.ts avoids others
 *
 * A mark of UTF-16 makes some servers decode all that follows as UTF-16, which no decoder predicts: raw bytes decide.
 */
import { isAscii } from 'node:buffer';
import { StringDecoder } from 'node:string_decoder';
import { BYTE_ORDER_MARK, characterStart, REPLACEMENT, standsAt, startsAlike, widthOfLead } from '../../../bytes.ts';
import type { Content, FileParts, Part } from '../../ports.ts';
import { HALF_BLOCK_BYTES, match, WITHIN_BLOCK_BYTES } from '../match.ts';
import type { LiveFile } from '../mirror/live-file.ts';
import type { FirstResponse, FollowContext } from '../steps.ts';
import { type Family, type TextEncoding, UTF8 } from './encoding.ts';
import { type Decode, Reading, withMark } from './reading.ts';

/** How a server may have made a text: as UTF-8, also without the byte-order mark of the file, or by a code page. */
type Decoder = Family | 'without-mark';

const KNOWN_BYTES = 64 * 1024;
const ASCII_WINDOW_BYTES = 64 * 1024;
/** No code page has a character with this many bytes in UTF-8. */
const WIDEST_BYTES = 4;
/** Bytes at the start of a file for which a server may decode all of it as UTF-16. */
const UTF16_MARKS = [Buffer.from([0xff, 0xfe]), Buffer.from([0xfe, 0xff])];
const decodeUtf8: Decode = (text) => new Reading(text);

/**
 * The response `part` with its decoder: its whole text, with a byte-order mark that the server stripped. `again`: the
 * file changed between the requests, or several decoders make this text.
 */
export async function explain(
  offset: number,
  part: Part,
  file: LiveFile,
  { encoding, final, parts }: Pick<FollowContext, 'encoding' | 'final' | 'parts'>,
): Promise<Omit<FirstResponse, 'shown'> | 'again'> {
  const { content } = part;
  const known = await file.read(offset, knownEnd(file, offset));
  if (offset === 0 && UTF16_MARKS.some((mark) => startsAlike(mark, known) && known.length > 0)) return 'again';
  // Most empty files stay empty for long: only the last pass checks for a file that is a byte-order mark alone.
  const mayBeMarked = (content.length > 0 || final) && (offset === 0 || known.length > 0);
  const {
    decoder,
    isAscii: isAllAscii,
    second,
  } = await identify(offset, content, known, { encoding, parts, mayBeMarked });
  if (decoder === undefined) return 'again';
  const onChanged = (reason: string) => file.report({ kind: 'decoder-changed', at: file.length, reason });
  if (decoder !== 'code-page') {
    if (!isAllAscii || decoder === 'without-mark') encoding.learn([UTF8], onChanged);
    const whole = decoder === 'without-mark' ? withMark(content) : content;
    return { offset, part, reading: decodeUtf8(whole), decode: decodeUtf8, second };
  }
  const shown = await new Reading(content).text();
  const showing = isAscii(known) ? [] : encoding.codePagesShowing(known, shown);
  if (showing.length > 0) encoding.learn(showing, onChanged);
  const pages = encoding.codePagesOf(shown);
  const decode: Decode = (other) => new Reading(other, pages);
  return { offset, part, reading: decode(content), decode };
}

interface Identified {
  /** Undefined: none or several make this text, or the file changed. */
  readonly decoder: Decoder | undefined;
  readonly second?: Part | undefined;
}

/** Identifies the decoder of the text from `from` on, where the file has the bytes `known`. */
export async function identify(
  from: number,
  content: Content,
  known: Buffer,
  { encoding, parts, mayBeMarked }: { encoding: TextEncoding; parts: FileParts; mayBeMarked: boolean },
): Promise<Identified & { readonly isAscii: boolean }> {
  const text = new Reading(content);
  const asciiBytes = await skipAscii(text);
  const isAscii = text.atEnd();
  const possible: Decoder[] = await familiesOf(content, known, text, encoding);
  if (mayBeMarked && startsAlike(BYTE_ORDER_MARK, known)) possible.push('without-mark');
  if (possible.length === 1) return { decoder: possible[0], isAscii };
  return { ...(await request(from, content, asciiBytes, possible, parts)), isAscii };
}

/** The end of the bytes of the mirror that are certain. */
function knownEnd({ undisputed, row }: LiveFile, from: number): number {
  const unknown = row.inexact.find(({ start, length }) => start + length > from);
  return Math.min(undisputed, from + KNOWN_BYTES, Math.max(from, unknown?.start ?? undisputed));
}

/** The families that may have made a text; `beyondAscii` is at its first non-ASCII character. */
async function familiesOf(
  content: Content,
  known: Buffer,
  beyondAscii: Reading,
  encoding: TextEncoding,
): Promise<Family[]> {
  const seen = Buffer.from(await beyondAscii.text());
  // No code page decodes a byte to U+FFFD.
  if (seen.length === 0 || widthOfLead(seen[0] ?? 0) === WIDEST_BYTES || seen.includes(REPLACEMENT)) return ['utf-8'];
  const showing = await familyShowing(content, known, encoding);
  // A rewritten file may look like one that the server decodes in another way.
  if (showing !== undefined && showing === (encoding.family ?? showing)) return [showing];
  return ['utf-8', 'code-page'];
}

/** The family of decoders that shows the known bytes; undefined if none or both do. */
async function familyShowing(content: Content, known: Buffer, encoding: TextEncoding): Promise<Family | undefined> {
  const bytes = { read: async (start: number, end: number) => known.subarray(start, end) };
  const found = await match(new Reading(content), bytes, { from: 0, to: known.length });
  if (found.kind !== 'different') {
    const shown = found.kind === 'same' ? known : known.subarray(0, found.at);
    // The last byte may be a whole character, or the start of one.
    return isAscii(wholeCharacters(shown)) ? undefined : 'utf-8';
  }
  return encoding.codePagesShowing(known, await new Reading(content).text()).length > 0 ? 'code-page' : undefined;
}

/** Requests an offset from which the possible decoders show other texts; `asciiBytes` of the text are ASCII. */
async function request(
  from: number,
  content: Content,
  asciiBytes: number,
  possible: readonly Decoder[],
  parts: FileParts,
): Promise<Identified> {
  const first = await content.read(asciiBytes, asciiBytes + WIDEST_BYTES);
  // Undecodable bytes predict nothing: the raw download decides.
  if (asciiBytes === 0 && standsAt(first, 0, REPLACEMENT)) return { decoder: possible[0] };
  const beyond = first.length > 0 && !standsAt(first, 0, REPLACEMENT) ? asciiBytes + 1 : 1;
  // Where block edges cut characters, a response from half a block later is needed, too.
  const block = await content.read(0, HALF_BLOCK_BYTES + WITHIN_BLOCK_BYTES);
  const isCut = asciiBytes < content.length && content.length > block.length && !block.includes(REPLACEMENT);
  const hasSecond = isCut && !possible.includes('code-page');
  // If the text repeats, a request from byte 1 may distinguish the decoders.
  const offsets = new Set([hasSecond ? characterStart(block, HALF_BLOCK_BYTES) : beyond, 1]);

  let left = possible;
  let second: Part | undefined;
  let evidenceBytes = 0;
  for (const at of offsets) {
    const part = await parts.at(from + at);
    if (part === undefined) return { decoder: undefined };
    if (hasSecond) second ??= part;
    const found = await part.content.read(0, WITHIN_BLOCK_BYTES);
    const fitting: Decoder[] = [];
    for (const decoder of left) {
      const text = await predict(decoder, content, at);
      // The server may strip a mark there, too.
      const isStripped = standsAt(text, 0, BYTE_ORDER_MARK) && shows(found, text.subarray(BYTE_ORDER_MARK.length));
      if (!isStripped && !shows(found, text)) continue;
      // After an empty text, there is a mark alone, or nothing.
      if (content.length === 0 && found.length > text.length) continue;
      fitting.push(decoder);
      evidenceBytes = text.length;
    }
    left = fitting;
    if (left.length === 1) break;
  }
  const [decoder, ...others] = left;
  if (decoder === undefined || others.length > 0) return { decoder: undefined };
  // An empty text proves nothing, and a text without U+FFFD little: the file may have been truncated meanwhile.
  const isNothing = content.length === 0 && decoder === 'utf-8';
  // A changed file can disprove UTF-8, too, so a mark is added only if the text is the same again.
  const isMarked = decoder === 'without-mark';
  const isSure = content.length > 0 && evidenceBytes > 0 && decoder === 'utf-8';
  if (isSure || isNothing) return { decoder, second };
  const again = await parts.at(from);
  const isSame =
    again !== undefined &&
    (!isMarked || again.content.length === content.length) &&
    shows(await again.content.read(0, WITHIN_BLOCK_BYTES), await content.read(0, WITHIN_BLOCK_BYTES));
  return { decoder: isSame ? decoder : undefined };
}

/** The text from `at` on, if `decoder` made the text of `content`; for a code page, all before the last byte is ASCII. */
async function predict(decoder: Decoder, content: Content, at: number): Promise<Buffer> {
  const end = at + WITHIN_BLOCK_BYTES + WIDEST_BYTES;
  if (decoder === 'code-page') {
    const text = await content.read(at - 1, end);
    return text.subarray(widthOfLead(text[0] ?? 0));
  }
  const text = await (decoder === 'without-mark' ? withMark(content) : content).read(at, end);
  // Behind the first block, the edges of blocks are elsewhere from another offset.
  const uncertain = text.indexOf(REPLACEMENT, Math.max(0, WITHIN_BLOCK_BYTES - at));
  return wholeCharacters(uncertain < 0 ? text : text.subarray(0, uncertain));
}

/** Whether a text starts with the expected one, as far as no edge of a block cuts it. */
function shows(found: Buffer, expected: Buffer): boolean {
  const compared = expected.subarray(0, WITHIN_BLOCK_BYTES);
  // An empty text proves nothing about a file that grew meanwhile.
  if (compared.length === 0) return found.length === 0;
  return found.subarray(0, compared.length).equals(compared);
}

/** The text of the whole characters in `bytes`. */
function wholeCharacters(bytes: Buffer): Buffer {
  return Buffer.from(new StringDecoder('utf8').write(bytes));
}

/** Moves a reading to its next non-ASCII character; returns the number of bytes skipped. */
async function skipAscii(reading: Reading): Promise<number> {
  for (let skipped = 0; ; ) {
    const window = await reading.peek(ASCII_WINDOW_BYTES);
    const count = isAscii(window) ? window.length : window.findIndex((byte) => byte >= 0x80);
    if (count === 0) return skipped;
    reading.advance(count);
    skipped += count;
    if (count < window.length) return skipped;
  }
}
