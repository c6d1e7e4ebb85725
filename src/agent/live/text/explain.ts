/**
 * How an answer is to be read: which bytes stand behind its text. What is sure of the mirror shows how they were decoded;
 * where that says nothing, the service is asked from where the explanations that are left would show something else.
 * Nothing is taken over from earlier polls, so a service that decodes in another way by now is found out by itself.
 *
 * UTF-8 or a single-byte code page: offsets count bytes, so a wrong guess would let the mirror drift. Before a character
 * beyond ASCII is appended, either bytes of the mirror were shown as such, or the service is asked from within it. Of
 * UTF-8, the rest of the character comes back as U+FFFD; of a code page there is no rest, and the text goes on behind it.
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

/** How texts of a file are to be read. */
export type Decode = (text: Content) => Reading;

export interface Explained {
  /** All of the answer, with a mark that the service swallowed. */
  readonly reading: Reading;
  /** For other answers of the file. */
  readonly decode: Decode;
  /** Whether characters beyond ASCII are known to be read rightly. */
  readonly identified: boolean;
  /** Another answer that is at hand: from about half a block behind this one on. */
  readonly second?: Part | undefined;
}

const KNOWN_BYTES = 64 * 1024;
const ASCII_WINDOW_BYTES = 64 * 1024;
/** No code page has a character that takes so many bytes in UTF-8. */
const WIDEST_BYTES = 4;
const decodeUtf8: Decode = (text) => new Utf8Reading(text);

/** `again`: the file changed while it was looked at. */
export async function* explain(
  from: number,
  { content }: Part,
  file: LiveFile,
  { encoding, final }: Pick<FollowContext, 'encoding' | 'final'>,
): Follow<Explained | 'again'> {
  const known = await file.read(from, knownEnd(file, from));
  // That an empty file is none, but a mark alone, is asked for in the end only: most empty files stay empty for long.
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

/** The text behind a mark that was swallowed, with it. */
export function readMarked(content: Content, { encoder }: Mark): Reading {
  const text = new Marked(content);
  return encoder === undefined ? new Utf8Reading(text) : new EncodedReading(text, encoder);
}

/** As far as the bytes of the mirror are sure. */
function knownEnd({ undisputed, row }: LiveFile, from: number): number {
  const unknown = row.inexact.find(({ start, length }) => start + length > from);
  return Math.min(undisputed, from + KNOWN_BYTES, Math.max(from, unknown?.start ?? undisputed));
}

interface Asked {
  readonly text: Utf8Reading;
  readonly file: LiveFile;
  readonly encoding: TextEncoding;
}

/** How characters beyond ASCII were decoded in a text from `from` on, where the file has `known`; `ascii` if nothing tells. */
async function* familyOf(
  from: number,
  known: Buffer,
  { text, file, encoding }: Asked,
): Follow<Family | 'ascii' | 'again'> {
  const showing = await familyShowing(known, { text, encoding });
  if (showing === 'ascii' && file.length === from + known.length) return showing;
  // A file that was rewritten may look like one that is decoded in another way by now.
  if (showing !== undefined && showing !== 'ascii' && showing === (encoding.family ?? showing)) return showing;
  const told = yield* tellFamily(from, text);
  return told === 'ascii' ? (showing ?? told) : told;
}

/** The one that shows what is known; undefined if none does for sure. */
async function familyShowing(
  known: Buffer,
  { text, encoding }: Pick<Asked, 'text' | 'encoding'>,
): Promise<Family | 'ascii' | undefined> {
  const read = async (start: number, end: number) => known.subarray(start, end);
  const found = await match(text.fork(), { read }, { from: 0, to: known.length });
  if (found.kind !== 'different') {
    const shown = found.kind === 'same' ? known : known.subarray(0, found.at);
    if (isAscii(shown)) return 'ascii';
    // A byte in which it ends may be the beginning of a character, or all of one.
    return isAscii(Buffer.from(new StringDecoder('utf8').write(shown))) ? undefined : 'utf-8';
  }
  return encoding.codePagesShowing(known, await text.text()).length > 0 ? 'code-page' : undefined;
}

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
