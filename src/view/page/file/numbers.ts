/** Which kinds of lines of numbers there are, and the numbers of one as the file grows. */
import { type Signal, signal } from '@preact/signals';
import { MAX_LINE_BYTES, numbersIn } from '../../../number-lines.ts';
import type { ContentQuery, NumbersLine, NumbersRows } from '../../contract/addresses.ts';
import { address, askLines, type RefusedByView } from '../api.ts';
import { decode } from '../text/terminal.ts';
import type { TextWindow } from './text-window.ts';

const MAX_SEARCHED_ROWS = 500;
const MAX_WORDS = 80;

/** A kind of lines: what its lines have around their numbers, and where one of them is. */
export interface LineKind {
  readonly words: string;
  readonly byte: number;
}

/**
 * The kinds among the rows around a chosen one, its own first; among the last rows if it is not here. Each is named by
 * its last line: measured ones come first, then the most frequent; kinds of one line are none.
 */
export function kindsNear(window: TextWindow, chosenByte: number | undefined): LineKind[] {
  const { rows } = window;
  const found = rows.findIndex(({ start }) => start === chosenByte);
  const chosen = found < 0 ? rows.length : found;
  const first = Math.max(0, Math.min(chosen + MAX_SEARCHED_ROWS / 2, rows.length) - MAX_SEARCHED_ROWS);
  const kinds = new Map<string, { byte: number; count: number; rank: number }>();
  for (const [index, { start: byte, bytes }] of rows.slice(first, first + MAX_SEARCHED_ROWS).entries()) {
    const { words, values } = numbersIn(bytes.length > MAX_LINE_BYTES ? '' : decode(bytes));
    if (values.length === 0) continue;
    const { count = 0, rank = 0 } = kinds.get(words) ?? {};
    const own = values.some((value) => !Number.isInteger(value)) ? 1 : 0;
    kinds.set(words, { byte, count: count + 1, rank: Math.max(rank, first + index === chosen ? 2 : own) });
  }
  return [...kinds]
    .filter(([, { count }]) => count > 1)
    .sort(([, a], [, b]) => b.rank - a.rank || b.count - a.count)
    .map(([words, { byte }]) => ({ words: words.replaceAll('\0', ' # ').trim().slice(0, MAX_WORDS), byte }));
}

/** Points of a curve; more than a screen is wide. */
const MAX_ROWS = 20_000;
const RETRY_MS = 2_000;

interface Series {
  readonly names: readonly string[];
  /** The number of each row, counted from 1, and a column for each name. */
  readonly columns: readonly (readonly (number | null)[])[];
  /** The byte at which the line of each row begins. */
  readonly at: readonly number[];
  readonly problem: string | undefined;
}

export class Numbers {
  readonly series: Signal<Series> = signal({ names: [], columns: [], at: [], problem: undefined });
  readonly #content: () => ContentQuery;
  readonly #like: number;
  readonly #closed = new AbortController();
  #rows: { readonly at: number; readonly values: readonly (number | null)[] }[] = [];
  #names: readonly string[] = [];
  /** Rows of the answers so far, also those that were not sent. */
  #count = 0;
  /** Rows that were sent; each `#every`-th is kept. */
  #seen = 0;
  #every = 1;
  #to: number | undefined;
  #isAsking = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** More arrived than is asked for. */
  #hasMore = false;

  /** `like`: a byte of a line with numbers. */
  constructor(content: () => ContentQuery, like: number) {
    this.#content = content;
    this.#like = like;
  }

  close(): void {
    this.#closed.abort();
    clearTimeout(this.#timer);
  }

  /** Adds the rows that arrived since the last call. */
  async grow(): Promise<void> {
    if (this.#closed.signal.aborted) return;
    this.#hasMore = this.#isAsking;
    if (this.#isAsking) return;
    this.#isAsking = true;
    const { signal } = this.#closed;
    try {
      const to = address('numbers', { ...this.#content(), like: this.#like, from: this.#to });
      const arrived: NumbersRows[] = [];
      for await (const line of askLines<NumbersLine>(to, signal)) {
        if ('columns' in line) this.#names = line.columns;
        else if ('at' in line) arrived.push(line);
        else this.#take(arrived, line);
      }
    } catch (error) {
      if (!signal.aborted) this.#failed(error as Error & Partial<RefusedByView>);
    } finally {
      this.#isAsking = false;
    }
    if (this.#hasMore) await this.grow();
  }

  /** What is no word of the server about the content is tried again. */
  #failed({ message, status = 503, retryAfterMs = RETRY_MS }: Error & Partial<RefusedByView>): void {
    this.series.value = { ...this.series.value, problem: message };
    clearTimeout(this.#timer);
    if (status === 429 || status >= 500) this.#timer = setTimeout(() => void this.grow(), retryAfterMs);
  }

  /** Rows of a whole answer: those of one that breaks off come again with the next one. */
  #take(arrived: readonly NumbersRows[], { to, count }: { readonly to: number; readonly count: number }): void {
    for (const { index, at, rows } of arrived)
      for (const [place, row] of rows.entries())
        this.#add(at[place] ?? 0, [this.#count + (index[place] ?? 0) + 1, ...row]);
    this.#count += count;
    this.#to = to;
    this.#show();
  }

  #add(at: number, values: readonly (number | null)[]): void {
    if (this.#seen++ % this.#every === 0) this.#rows.push({ at, values });
    if (this.#rows.length <= MAX_ROWS) return;
    this.#rows = this.#rows.filter((_, index) => index % 2 === 0);
    this.#every *= 2;
  }

  #show(): void {
    const names = ['row', ...this.#names];
    const width = Math.max(names.length, this.#rows[0]?.values.length ?? 0);
    const columns = Array.from({ length: width }, (_, index) => this.#rows.map(({ values }) => values[index] ?? null));
    const at = this.#rows.map((row) => row.at);
    this.series.value = { names, columns, at, problem: undefined };
  }
}
