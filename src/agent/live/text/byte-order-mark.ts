/**
 * Finds out whether the server stripped a byte-order mark from the start of a text (docs/dev/servers.md 1.4): a response from
 * another offset shows it. Only at the start of a file: offsets.ts avoids other marks. A mark of UTF-16 makes some servers
 * decode all that follows as UTF-16, which no prediction fits: raw bytes decide.
 */
import { StringDecoder } from 'node:string_decoder';
import { BYTE_ORDER_MARK, REPLACEMENT, standsAt, startsAlike } from '../../../bytes.ts';
import type { Content, FileParts } from '../../ports/server.ts';
import { WITHIN_BLOCK_BYTES } from '../match.ts';
import { withMark } from './reading.ts';

/** Bytes of the longest character. */
const WIDEST_BYTES = 4;
/** Bytes at the start of a file for which a server may decode all of it as UTF-16. */
const UTF16_MARKS = [Buffer.from([0xff, 0xfe]), Buffer.from([0xfe, 0xff])];

/** Whether a text from `offset` on may lack a mark of the file, which has the bytes `known` there. */
export function mayLackMark(offset: number, known: Buffer): boolean {
  return startsAlike(BYTE_ORDER_MARK, known) && (offset === 0 || known.length > 0);
}

/** Whether a file that starts with `known` may be decoded as UTF-16. */
export function mayBeUtf16(known: Buffer): boolean {
  return UTF16_MARKS.some((mark) => startsAlike(mark, known) && known.length > 0);
}

/**
 * The text of a response from `from` on, with the mark that the server stripped. Undefined if the text fits both a file
 * with a mark and one without, or if the file changed between the requests.
 */
export async function wholeText(from: number, content: Content, parts: FileParts): Promise<Content | undefined> {
  const block = await content.read(0, WITHIN_BLOCK_BYTES);
  // Undecodable bytes predict nothing: the raw download decides.
  if (standsAt(block, 0, REPLACEMENT)) return content;
  const later = await parts.at(from + 1);
  if (later === undefined) return undefined;
  const found = await later.content.read(0, WITHIN_BLOCK_BYTES);
  const marked = withMark(content);
  const predicted = await predict(content);
  const isUnmarked = fits(found, predicted, content);
  if (isUnmarked === fits(found, await predict(marked), content)) return undefined;
  // An empty text proves nothing, and a text without U+FFFD little: the file may have been truncated meanwhile.
  if (isUnmarked && (content.length === 0 || predicted.length > 0)) return content;
  // A changed file fits a mark, too, so it is added only if the text is the same again.
  const again = await parts.at(from);
  const isSame =
    again !== undefined &&
    (isUnmarked || again.content.length === content.length) &&
    shows(await again.content.read(0, WITHIN_BLOCK_BYTES), block);
  return isSame ? (isUnmarked ? content : marked) : undefined;
}

/** Whether the text `found` is the predicted one, perhaps without a mark that the server stripped there, too. */
function fits(found: Buffer, predicted: Buffer, { length }: Content): boolean {
  const isStripped =
    standsAt(predicted, 0, BYTE_ORDER_MARK) && shows(found, predicted.subarray(BYTE_ORDER_MARK.length));
  // After an empty text, there is a mark alone, or nothing.
  return (isStripped || shows(found, predicted)) && (length > 0 || found.length <= predicted.length);
}

/** The text from the second byte on, if the text from the first one is `content`. */
async function predict(content: Content): Promise<Buffer> {
  const text = await content.read(1, 1 + WITHIN_BLOCK_BYTES + WIDEST_BYTES);
  // Behind the first block, the edges of blocks are elsewhere from another offset.
  const uncertain = text.indexOf(REPLACEMENT, WITHIN_BLOCK_BYTES - 1);
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
