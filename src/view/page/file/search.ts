/** A search over a whole content: the server runs it and reports its progress. */
import { computed, type Signal, signal } from '@preact/signals';
import { literal } from '../../../quick-pattern.ts';
import type { ContentQuery, SearchLine } from '../../contract/addresses.ts';
import { address, askLines, type RefusedByView } from '../api.ts';
import { decode, plainLine } from '../text/terminal.ts';
import type { WindowRow } from './text-window.ts';

export interface TextQuery {
  readonly text: string;
  readonly matchesCase: boolean;
  readonly regex: boolean;
  /** The lines that look like errors, instead of a text. */
  readonly errors?: boolean;
}

export interface Found {
  readonly count: number;
  /** Bytes looked through, of so many; up to `of`, all is counted once it is done. */
  readonly searched: number;
  readonly of: number;
  readonly isDone: boolean;
  /** Why not everything was looked through, or why the search failed. */
  readonly problem: string | undefined;
}

export type ShownMatch = readonly [byte: number, length: number];

/** Where the first match is shown: from a byte on, or before it. */
interface Near {
  readonly byte: number;
  readonly isBack: boolean;
}

const NOTHING: Found = { count: 0, searched: 0, of: 0, isDone: false, problem: undefined };
/** Delay while the user types, in milliseconds. */
const PAUSE_MS = 150;
/** What comes is gathered for so long before it is looked through. */
const GATHER_MS = 1_000;
/** Longer than any text that is looked for: what the end of the content cut is whole in it. */
const OVERLAP_BYTES = 2_048;
/** Reported matches: of what arrived, and of all. */
const MAX_LISTED = 10_000;
/** Backwards, so many bytes are looked through first, then more and more. */
const BACK_BYTES = 8 * 1024;

export class Search {
  readonly query: Signal<TextQuery> = signal({ text: '', matchesCase: false, regex: false });
  /** As it is found in shown text; undefined for regular expressions, which the server runs. */
  readonly #needle = computed(() => needleOf(this.query.value));
  readonly found: Signal<Found | undefined> = signal(undefined);
  /** Where the shown match starts and how long it is. */
  readonly current: Signal<ShownMatch | undefined> = signal(undefined);
  readonly #content: () => ContentQuery;
  /** The reported matches, in order. */
  #reported: ShownMatch[] = [];
  #isRunning = false;
  #running = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** The last step: the next one begins where it leads. */
  #stepped: Promise<void> = Promise.resolve();

  constructor(content: () => ContentQuery) {
    this.#content = content;
  }

  /** Searches for something else, and shows the first match from the byte `near` on, or the last one before it. */
  start(query: TextQuery, near: number, isBack = false): void {
    this.forget();
    this.query.value = query;
    if (isEmpty(query)) return;
    this.found.value = NOTHING;
    this.#runLater(PAUSE_MS, { byte: near, isBack });
  }

  /** Ends the search; what was found is no more. */
  forget(): void {
    this.stop();
    this.current.value = undefined;
    this.#reported = [];
    this.found.value = undefined;
  }

  /** The content is so long by now: what came is looked through, too. */
  grow(bytes: number): void {
    const { of, problem } = this.found.value ?? { ...NOTHING, of: bytes };
    if (!this.#isRunning && problem === undefined && bytes > of) this.#runLater(GATHER_MS);
  }

  stop(): void {
    this.#isRunning = false;
    clearTimeout(this.#timer);
    this.#running.abort();
    this.#running = new AbortController();
  }

  /** The number of the shown match, from 0; undefined if it is not among the reported ones. */
  get place(): number | undefined {
    const index = this.#reported.findIndex(([byte]) => byte === this.current.value?.[0]);
    return index < 0 ? undefined : index;
  }

  /** Shows the match after the shown one or a byte, or the one before; after that of an end, the other one follows. */
  step(isBack: boolean, from: number): Promise<void> {
    const { signal } = this.#running;
    const stepped = this.#stepped.then(() => (signal.aborted ? undefined : this.#step(isBack, from)));
    this.#stepped = stepped.catch(() => undefined);
    return stepped;
  }

  async #step(isBack: boolean, from: number): Promise<void> {
    const shown = this.current.value;
    const [at, length] = shown ?? [from, 0];
    const match = isBack
      ? await this.#previous(at)
      : // The search itself shows the first match.
        ((await this.#next(at + length)) ?? (shown && this.#reported[0]));
    // Another object, so that one that is shown already is shown again.
    if (match !== undefined) this.current.value = [match[0], match[1]];
  }

  /** What is marked in a row: of a regular expression, the reported matches. */
  needleIn({ shownFrom, bytes }: Pick<WindowRow, 'shownFrom' | 'bytes'>): RegExp | undefined {
    const { regex, errors } = this.query.value;
    if (!regex && errors !== true) return this.#needle.value;
    const matched = this.#reported
      .filter(([byte]) => byte >= shownFrom && byte < shownFrom + bytes.length)
      .map(([byte, length]) => decode(bytes.subarray(byte - shownFrom, byte - shownFrom + length)))
      // As a terminal shows it, and with its control characters.
      .flatMap((text) => [text, plainLine(text)]);
    return matched.length === 0 ? undefined : new RegExp([...new Set(matched)].map(literal).join('|'), 'gu');
  }

  /** The first one that begins at a byte or after it: a reported one if it can be, else the server finds it. */
  async #next(at: number): Promise<ShownMatch | undefined> {
    const all = this.#reported;
    const { isDone = false, count = 0 } = this.found.value ?? {};
    const reported = all.find(([byte]) => byte >= at);
    if (reported !== undefined || (isDone && all.length === count)) return reported;
    for await (const line of this.#ask({ from: at, max: 1 })) if ('at' in line) return line.at[0];
    return undefined;
  }

  /** The last one that begins before a byte; before the first one, the last of all, once that is known. */
  async #previous(at: number): Promise<ShownMatch | undefined> {
    const all = this.#reported;
    const { isDone = false, count = 0, of = 0 } = this.found.value ?? {};
    const last = all.at(-1);
    const reported = all.findLast(([byte]) => byte < at);
    if (isDone && all.length === count) return reported ?? last;
    // Others may lie behind the reported ones alone.
    if (reported !== last && (reported !== undefined || !isDone)) return reported;
    return (await this.#lastWithin(last === undefined ? 0 : last[0] + last[1], reported === last ? at : of)) ?? last;
  }

  /** The last one that begins in these bytes. */
  async #lastWithin(from: number, to: number): Promise<ShownMatch | undefined> {
    for (let bytes = BACK_BYTES; ; bytes *= 4) {
      const begin = Math.max(from, to - bytes);
      let found: ShownMatch | undefined;
      for await (const line of this.#ask({ from: begin })) {
        if ('at' in line) found = line.at.findLast(([byte]) => byte < to) ?? found;
        else if ('done' in line || line.searched >= to) break;
      }
      if (found !== undefined || begin === from) return found;
    }
  }

  #ask(where: object): AsyncGenerator<SearchLine> {
    const { text, matchesCase, regex, errors } = this.query.value;
    const flags = { case: matchesCase ? '1' : undefined, regex: regex ? '1' : undefined };
    const to = address('search', {
      ...this.#content(),
      ...(errors === true ? { errors: '1' } : { text, ...flags }),
      ...where,
    });
    return askLines<SearchLine>(to, this.#running.signal);
  }

  #runLater(ms: number, near?: Near): void {
    this.#isRunning = true;
    this.#timer = setTimeout(() => void this.#run(near), ms);
  }

  /** Takes what is found behind what is known; without `near`, that shows nothing else. */
  async #run(near: Near | undefined): Promise<void> {
    const { signal } = this.#running;
    const { count: known, of } = this.found.value ?? NOTHING;
    const [at, length] = this.#reported.at(-1) ?? [0, 0];
    const from = known > this.#reported.length ? of : Math.max(at + length, of - OVERLAP_BYTES);
    let end: Partial<Found> | undefined;
    try {
      for await (const line of this.#ask({ from })) if (!signal.aborted) end = this.#take(line, known, near);
    } catch (error) {
      const { retryAfterMs } = error as Partial<RefusedByView>;
      if (retryAfterMs !== undefined && !signal.aborted) return this.#runLater(retryAfterMs, near);
      // What is asked again as the content grows may fail now: it was rewritten, or the server is busy.
      if (near !== undefined) end = { isDone: true, problem: (error as Error).message };
    }
    if (signal.aborted) return;
    this.#isRunning = false;
    // What came meanwhile is asked for by those who see this.
    if (end !== undefined) this.#set(end);
    if (near === undefined || this.current.value !== undefined) return;
    const match = await this.#nearest(near).catch(() => undefined);
    if (!signal.aborted) this.current.value ??= match;
  }

  async #nearest({ byte, isBack }: Near): Promise<ShownMatch | undefined> {
    return (isBack ? undefined : await this.#next(byte)) ?? (await this.#previous(byte));
  }

  /** Returns how the search ended, if this is its last line. */
  #take(line: SearchLine, known: number, near: Near | undefined): Partial<Found> | undefined {
    const isLast = 'done' in line;
    if ('at' in line) this.#reported.push(...line.at.slice(0, MAX_LISTED - this.#reported.length));
    else if (!isLast) {
      const { searched } = line;
      this.#set({ count: known + line.count, searched, of: near === undefined ? searched : line.of });
    }
    if (near?.isBack === false) this.current.value ??= this.#reported.find(([byte]) => byte >= near.byte);
    return isLast ? { count: known + line.count, isDone: true, problem: line.cut } : undefined;
  }

  #set(change: Partial<Found>): void {
    this.found.value = { ...(this.found.value ?? NOTHING), ...change };
  }
}

const isEmpty = ({ text, errors }: TextQuery) => text === '' && errors !== true;

function needleOf({ text, matchesCase, regex }: TextQuery): RegExp | undefined {
  return text === '' || regex ? undefined : new RegExp(literal(text), matchesCase ? 'gu' : 'giu');
}
