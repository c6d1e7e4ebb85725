/**
 * The range of a content that the page has, cut into rows. A row is a line, or about 2 KiB of a longer one, cut at the
 * same bytes whatever range is here. A progress bar is one row, whatever its length: of its earlier states only the
 * number is held. However long the page stays open, it holds no more than its limits.
 */

/** Of the bytes that rows show. */
export const MAX_BYTES = 512 * 1024;
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

/** What is held of a row: its bytes to its end, after the folded states of a progress bar. */
interface RowBytes {
  /** Where they begin in the held bytes. */
  at: number;
  /** The row goes on with the line of the row before. */
  isContinued: boolean;
  /** How many states are folded: at least so many if some were skipped. */
  states: number;
  hasSkipped: boolean;
}

export class TextWindow {
  #begin: Begin = { start: 0, line: 0, beginsLine: true };
  #end = 0;
  /** Those of all rows, one after the other. */
  #bytes = new Uint8Array(0);
  #length = 0;
  /** Where each row begins, as a position in the content. */
  #rows: number[] = [];
  #rowBytes: RowBytes[] = [];
  #eras = 0;

  /** Changes when rows may have other bytes than before; else they only grow. */
  get era(): number {
    return this.#eras;
  }

  get start(): number {
    return this.#begin.start;
  }

  get end(): number {
    return this.#end;
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
    this.#end = begin.start;
    this.#bytes = new Uint8Array(0);
    this.#length = 0;
    this.#rows = [];
    this.#rowBytes = [];
    this.#take(bytes);
  }

  /** Bytes that follow; the first rows go where there are too many. */
  append(bytes: Uint8Array): void {
    this.#take(bytes);
    this.#dropFirstRows();
  }

  /** The same; all between the last row and `start` are states of the progress bar that it is. */
  appendLater(start: number, bytes: Uint8Array): void {
    this.#skip(start, 0, true);
    this.append(bytes);
  }

  /** Bytes that end where these begin; the last rows go where there are too many. */
  prepend(begin: Begin, bytes: Uint8Array): void {
    const behind = this.#bytes.subarray(0, this.#length);
    const bars = this.#rowBytes.flatMap((row, index) =>
      row.states > 0 || row.hasSkipped ? [{ ...row, shownFrom: this.shownFrom(index) }] : [],
    );
    const line = begin.line ?? (this.line === undefined ? undefined : this.line - count(bytes, NEWLINE));
    this.replace({ ...begin, line }, bytes);
    let from = 0;
    for (const { at, shownFrom, states, hasSkipped } of bars) {
      this.#take(behind.subarray(from, at));
      this.#skip(shownFrom, states, hasSkipped);
      from = at;
    }
    this.#take(behind.subarray(from));
    this.#dropLastRows();
  }

  /** The first row is a progress bar, whose line begins before: all between are states of it. */
  beginLineAt(start: number, line: number): void {
    this.#eras++;
    this.#begin = { start, line, beginsLine: true };
    this.#rows[0] = start;
    this.#rowBytes[0] = { ...(this.#rowBytes[0] as RowBytes), isContinued: false, hasSkipped: true };
  }

  /** Takes away what lies behind `end`. */
  cutBack(end: number): void {
    this.#eras++;
    const last = () => this.#rows.length - 1;
    while (last() >= 0 && end < this.#end && end <= this.shownFrom(last())) {
      this.#end = this.#rows.pop() ?? 0;
      this.#length = this.#rowBytes.pop()?.at ?? 0;
    }
    this.#length -= Math.max(0, this.#end - end);
    this.#end = Math.min(this.#end, end);
  }

  /** The bytes that a row shows, with the end of its line. */
  bytesOf(index: number): Uint8Array {
    return this.#bytes.subarray(
      this.#rowBytes[index]?.at ?? this.#length,
      this.#rowBytes[index + 1]?.at ?? this.#length,
    );
  }

  /** Where the bytes begin that a row shows: after the folded states of a progress bar. */
  shownFrom(index: number): number {
    const length = (this.#rowBytes[index + 1]?.at ?? this.#length) - (this.#rowBytes[index]?.at ?? this.#length);
    return (this.#rows[index + 1] ?? this.#end) - length;
  }

  /** `hasMore`: there are others, which were not counted. */
  foldedStates(index: number): { readonly states: number; readonly hasMore: boolean } {
    const { states = 0, hasSkipped = false } = this.#rowBytes[index] ?? {};
    return { states, hasMore: hasSkipped || (index === 0 && !this.#begin.beginsLine) };
  }

  /** The first row is a progress bar whose first states are not here. */
  get beginsInStates(): boolean {
    return !this.#begin.beginsLine && this.foldedStates(0).states > 0;
  }

  /** The last row is a progress bar whose line may go on. */
  get endsInStates(): boolean {
    return this.foldedStates(this.#rows.length - 1).states > 0 && this.#bytes[this.#length - 1] !== NEWLINE;
  }

  get shownBytes(): number {
    return this.#length;
  }

  /** The held bytes before a row: at most so many. */
  bytesBefore(index: number, max: number): Uint8Array {
    const to = this.#rowBytes[index]?.at ?? 0;
    return this.#bytes.subarray(Math.max(0, to - max), to);
  }

  /** The number of the line of a row, from 0; undefined if it is not known, or if the row goes on with a line. */
  lineOf(index: number): number | undefined {
    if (this.line === undefined || this.#rows[index] === undefined || this.isContinued(index)) return undefined;
    return this.line + this.#rowBytes.slice(1, index + 1).filter((one) => !one.isContinued).length;
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
    return this.#rowBytes[index]?.isContinued ?? false;
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

  /** Bytes that follow, as rows. */
  #take(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#needRow();
    let at = this.#length;
    this.#hold(bytes);
    while (at < this.#length) {
      const newline = this.#bytes.subarray(0, this.#length).indexOf(NEWLINE, at);
      let end = newline < 0 ? this.#length : newline + 1;
      for (let next = this.#nextCut(); next < end; next = this.#nextCut()) {
        const cut = cutBefore(this.#bytes, next);
        if (this.#bytes[cut - 1] === RETURN) end -= this.#fold(cut);
        else this.#addRow(cut, true);
      }
      if (end < this.#length) this.#addRow(end, false);
      at = end;
    }
  }

  #hold(bytes: Uint8Array): void {
    const length = this.#length + bytes.length;
    if (length > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(length, Math.min(2 * length, length + MAX_BYTES)));
      larger.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = larger;
    }
    this.#bytes.set(bytes, this.#length);
    this.#length = length;
    this.#end += bytes.length;
  }

  /** A row that begins at an index of the held bytes. */
  #addRow(at: number, isContinued: boolean): void {
    this.#rows.push(this.#end - (this.#length - at));
    this.#rowBytes.push({ at, isContinued, states: 0, hasSkipped: false });
  }

  /** What follows belongs to the last row, unless that ended its line. */
  #needRow(): void {
    const last = this.#rowBytes.at(-1);
    if (last === undefined) this.#addRow(this.#length, !this.#begin.beginsLine);
    else if (this.#length > last.at && this.#bytes[this.#length - 1] === NEWLINE) this.#addRow(this.#length, false);
  }

  /** Folds what the last row holds before an index; how many bytes went. */
  #fold(to: number): number {
    const last = this.#rowBytes.at(-1) as RowBytes;
    last.states += count(this.#bytes.subarray(last.at, to), RETURN);
    this.#bytes.copyWithin(last.at, to, this.#length);
    this.#length -= to - last.at;
    return to - last.at;
  }

  /** The row at the end is a progress bar, whose states before a position are not held. */
  #skip(to: number, states: number, hasSkipped: boolean): void {
    this.#needRow();
    this.#fold(this.#length);
    const last = this.#rowBytes.at(-1) as RowBytes;
    last.states += states;
    last.hasSkipped ||= hasSkipped;
    this.#end = to;
  }

  /** The index at which the last row ends if its line goes on: the same byte whatever comes before it. */
  #nextCut(): number {
    const index = this.#rows.length - 1;
    const from = this.shownFrom(index);
    const least = from !== this.#rows[index] || this.isContinued(index) ? CUT_BYTES / 2 : CUT_BYTES;
    return Math.ceil((from + least) / CUT_BYTES) * CUT_BYTES - this.#end + this.#length;
  }

  #dropFirstRows(): void {
    const rows = this.#rows.length;
    const isTooMuch = (first: number) =>
      rows - first > MAX_ROWS || this.#length - (this.#rowBytes[first]?.at ?? 0) > MAX_BYTES;
    let first = 0;
    while (first < rows - 1 && isTooMuch(first)) first++;
    // A quarter at once: to drop a row with each one that comes would move all bytes each time.
    if (first > 0) this.#dropBefore(Math.min(rows - 1, first + Math.floor(rows / 4)));
  }

  #dropBefore(row: number): void {
    this.#eras++;
    const first = this.#firstOf(row);
    const line = first === 0 ? this.line : this.lineOf(first);
    const at = this.#rowBytes[row]?.at ?? 0;
    this.#begin = { start: this.#rows[row] ?? this.#end, line, beginsLine: !this.isContinued(row) };
    this.#rows = this.#rows.slice(row);
    this.#rowBytes = this.#rowBytes.slice(row).map((each) => ({ ...each, at: each.at - at }));
    this.#bytes = this.#bytes.slice(at, this.#length);
    this.#length = this.#bytes.length;
  }

  #dropLastRows(): void {
    let last = this.#rows.length;
    while (last > 1 && (last > MAX_ROWS || (this.#rowBytes[last]?.at ?? this.#length) > MAX_BYTES)) last--;
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
