/**
 * Counts the steps of a backtracking search, as the expressions of JavaScript are searched for: what takes more than a
 * number of steps that grows with the text, a hostile text makes as slow as it likes. No clock, so that it means the same on
 * every machine.
 */

type Node =
  | { readonly kind: 'char'; readonly test: (character: string) => boolean; readonly sample: string }
  | { readonly kind: 'sequence'; readonly parts: readonly Node[] }
  | { readonly kind: 'choice'; readonly ways: readonly Node[] }
  | { readonly kind: 'repeat'; readonly of: Node; readonly min: number; readonly max: number; readonly isLazy: boolean }
  | { readonly kind: 'look'; readonly of: Node; readonly isBehind: boolean; readonly isNot: boolean }
  | { readonly kind: 'edge'; readonly test: (text: string, at: number) => boolean };

const SAMPLES = [...'a0 .-_,:;/\\"\'=<>()[]{}eZ@#%+&?!*|~$^`\t\r\n\u001b\0é\u202e\u2028\ud800', '💥'];
const MAX_STEPS = 50_000;

class Parser {
  readonly #source: string;
  readonly #flags: string;
  #at = 0;

  constructor({ source, flags }: RegExp) {
    this.#source = source;
    this.#flags = flags.replace(/[gy]/g, '');
  }

  whole(): Node {
    const node = this.#choice();
    if (this.#at < this.#source.length) throw new Error(`${this.#source}: not understood at ${this.#at}`);
    return node;
  }

  #takes(text: string): boolean {
    if (!this.#source.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  #choice(): Node {
    const ways = [this.#sequence()];
    while (this.#takes('|')) ways.push(this.#sequence());
    return ways.length === 1 && ways[0] !== undefined ? ways[0] : { kind: 'choice', ways };
  }

  #sequence(): Node {
    const parts: Node[] = [];
    while (this.#at < this.#source.length && !/[|)]/.test(this.#source[this.#at] ?? '')) parts.push(this.#repeat());
    return { kind: 'sequence', parts };
  }

  #repeat(): Node {
    const of = this.#atom();
    const [whole = '', sign = '', least, comma, most] =
      /^(?:([*+?])|\{([0-9]+)(,?)([0-9]*)\})/.exec(this.#source.slice(this.#at)) ?? [];
    if (whole === '') return of;
    this.#at += whole.length;
    const min = sign === '' ? Number(least) : sign === '+' ? 1 : 0;
    const endless = sign === '*' || sign === '+' || (comma === ',' && most === '');
    const max = endless ? Number.POSITIVE_INFINITY : sign === '?' ? 1 : Number(comma === ',' ? most : least);
    return { kind: 'repeat', of, min, max, isLazy: this.#takes('?') };
  }

  #atom(): Node {
    if (this.#takes('(')) {
      const [mark = ''] = /^\?(?:[:=!]|<[=!]|<[A-Za-z]+>)/.exec(this.#source.slice(this.#at)) ?? [];
      this.#at += mark.length;
      const of = this.#choice();
      if (!this.#takes(')')) throw new Error(`${this.#source}: a group without an end`);
      return /^\?<?[=!]/.test(mark)
        ? { kind: 'look', of, isBehind: mark.startsWith('?<'), isNot: mark.endsWith('!') }
        : of;
    }
    const isMultiline = this.#flags.includes('m');
    if (this.#takes('^'))
      return { kind: 'edge', test: (text, at) => at === 0 || (isMultiline && text[at - 1] === '\n') };
    if (this.#takes('$'))
      return { kind: 'edge', test: (text, at) => at === text.length || (isMultiline && text[at] === '\n') };
    const [, edge] = /^\\([bB])/.exec(this.#source.slice(this.#at)) ?? [];
    if (edge !== undefined) {
      this.#at += 2;
      const isWord = (character: string | undefined) => character !== undefined && /\w/.test(character);
      return { kind: 'edge', test: (text, at) => (isWord(text[at - 1]) !== isWord(text[at])) === (edge === 'b') };
    }
    const [one = ''] =
      /^(?:\[(?:\\.|[^\]\\])*\]|\\(?:[pP]\{[^}]*\}|u\{[^}]*\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|c[A-Z]|.)|.)/su.exec(
        this.#source.slice(this.#at),
      ) ?? [];
    if (/^\\[1-9k]/.test(one)) throw new Error(`${this.#source}: a reference back is not understood`);
    this.#at += one.length;
    const expression = new RegExp(`^${one}$`, this.#flags);
    const known = new Map<string, boolean>();
    const test = (character: string) => {
      const found = known.get(character) ?? expression.test(character);
      known.set(character, found);
      return found;
    };
    const literal = one.length === 1 ? one : undefined;
    return { kind: 'char', test, sample: literal ?? SAMPLES.find((each) => test(each)) ?? '' };
  }
}

class Enough extends Error {}

/** Steps of a search through the text that finds no match, or all that there are. */
function stepsOf(node: Node, text: string, isSticky: boolean): number {
  let steps = 0;
  const match = (part: Node, at: number, then: (at: number) => boolean): boolean => {
    if (++steps > MAX_STEPS) throw new Enough();
    switch (part.kind) {
      case 'char': {
        const character = text[at];
        return character !== undefined && part.test(character) && then(at + 1);
      }
      case 'sequence': {
        const from = (index: number, here: number): boolean => {
          const next = part.parts[index];
          return next === undefined ? then(here) : match(next, here, (end) => from(index + 1, end));
        };
        return from(0, at);
      }
      case 'choice':
        return part.ways.some((way) => match(way, at, then));
      case 'edge':
        return part.test(text, at) && then(at);
      case 'look': {
        const isThere = part.isBehind
          ? // What looks behind is short here: each beginning is tried.
            Array.from({ length: Math.min(at, 8) + 1 }, (_, back) => at - back).some((start) =>
              match(part.of, start, (end) => end === at),
            )
          : match(part.of, at, () => true);
        return isThere !== part.isNot && then(at);
      }
      case 'repeat': {
        const more = (count: number, here: number): boolean => {
          const again = () =>
            count < part.max && match(part.of, here, (end) => (end > here || count < part.min) && more(count + 1, end));
          if (count < part.min) return again();
          return part.isLazy ? then(here) || again() : again() || then(here);
        };
        return more(0, at);
      }
    }
  };
  try {
    for (let at = 0; at <= (isSticky ? 0 : text.length); at++) {
      let end = at;
      const isFound = match(node, at, (found) => {
        end = found;
        return true;
      });
      if (isFound && end > at) at = end - 1;
    }
  } catch (error) {
    if (!(error instanceof Enough)) throw error;
  }
  return steps;
}

/** The shortest text that it might match. */
function write(part: Node): string {
  switch (part.kind) {
    case 'char':
      return part.sample;
    case 'sequence':
      return part.parts.map(write).join('');
    case 'choice':
      return part.ways[0] === undefined ? '' : write(part.ways[0]);
    case 'repeat':
      return write(part.of).repeat(Math.max(part.min, part.max > 0 ? 1 : 0));
    default:
      return '';
  }
}

/** Beginnings of a text that it might match. */
function beginnings(node: Node): string[] {
  const whole = write(node).slice(0, 24);
  return [...new Set([0, 1, 2, 4, 8, 16, 24].map((length) => whole.slice(0, length)))];
}

/** A node with all that are in it. */
function within(node: Node): Node[] {
  if (node.kind === 'sequence') return [node, ...node.parts.flatMap(within)];
  if (node.kind === 'choice') return [node, ...node.ways.flatMap(within)];
  return node.kind === 'repeat' || node.kind === 'look' ? [node, ...within(node.of)] : [node];
}

const charsIn = (node: Node): string[] =>
  within(node).flatMap((each) =>
    each.kind === 'char'
      ? [...SAMPLES.filter((one) => one.length === 1 && each.test(one)).slice(0, 2), each.sample]
      : [],
  );

/** What is repeated without an end, by the shortest text of it. */
const endlessIn = (node: Node): string[] =>
  within(node).flatMap((each) => (each.kind === 'repeat' && each.max > 64 ? [write(each.of)] : []));

const [SHORT, LONG] = [34, 68];
/** What may keep the text before it from being a match. */
const ENDS = ['', '\u0001', '_', '\u0001a'];

/** A text, repeated, for which the steps grow faster than it does; undefined if none of those tried is. */
export function attackOn(expression: RegExp): string | undefined {
  const node = new Parser(expression).whole();
  const repeated = endlessIn(node);
  if (repeated.length === 0) return undefined;
  const characters = [...new Set(charsIn(node))].filter((each) => each !== '').slice(0, 6);
  const pumps = characters.flatMap((one) => [
    one,
    ...characters.filter((other) => other !== one).map((other) => one + other),
  ]);
  pumps.push(...repeated.filter((one) => one.length > 1));
  for (const begin of beginnings(node)) {
    for (const pump of pumps) {
      for (const end of ENDS) {
        const [short, long] = [SHORT, LONG].map((times) =>
          stepsOf(node, begin + pump.repeat(times) + end, expression.sticky),
        ) as [number, number];
        if (long > MAX_STEPS || (long > 2.7 * short && long > 1_000)) return JSON.stringify(`${begin}(${pump})*${end}`);
      }
    }
  }
  return undefined;
}
