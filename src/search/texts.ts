/**
 * Which texts a pattern needs, and where one of them stands. An expression runs only on lines with such a text: it is
 * a hundred times as slow as the search for texts.
 */

/** A class, an escape sequence, the begin of a group, a quantifier, or one character. */
const PART =
  /\[(?:[^\]\\]|\\.)*\]|\\(?:x..|u\{[^}]*\}|u....|c.|k<[^>]*>|[pP]\{[^}]*\}|\d+|.)|\((?:\?(?:<?[=!]|<\w+>|[\w-]*:))?|\{[^}]*\}|./gsu;

/** Each match has one of these texts; empty if the pattern does not need any. */
type Texts = readonly string[];

interface Needed {
  readonly texts: Texts;
  /** Whether each line with the text matches: the pattern is nothing but the text. */
  readonly isWhole: boolean;
}

/** `source`: of a regular expression that is valid. */
export function textsIn(source: string, ignoreCase: boolean): Needed {
  const parts = source.match(PART) ?? [];
  const texts = alternatives(parts.values(), ignoreCase);
  return {
    texts,
    isWhole: parts.every((part) => textOf(part) !== undefined) && (texts[0] ?? '') === parts.map(textOf).join(''),
  };
}

/** Reads up to the end of a group. */
function alternatives(parts: ArrayIterator<string>, ignoreCase: boolean): Texts {
  const ofAll: Texts[] = [];
  let best: Texts = [];
  let run = '';
  let last: Texts = [];
  const use = (texts: Texts) => {
    if (shortest(texts) > shortest(best)) best = texts;
  };
  const endRun = () => {
    use(run === '' ? [] : [run]);
    run = '';
  };
  const end = () => {
    use(last);
    endRun();
    ofAll.push(best);
    best = [];
    last = [];
  };
  for (const part of parts) {
    if (part === ')') break;
    if (part === '|') {
      end();
      continue;
    }
    // These make what stands before them optional.
    if (/^[*?]|^\{0+[,}]/.test(part)) {
      run = last.length > 0 ? run : [...run].slice(0, -1).join('');
      last = [];
      endRun();
      continue;
    }
    use(last);
    last = [];
    const text = textOf(part);
    if (text !== undefined && !(ignoreCase && /\P{ASCII}/u.test(text))) {
      run += text;
      continue;
    }
    endRun();
    if (!part.startsWith('(')) continue;
    const inside = alternatives(parts, ignoreCase);
    // What a group looks at is no part of the match; one with flags of its own may ignore case.
    if (!/[=!]$|\w:$/.test(part)) last = inside;
  }
  end();
  return ofAll.some((texts) => texts.length === 0) ? [] : ofAll.flat();
}

const shortest = (texts: Texts) => (texts.length === 0 ? 0 : Math.min(...texts.map(({ length }) => length)));

/** The literal character of a part of a pattern; undefined for an operator. */
function textOf(part: string): string | undefined {
  if (/^\\[^A-Za-z0-9]$/u.test(part)) return part.slice(1);
  return /^[\\[\](){}|*+?.^$\n]/.test(part) ? undefined : part;
}

/** Bytes that are looked at together. */
const BLOCK = 3;

/**
 * Finds the first of several texts, whatever the case of their letters of ASCII. It looks at three bytes that a text of
 * the minimum length would end with, and skips as many bytes as no text can end within (Wu and Manber, 1994). The tables
 * are by a hash of folded bytes, so texts are compared at last.
 */
export class TextsFinder {
  readonly #minBytes: number;
  /** By the hash of a block: how far the next place is where a text may end. */
  readonly #skips: Uint8Array;
  /** By the hash of the last block of their minimum length. */
  readonly #texts = new Map<number, Uint8Array[]>();

  constructor(texts: Texts) {
    const needed = texts.filter((text) => !texts.some((other) => other !== text && text.includes(other)));
    const lower = needed.map((text) => Buffer.from(text).map(lowerOf));
    this.#minBytes = Math.min(255, ...lower.map(({ length }) => length));
    this.#skips = new Uint8Array(0x10000).fill(Math.max(1, this.#minBytes - BLOCK + 1));
    for (const text of lower) {
      for (let at = 0; at <= this.#minBytes - BLOCK; at++) {
        const hash = hashAt(text, at);
        this.#skips[hash] = Math.min(this.#skips[hash] ?? 0, this.#minBytes - BLOCK - at);
      }
      const hash = hashAt(text, this.#minBytes - BLOCK);
      this.#texts.set(hash, [...(this.#texts.get(hash) ?? []), text]);
    }
  }

  /** Shorter texts cannot be found. */
  get canFind(): boolean {
    return this.#minBytes >= BLOCK;
  }

  /** The offset of the first text at or after `from`; -1 if there is none. */
  find(bytes: Uint8Array, from: number): number {
    const skips = this.#skips;
    const toBlock = this.#minBytes - BLOCK;
    const end = bytes.length - BLOCK;
    for (let at = from + toBlock; at <= end; ) {
      // Written out, this takes half of the time of a call.
      const hash = ((bytes[at] ?? 0) | 32) ^ (((bytes[at + 1] ?? 0) | 32) << 4) ^ (((bytes[at + 2] ?? 0) | 32) << 8);
      const skip = skips[hash] ?? 1;
      if (skip > 0) at += skip;
      else {
        const start = at - toBlock;
        if (this.#texts.get(hash)?.some((text) => isAt(bytes, start, text))) return start;
        at += 1;
      }
    }
    return -1;
  }
}

/** Of a block, in which a letter has one case; at most 15 bits for bytes of ASCII. */
const hashAt = (bytes: Uint8Array, at: number) =>
  ((bytes[at] ?? 0) | 32) ^ (((bytes[at + 1] ?? 0) | 32) << 4) ^ (((bytes[at + 2] ?? 0) | 32) << 8);

const lowerOf = (byte: number) => (byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte);

function isAt(bytes: Uint8Array, start: number, text: Uint8Array): boolean {
  for (let at = 0; at < text.length; at++) if (lowerOf(bytes[start + at] ?? 0) !== text[at]) return false;
  return true;
}
