/** A search over a whole content: the server runs it and reports its progress. */
import { computed, type Signal, signal } from '@preact/signals';
import type { ContentQuery, SearchLine } from '../../contract/addresses.ts';
import { address, askLines } from '../api.ts';
import { decode } from '../text/terminal.ts';

export interface Query {
  readonly text: string;
  readonly matchesCase: boolean;
  readonly word: boolean;
  readonly regex: boolean;
}

export interface Found {
  readonly count: number;
  /** Bytes looked through, of so many. */
  readonly searched: number;
  readonly of: number;
  readonly isDone: boolean;
  /** Why not everything was looked through, or why the search failed. */
  readonly problem: string | undefined;
  /** How many matches are in each part of the content, all parts equally long. */
  readonly marks: readonly number[];
}

type Match = readonly [byte: number, length: number];

const NOTHING: Found = { count: 0, searched: 0, of: 0, isDone: false, problem: undefined, marks: [] };
/** Delay while the user types, in milliseconds. */
const PAUSE_MS = 150;
/** What comes is gathered for so long before it is looked through. */
const GATHER_MS = 1_000;
/** Longer than any text that is looked for: what the end of the content cut is whole in it. */
const OVERLAP_BYTES = 2_048;
/** Reported matches: of what arrived, and of all. */
const MAX_LISTED = 10_000;

export class Search {
  readonly query: Signal<Query> = signal({ text: '', matchesCase: false, word: false, regex: false });
  /**
   * What is looked for, as it is found in text that is shown; undefined for regular expressions, which the server runs.
   */
  readonly #needle = computed(() => needleOf(this.query.value));
  readonly found: Signal<Found | undefined> = signal(undefined);
  /** Where the shown match starts, and its number from 0, if it is among the reported ones. */
  readonly current: Signal<{ readonly byte: number; readonly index: number | undefined } | undefined> =
    signal(undefined);
  readonly #content: () => ContentQuery;
  /** The reported matches, in order. */
  #reported: Match[] = [];
  /** Up to here everything is counted. */
  #to = 0;
  #isGathering = false;
  #running = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(content: () => ContentQuery) {
    this.#content = content;
  }

  /** StreamTopics for something else; `near` is the byte from which on the first match is shown. */
  start(query: Query, near: number): void {
    this.stop();
    this.query.value = query;
    this.current.value = undefined;
    this.#reported = [];
    this.found.value = query.text === '' ? undefined : NOTHING;
    if (query.text !== '') this.#timer = setTimeout(() => void this.#run(near), PAUSE_MS);
  }

  /** The content is so long by now: what came is looked through, too. */
  grow(bytes: number): void {
    const found = this.found.value;
    if (this.#isGathering || found?.isDone !== true || found.problem !== undefined || bytes <= this.#to) return;
    this.#isGathering = true;
    this.#timer = setTimeout(() => void this.#searchOn(bytes), GATHER_MS);
  }

  stop(): void {
    this.#isGathering = false;
    clearTimeout(this.#timer);
    this.#running.abort();
    this.#running = new AbortController();
  }

  /** The next match behind a byte, or the one before it; the other end of the content follows. */
  async step(isBack: boolean, from: number): Promise<number | undefined> {
    const at = this.current.value?.byte ?? from - 1;
    const known = this.#among(at, isBack);
    const byte = known ?? (await this.#askNext(at, isBack));
    if (byte !== undefined) this.#show(byte);
    return byte;
  }

  /** The ranges to mark in a row that starts at a byte: for a regular expression, the reported matches. */
  needleIn(bytes: Uint8Array, start: number): RegExp | undefined {
    const { text, regex } = this.query.value;
    if (text === '' || !regex) return this.#needle.value;
    const matched = this.#reported
      .filter(([byte]) => byte >= start && byte < start + bytes.length)
      .map(([byte, length]) => decode(bytes.subarray(byte - start, byte - start + length)));
    return matched.length === 0 ? undefined : new RegExp([...new Set(matched)].map(literal).join('|'), 'gu');
  }

  #keep(matches: readonly Match[]): void {
    this.#reported.push(...matches.slice(0, MAX_LISTED - this.#reported.length));
  }

  #show(byte: number): void {
    const index = this.#reported.findIndex(([reported]) => reported === byte);
    this.current.value = { byte, index: index < 0 ? undefined : index };
  }

  /** Found among the reported matches; undefined if the server must be asked. */
  #among(at: number, isBack: boolean): number | undefined {
    const found = this.found.value;
    const all = this.#reported;
    const hasAll = found?.isDone === true && all.length === found.count;
    const next = isBack ? all.findLast(([byte]) => byte < at) : all.find(([byte]) => byte > at);
    return (next ?? (hasAll ? all.at(isBack ? -1 : 0) : undefined))?.[0];
  }

  async #askNext(at: number, isBack: boolean): Promise<number | undefined> {
    const where = isBack ? { before: at } : { from: at + 1, most: 1 };
    for await (const line of this.#ask(where)) if ('at' in line) return line.at[0]?.[0];
    return isBack ? undefined : this.#reported[0]?.[0];
  }

  #ask(where: object): AsyncGenerator<SearchLine> {
    const { text, matchesCase, word, regex } = this.query.value;
    const flags = { case: matchesCase ? '1' : undefined, word: word ? '1' : undefined, regex: regex ? '1' : undefined };
    const to = address('search', { ...this.#content(), text, ...flags, ...where });
    return askLines<SearchLine>(to, { signal: this.#running.signal });
  }

  async #run(near: number): Promise<void> {
    const { signal } = this.#running;
    try {
      for await (const line of this.#ask({})) {
        if (signal.aborted) return;
        this.#take(line, near);
      }
    } catch (error) {
      if (!signal.aborted) this.#set({ isDone: true, problem: (error as Error).message });
    }
  }

  async #searchOn(bytes: number): Promise<void> {
    const before = this.#to;
    const { signal } = this.#running;
    const came: Match[] = [];
    try {
      const where = { from: Math.max(0, before - OVERLAP_BYTES), most: MAX_LISTED };
      for await (const line of this.#ask(where))
        if ('at' in line)
          for (const [byte, length] of line.at) {
            // Others were whole before, and are counted.
            if (byte + length > before) came.push([byte, length]);
            this.#to = Math.max(this.#to, byte + length);
          }
      this.#to = Math.max(this.#to, bytes);
      if (signal.aborted) return;
      this.#keep(came);
      this.#set({ count: (this.found.value?.count ?? 0) + came.length });
    } catch {
      // The file was rewritten, or the server is busy: what comes next asks again.
    } finally {
      if (!signal.aborted) this.#isGathering = false;
    }
  }

  #take(line: SearchLine, near: number): void {
    if ('at' in line) {
      this.#keep(line.at);
      const first = this.#reported.find(([byte]) => byte >= near)?.[0];
      if (this.current.value === undefined && first !== undefined) this.#show(first);
    } else if ('done' in line) {
      this.#to = this.found.value?.of ?? 0;
      this.#set({ count: line.count, isDone: true, problem: line.cut, searched: this.#to });
      const last = this.#reported.at(-1)?.[0];
      // All of them lie before what is on the screen.
      if (this.current.value === undefined && last !== undefined) this.#show(last);
    } else if ('marks' in line) this.#set({ marks: line.marks });
    else this.#set({ searched: line.searched, of: line.of, count: line.count });
  }

  #set(change: Partial<Found>): void {
    this.found.value = { ...(this.found.value ?? NOTHING), ...change };
  }
}

function needleOf({ text, matchesCase, word, regex }: Query): RegExp | undefined {
  if (text === '' || regex) return undefined;
  const edge = '[\\p{L}\\p{N}_]';
  const source = word ? `(?<!${edge})${literal(text)}(?!${edge})` : literal(text);
  return new RegExp(source, matchesCase ? 'gu' : 'giu');
}

const literal = (text: string) => text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
