/**
 * Whether two answers may show the same bytes, wherever block edges fall into each (docs/servers.md 1.2): around bytes
 * that are none of UTF-8, one of them may have characters whole that the other has cut, and the other way round.
 */
import { REPLACEMENT_CHARACTER } from '../../../bytes.ts';
import type { Answer } from '../steps.ts';
import { WITHIN_BLOCK_BYTES } from '../text/blocks.ts';
import { MOST_BYTES_A_REPLACEMENT } from './replacements.ts';

/** Characters that are compared, and replacement characters in a row of which no more are counted. */
const MOST_CHARACTERS = 512;
const MOST_IN_A_ROW = 8;

/** A character that an answer shows. */
interface Shown {
  readonly character: string;
  /** It stands for bytes that were not decoded: none that are a character, or one that a block edge cut (`mayBeCut`). */
  readonly replaced: boolean;
  readonly mayBeCut: boolean;
}

/**
 * An answer, and the position in the file at which its reading stands, in bytes; or at which the `replaced` replacement
 * characters begin behind which it stands.
 */
interface Standing {
  readonly answer: Answer;
  readonly at: number;
  readonly replaced?: number;
}

/** How a place in two answers was come to; of several ways, the one that tells more counts. */
const UNTOLD = 1;
/** Behind what a block edge may have cut, if anything, at least one character is the same. */
const TOLD = 2;

/**
 * Whether a `later` answer goes on like an `earlier` one behind the undecodable bytes within which each of them stands,
 * and a character says so: to their end, as far as both are in sight, or to where the earlier one ended.
 */
export async function mayShowSameBytes(later: Standing, earlier: Standing): Promise<boolean> {
  return hold(await shownBy(later), await shownBy(earlier)) === TOLD;
}

/** Whether two go on alike to their end; of undecodable bytes at the end, neither says more than that they are there. */
export async function mayEndInSameBytes(one: Standing, other: Standing): Promise<boolean> {
  const [a, b] = [await shownBy(one), await shownBy(other)];
  return hold(a, b) !== undefined && hold(b, a) !== undefined;
}

/**
 * Holds what two answers show against each other; undefined if it cannot be of the same bytes. What one shows as a
 * character, the other shows as the same one, or cut, as two U+FFFD at least; what one could not decode, the other could
 * not either, but may show it by more of them or fewer.
 */
function hold(later: Sight, earlier: Sight): typeof TOLD | typeof UNTOLD | undefined {
  const [a, b] = [later.characters, earlier.characters];
  const says = b.some(({ replaced }) => !replaced);
  // For each number of characters of the later one: to which numbers of the earlier one they may go.
  const rows = Array.from({ length: a.length + 1 }, () => new Uint8Array(b.length + 1));
  const come = (i: number, j: number, how: number) => {
    const row = rows[i];
    if (row !== undefined && j <= b.length) row[j] = Math.max(row[j] ?? 0, how);
  };
  come(0, 0, UNTOLD);
  let found: typeof UNTOLD | undefined;
  for (let i = 0; i <= a.length; i++) {
    for (let j = 0; j <= b.length; j++) {
      const how = rows[i]?.[j] ?? 0;
      if (how === 0) continue;
      const isEnd = i === a.length && (j === b.length || !later.whole);
      if (isEnd || (j === b.length && (says || !earlier.whole))) {
        if (how === TOLD) return TOLD;
        found = UNTOLD;
      }
      if (a[i]?.character === b[j]?.character) come(i + 1, j + 1, a[i]?.replaced === true ? how : TOLD);
      if (goesOnReplaced(a, i)) come(i + 1, j, how);
      if (goesOnReplaced(b, j)) come(i, j + 1, how);
      if (isBeyondAscii(a[i]) && isCut(b, j)) come(i + 1, j + 2, UNTOLD);
      if (isBeyondAscii(b[j]) && isCut(a, i)) come(i + 2, j + 1, UNTOLD);
    }
  }
  return found;
}

/** Whether one more U+FFFD may stand for what the one before it stands for; each answer begins within such bytes. */
const goesOnReplaced = (shown: readonly Shown[], at: number) =>
  shown[at]?.replaced === true && (at === 0 || shown[at - 1]?.replaced === true);

const isCut = (shown: readonly Shown[], at: number) => shown[at]?.mayBeCut === true && shown[at + 1]?.mayBeCut === true;

const isBeyondAscii = (shown?: Shown) => shown !== undefined && !shown.replaced && shown.character > '\x7f';

/** What an answer shows, as far as it is compared; nothing follows if that is `whole`. */
interface Sight {
  readonly characters: readonly Shown[];
  readonly whole: boolean;
}

async function shownBy({ answer, at, replaced = 0 }: Standing): Promise<Sight> {
  const rest = answer.reading.fork();
  const replacedFirst = replaced + (await rest.skipUncertain());
  const text = await rest.text();
  const whole = rest.remaining() <= Buffer.byteLength(text);
  const characters: Shown[] = [];
  // Bytes from where the answer was asked for, at most: its blocks are counted from there.
  let most = at - answer.offset;
  const showReplaced = (count: number) => {
    most += count * MOST_BYTES_A_REPLACEMENT;
    const shown = { character: REPLACEMENT_CHARACTER, replaced: true, mayBeCut: most >= WITHIN_BLOCK_BYTES };
    characters.push(...Array<Shown>(Math.min(count, MOST_IN_A_ROW)).fill(shown));
  };
  showReplaced(replacedFirst);
  for (const [character] of text.matchAll(/\ufffd+|[^\ufffd]/gu)) {
    if (characters.length >= MOST_CHARACTERS) return { characters, whole: false };
    if (character.startsWith(REPLACEMENT_CHARACTER)) showReplaced(character.length);
    else {
      characters.push({ character, replaced: false, mayBeCut: false });
      most += Buffer.byteLength(character);
    }
  }
  return { characters, whole };
}
