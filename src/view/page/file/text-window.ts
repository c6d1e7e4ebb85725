/**
 * The range of a content that the page has: consecutive bytes, cut into rows. A row is a line, or about 2 KiB of a
 * longer one, cut at the same bytes whatever range is here. A progress bar is one row, whatever its length: its earlier
 * states are folded. However long the page stays open, it holds no more than its limits.
 */

/** Of the bytes that rows show. */
export const MAX_BYTES = 512 * 1024;
/** With the folded states of progress bars. */
export const MAX_HELD_BYTES = 4 * 1024 * 1024;
export const MAX_ROWS = 20_000;
/** Longer lines are cut near multiples of this. */
const CUT_BYTES = 2 * 1024;
/** A longer terminal sequence may be cut. */
const MAX_SEQUENCE_BYTES = 32;
/** A cut is moved by at most this much, to the last state of a progress bar. */
const MAX_STATE_BYTES = 512;
const NEWLINE = 0x0a;
const RETURN = 0x0d;
const ESCAPE = 0x1b;

interface Begin {
  /** Where the bytes begin in the content. */
  readonly start: number;
  /** The number of the line there, from 0; undefined while it is not counted yet. */
  readonly line: number | undefined;
  readonly beginsLine: boolean;
}

export class TextWindow {
  #begin: Begin = { start: 0, line: 0, beginsLine: true };
  #bytes = new Uint8Array(0);
  #length = 0;
  /** Where each row begins, as a position in the content. */
  #rows: number[] = [];
  /** Those rows of them that go on with the line of the row before. */
  #continued: number[] = [];
  /** By the row of a progress bar: where its last states begin. */
  #lastStates = new Map<number, number>();
  #eras = 0;

  /** Changes when rows may have other bytes than before; else they only grow. */
  get era(): number {
    return this.#eras;
  }

  get start(): number {
    return this.#begin.start;
  }

  get end(): number {
    return this.#begin.start + this.#length;
  }

  get rows(): readonly number[] {
    return this.#rows;
  }

  get line(): number | undefined {
    return this.#begin.line;
  }

  set line(line: number | undefined) {
    this.#begin = { ...this.#begin, line };
  }

  /** Other bytes instead of these. */
  replace(begin: Begin, bytes: Uint8Array): void {
    this.#eras++;
    this.#begin = begin;
    this.#bytes = Uint8Array.from(bytes);
    this.#length = bytes.length;
    this.#rows = [];
    this.#continued = [];
    this.#lastStates.clear();
    this.#cut(0);
  }

  /** Bytes that follow; the first rows go where there are too many. */
  append(bytes: Uint8Array): void {
    const length = this.#length + bytes.length;
    if (length > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(length, Math.min(2 * length, length + MAX_BYTES)));
      larger.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = larger;
    }
    this.#bytes.set(bytes, this.#length);
    const from = this.#length;
    this.#length = length;
    this.#cut(from);
    this.#dropFirstRows();
  }

  /** Bytes that end where these begin; the last rows go where there are too many. */
  prepend(begin: Begin, bytes: Uint8Array): void {
    const all = new Uint8Array(bytes.length + this.#length);
    all.set(bytes);
    all.set(this.#bytes.subarray(0, this.#length), bytes.length);
    const line = begin.line ?? (this.line === undefined ? undefined : this.line - count(bytes, NEWLINE));
    this.replace({ ...begin, line }, all);
    this.#dropLastRows();
  }

  /** Takes away what lies behind `end`. */
  cutBack(end: number): void {
    this.#eras++;
    this.#length = Math.max(0, Math.min(this.#length, end - this.start));
    while (this.#rows.length > 0 && (this.#rows.at(-1) ?? 0) >= this.end) this.#rows.pop();
    this.#continued = this.#continued.filter((start) => start < this.end);
    for (const [start, shown] of this.#lastStates) if (shown >= this.end) this.#lastStates.delete(start);
  }

  /** The bytes that a row shows, with the end of its line. */
  bytesOf(index: number): Uint8Array {
    return this.#bytes.subarray(this.shownFrom(index) - this.start, (this.#rows[index + 1] ?? this.end) - this.start);
  }

  /** Where the bytes begin that a row shows: after the folded states of a progress bar. */
  shownFrom(index: number): number {
    const start = this.#rows[index] ?? this.end;
    return this.#lastStates.get(start) ?? start;
  }

  foldedStates(index: number): number {
    const start = this.#rows[index] ?? this.end;
    const to = this.#lastStates.get(start);
    return to === undefined ? 0 : count(this.#bytes.subarray(start - this.start, to - this.start), RETURN);
  }

  get shownBytes(): number {
    let folded = 0;
    for (const [start, shown] of this.#lastStates) folded += shown - start;
    return this.#length - folded;
  }

  /** The bytes before a row: at most so many, none of other lines than those that the window has. */
  bytesBefore(index: number, max: number): Uint8Array {
    const to = this.shownFrom(index) - this.start;
    return this.#bytes.subarray(Math.max(0, to - max), to);
  }

  /** The number of the line of a row, from 0; undefined if it is not known, or if the row goes on with a line. */
  lineOf(index: number): number | undefined {
    const start = this.#rows[index];
    if (this.line === undefined || start === undefined) return undefined;
    const continued = this.#continued.filter((one) => one <= start && one !== this.start).length;
    return this.isContinued(index) ? undefined : this.line + index - continued;
  }

  /** Where the line of a row begins, or what is here of it. */
  lineStartOf(index: number): number {
    return this.#rows[this.#firstOf(index)] ?? this.start;
  }

  /** The first row here of the line that a row is part of. */
  #firstOf(index: number): number {
    let first = index;
    while (first > 0 && this.isContinued(first)) first--;
    return first;
  }

  isContinued(index: number): boolean {
    return this.#continued.includes(this.#rows[index] ?? -1);
  }

  /** The row that a byte is in; the nearest one if it is not here. */
  rowAt(byte: number): number {
    let [low, high] = [0, this.#rows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#rows[middle] ?? 0) <= byte) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }

  /** Finds the rows from an index of the bytes on, at which those before were cut. */
  #cut(from: number): void {
    const bytes = this.#bytes.subarray(0, this.#length);
    const row = (at: number, isContinued: boolean) => {
      const last = this.#rows.at(-1);
      if (isContinued && last !== undefined && bytes[at - 1] === RETURN) {
        this.#lastStates.set(last, this.start + at);
        return;
      }
      this.#rows.push(this.start + at);
      if (isContinued) this.#continued.push(this.start + at);
    };
    if (this.#length > 0 && from === 0) row(0, !this.#begin.beginsLine);
    else if (from < this.#length && bytes[from - 1] === NEWLINE) row(from, false);
    for (let at = from; at < bytes.length; ) {
      const newline = bytes.indexOf(NEWLINE, at);
      const lineEnd = newline < 0 ? bytes.length : newline + 1;
      for (let next = this.#nextCut(); next < lineEnd; next = this.#nextCut()) row(cutBefore(bytes, next), true);
      if (newline >= 0 && lineEnd < bytes.length) row(lineEnd, false);
      at = lineEnd;
    }
  }

  /** Where the last row ends if its line goes on: the same byte whatever comes before it. */
  #nextCut(): number {
    const row = this.#rows.at(-1) ?? this.start;
    const last = this.#lastStates.get(row) ?? row;
    const least = last !== row || this.isContinued(this.#rows.length - 1) ? CUT_BYTES / 2 : CUT_BYTES;
    return Math.ceil((last + least) / CUT_BYTES) * CUT_BYTES - this.start;
  }

  #dropFirstRows(): void {
    let first = 0;
    let shown = this.shownBytes;
    const isTooMuch = () =>
      this.#rows.length - first > MAX_ROWS ||
      shown > MAX_BYTES ||
      this.end - (this.#rows[first] ?? this.end) > MAX_HELD_BYTES;
    for (; first < this.#rows.length - 1 && isTooMuch(); first++) shown -= this.bytesOf(first).length;
    // A progress bar that is longer than all that is held: its last states stay.
    if (isTooMuch() && this.shownFrom(first) > this.start) {
      this.#dropBefore(this.shownFrom(first), first, false);
      return;
    }
    // A quarter at once: to drop a row with each one that comes would move all bytes each time.
    if (first === 0) return;
    const from = Math.min(this.#rows.length - 1, first + Math.floor(this.#rows.length / 4));
    this.#dropBefore(this.#rows[from] ?? this.end, from, !this.isContinued(from));
  }

  #dropBefore(start: number, row: number, beginsLine: boolean): void {
    const first = this.#firstOf(row);
    const line = first === 0 ? this.line : this.lineOf(first);
    this.replace({ start, line, beginsLine }, this.#bytes.subarray(start - this.start, this.#length));
  }

  #dropLastRows(): void {
    let last = this.#rows.length;
    let shown = this.shownBytes;
    for (; last > 1 && (last > MAX_ROWS || shown > MAX_BYTES); last--) shown -= this.bytesOf(last - 1).length;
    const end = this.#rows[last];
    if (end !== undefined) this.cutBack(end);
  }
}

/** A place shortly before, which is within no character, no sequence of a terminal, and no state of a progress bar. */
function cutBefore(bytes: Uint8Array, at: number): number {
  const state = bytes.subarray(at - MAX_STATE_BYTES, at).lastIndexOf(RETURN);
  if (state >= 0) return at - MAX_STATE_BYTES + state + 1;
  const sequence = bytes.subarray(at - MAX_SEQUENCE_BYTES, at).lastIndexOf(ESCAPE);
  return sequence >= 0 ? at - MAX_SEQUENCE_BYTES + sequence : characterBefore(bytes, at);
}

/** A place at most three bytes before, where a character of UTF-8 begins. */
function characterBefore(bytes: Uint8Array, at: number): number {
  let place = at;
  while (place > at - 3 && ((bytes[place] ?? 0) & 0xc0) === 0x80) place--;
  return place;
}

function count(bytes: Uint8Array, of: number): number {
  let found = 0;
  for (let at = bytes.indexOf(of); at >= 0; at = bytes.indexOf(of, at + 1)) found++;
  return found;
}

/** The maximum of heights of rows that are gone. */
const MAX_REMOVED = 2_000;

/** Forgets heights of rows that are gone: the virtual list keeps all that it measured. */
export function forgetSizes(
  sizes: Map<number | string | bigint, number>,
  { start, end, rows }: Pick<TextWindow, 'start' | 'end' | 'rows'>,
): void {
  if (sizes.size <= rows.length + MAX_REMOVED) return;
  for (const row of sizes.keys()) if (Number(row) < start || Number(row) >= end) sizes.delete(row);
}
