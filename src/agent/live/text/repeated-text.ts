/**
 * Texts in which what follows their beginning does not tell whether a mark of three bytes was swallowed before it: of
 * undecodable bytes nothing is known but where they end, and one character of three bytes again and again looks the same
 * from three bytes further on, so only where these characters end tells.
 */
import { BYTE_ORDER_MARK, standsAt, startsAlike, widthOfLead } from '../../../bytes.ts';
import type { Content } from '../../ports.ts';
import { endTogether } from '../compare/alike.ts';
import { WITHIN_BLOCK_BYTES } from './blocks.ts';
import { Utf8Reading } from './reading.ts';

const STEP_BYTES = 64 * 1024;
/** Of these characters, behind a mark or not, so many are in the first block. */
const BEFORE_EDGE_BYTES = 1_017;

/** The first characters that are alike, and what comes behind them. */
interface Beginning {
  /** Of these characters, all certain. */
  readonly bytes: number;
  /** U+FFFD that follow them; 0 if something certain does, or nothing. */
  readonly uncertain: number;
  /** What is certain behind these; empty if nothing is. */
  readonly rest: Buffer;
  /** Nothing follows. */
  readonly isEnd: boolean;
}

/**
 * Whether a mark was swallowed before `text`; `found` is what is shown from `at` bytes further on, 1 or 3, of the file
 * as it was then. Undefined if that cannot be told.
 */
export async function tellByRepetition(
  text: Content,
  found: Content,
  at: number,
): Promise<'none' | 'swallowed' | undefined> {
  const character = await text.read(0, BYTE_ORDER_MARK.length);
  const width = widthOfLead(character[0] ?? 0);
  if (width !== BYTE_ORDER_MARK.length) return at === 1 ? byEnds(text, found, width) : undefined;
  const before = await beginningOf(new Utf8Reading(text), character);
  const behindCut = new Utf8Reading(found);
  await behindCut.skipUncertain(width - at);
  const behind = await beginningOf(behindCut, character);
  if (before.uncertain > 0 && behind.uncertain > 0) {
    const further = at === 1 ? ahead(before, behind) : undefined;
    return further === undefined ? undefined : byPlace(before.bytes - further * width, behind.bytes);
  }
  const told = byPlace(before.bytes, behind.bytes);
  if (before.uncertain === 0 && behind.uncertain === 0) return before.isEnd === behind.isEnd ? told : undefined;
  // Uncertain in one of them alone: a block edge cut what follows, or the last of these characters.
  if (before.uncertain === 0) return told === 'swallowed' ? told : undefined;
  if (told !== 'swallowed' || behind.isEnd) return told;
  return byWhatFollows(before.rest, behind.rest);
}

/** By where the same place lies in the text, and behind the character or the mark that the question cut. */
function byPlace(inText: number, behindCut: number): 'none' | 'swallowed' | undefined {
  const inFile = BYTE_ORDER_MARK.length + behindCut;
  if (inFile === inText) return 'none';
  return inFile === inText + BYTE_ORDER_MARK.length ? 'swallowed' : undefined;
}

/** Whether both end together: then what follows the beginning of the file is the same. */
async function byEnds(text: Content, found: Content, width: number): Promise<'none' | 'swallowed' | undefined> {
  const straight = await endTogether(new Utf8Reading(text, width), new Utf8Reading(found));
  const shifted = await endTogether(new Utf8Reading(text), new Utf8Reading(found));
  if (straight === shifted) return undefined;
  return straight ? 'none' : 'swallowed';
}

async function beginningOf(reading: Utf8Reading, character: Buffer): Promise<Beginning> {
  let bytes = 0;
  for (let follows = await reading.peek(STEP_BYTES); standsAt(follows, 0, character); ) {
    let at = 0;
    while (standsAt(follows, at, character)) at += character.length;
    bytes += at;
    reading.advance(at);
    follows = await reading.peek(STEP_BYTES);
  }
  const uncertain = await reading.skipUncertain();
  const rest = Buffer.from(await reading.peek(WITHIN_BLOCK_BYTES));
  return { bytes, uncertain, rest, isEnd: reading.atEnd() };
}

/**
 * How many characters further on the text is uncertain than what was found; undefined if that cannot be told. Block edges
 * in the two are one byte apart: mostly they cut the same character. Where only one of them cuts the last one before
 * undecodable bytes, it shows more of these: two U+FFFD or three, by the decoder, and three for a first byte alone.
 */
function ahead(text: Beginning, found: Beginning): number | undefined {
  if (text.isEnd !== found.isEnd) return undefined;
  if (text.bytes < BEFORE_EDGE_BYTES && found.bytes < BEFORE_EDGE_BYTES) return 0;
  const more = text.uncertain - found.uncertain;
  // That an edge falls among undecodable bytes makes less of a difference.
  if (more >= -2 && more <= 1) return 0;
  if (!text.isEnd) return undefined;
  return more === 2 || more === 3 ? -1 : more === -3 ? 1 : undefined;
}

/** In the text, an edge cut one character: the last of those that are alike, or, behind a mark, the one that follows them. */
function byWhatFollows(ofText: Buffer, behindThem: Buffer): 'none' | 'swallowed' | undefined {
  const width = widthOfLead(behindThem[0] ?? 0);
  // Undecodable bytes may follow it, and be among what is uncertain in the text.
  if (behindThem.length <= width || ofText.length === 0) return undefined;
  const isLast = startsAlike(ofText, behindThem);
  const isNext = startsAlike(ofText, behindThem.subarray(width));
  return isLast === isNext ? undefined : isLast ? 'none' : 'swallowed';
}
