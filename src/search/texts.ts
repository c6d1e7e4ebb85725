/** Which texts a pattern needs: an expression runs only on lines with such a text, which are found much faster. */

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
    if (!/[=!]|\w:/.test(part)) last = inside;
  }
  end();
  return ofAll.some((texts) => texts.length === 0) ? [] : ofAll.flat();
}

const shortest = (texts: Texts) => (texts.length === 0 ? 0 : Math.min(...texts.map(({ length }) => length)));

/** The literal character of a part of a pattern; undefined for an operator. */
function textOf(part: string): string | undefined {
  if (/^\\[^A-Za-z0-9]/u.test(part)) return part.slice(1);
  return /[\\[\](){}|*+?.^$\n]/.test(part) ? undefined : part;
}
