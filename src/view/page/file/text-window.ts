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

/** Another object when anything of it is another. */
export interface WindowRow {
  /** Where it begins in the content. */
  readonly start: number;
  /** It goes on with the line of the row before. */
  readonly isContinued: boolean;
  /** How many lines begin between the first row that was here and this one. */
  readonly lines: number;
  /** How many states of a progress bar are folded: at least so many if some were skipped. */
  readonly states: number;
  readonly hasSkipped: boolean;
  /** Where the bytes begin: after the folded states. */
  readonly shownFrom: number;
  /** With the end of its line. */
  readonly bytes: Uint8Array;
}

export class TextWindow {
  #begin: Begin = { start: 0, line: 0, beginsLine: true };
  #rows: WindowRow[] = [];

  get rows(): readonly WindowRow[] {
    return this.#rows;
  }

  get start(): number {
    return this.#rows[0]?.start ?? this.#begin.start;
  }

  get end(): number {
    const last = this.#rows.at(-1);
    return last === undefined ? this.#begin.start : endOf(last);
  }

  /** The number of the first line, from 0; undefined while it is not counted yet. */
  get line(): number | undefined {
    return this.#begin.line;
  }

  set line(line: number | undefined) {
    this.#begin = { ...this.#begin, line };
  }

  /** Other bytes instead of these. */
  replace(begin: Begin, bytes: Uint8Array): void {
    this.#begin = begin;
    this.#rows = [];
    this.#take(bytes);
  }

  /** Bytes that follow; the first rows go where there are too many. */
  append(bytes: Uint8Array): void {
    this.#take(bytes);
    const rows = this.#rows.length;
    let [first, length] = [0, this.shownBytes];
    for (; first < rows - 1 && (rows - first > MAX_ROWS || length > MAX_BYTES); first++)
      length -= this.#rows[first]?.bytes.length ?? 0;
    // A quarter at once: to drop a row with each one that comes would draw the list anew each time.
    if (first > 0) this.#dropBefore(Math.min(rows - 1, first + Math.floor(rows / 4)));
  }

  /** The same; all between the last row and `start` are states of the progress bar that it is. */
  appendLater(start: number, bytes: Uint8Array): void {
    this.#skip(start, 0, true);
    this.append(bytes);
  }

  /** Bytes that end where these begin; the last rows go where there are too many. */
  prepend(begin: Begin, bytes: Uint8Array): void {
    const line = begin.line ?? (this.line === undefined ? undefined : this.line - count(bytes, NEWLINE));
    const behind = this.#rows;
    this.replace({ ...begin, line }, bytes);
    for (const row of behind) {
      if (isBar(row)) this.#skip(row.shownFrom, row.states, row.hasSkipped);
      this.#take(row.bytes);
    }
    let length = this.shownBytes;
    while (this.#rows.length > 1 && (this.#rows.length > MAX_ROWS || length > MAX_BYTES))
      length -= this.#rows.pop()?.bytes.length ?? 0;
  }

  /** The first row is a progress bar, whose line begins before: all between are states of it. */
  beginLineAt(start: number, line: number): void {
    this.#begin = { start, line, beginsLine: true };
    this.#rows[0] = { ...(this.#rows[0] as WindowRow), start, isContinued: false, hasSkipped: true };
  }

  /** Takes away what lies behind `end`. */
  cutBack(end: number): void {
    for (let last = this.#rows.at(-1); last !== undefined && end < this.end; last = this.#rows.at(-1)) {
      this.#rows.pop();
      if (end > last.shownFrom) this.#rows.push({ ...last, bytes: last.bytes.subarray(0, end - last.shownFrom) });
    }
  }

  /** `hasMore`: there are others, which were not counted. */
  foldedStates(index: number): { readonly states: number; readonly hasMore: boolean } {
    const { states = 0, hasSkipped = false, isContinued = false } = this.#rows[index] ?? {};
    return { states, hasMore: hasSkipped || (index === 0 && isContinued) };
  }

  /** The first row is a progress bar whose first states are not here. */
  get beginsInStates(): boolean {
    const [first] = this.#rows;
    return first?.isContinued === true && first.states > 0;
  }

  /** The last row is a progress bar whose line may go on. */
  get endsInStates(): boolean {
    const last = this.#rows.at(-1);
    return last !== undefined && last.states > 0 && !isWhole(last);
  }

  get shownBytes(): number {
    return this.#rows.reduce((sum, { bytes }) => sum + bytes.length, 0);
  }

  /** The number of the line of a row, from 0; undefined if it is not known, or if the row goes on with a line. */
  lineOf(index: number): number | undefined {
    return this.#rows[index]?.isContinued === false ? this.#lineAt(index) : undefined;
  }

  /** The number of the line that a row is part of. */
  #lineAt(index: number): number | undefined {
    if (this.line === undefined) return undefined;
    return this.line + (this.#rows[index]?.lines ?? 0) - (this.#rows[0]?.lines ?? 0);
  }

  /** Where the line of a row begins, or what is here of it. */
  lineStartOf(index: number): number {
    return this.#rows.slice(0, index + 1).findLast(({ isContinued }) => !isContinued)?.start ?? this.start;
  }

  /** The row that a byte is in; the nearest one if it is not here. */
  rowAt(byte: number): number {
    return Math.max(
      0,
      this.#rows.findLastIndex(({ start }) => start <= byte),
    );
  }

  /** Bytes that follow, as rows. */
  #take(bytes: Uint8Array): void {
    for (let from = 0; from < bytes.length; ) {
      const to = bytes.indexOf(NEWLINE, from) + 1 || bytes.length;
      this.#extend(bytes.subarray(from, to));
      from = to;
    }
  }

  /** Bytes of one line. */
  #extend(bytes: Uint8Array): void {
    let row = this.#takeLast();
    row = { ...row, bytes: joined(row.bytes, bytes) };
    for (let next = cutOf(row); next < row.bytes.length; next = cutOf(row)) {
      const cut = cutBefore(row.bytes, next);
      if (row.bytes[cut - 1] === RETURN) row = folded(row, cut);
      else {
        this.#rows.push({ ...row, bytes: row.bytes.subarray(0, cut) });
        row = { ...this.#rowAfter(), bytes: row.bytes.subarray(cut) };
      }
    }
    this.#rows.push(row);
  }

  /** The row that is extended: the last one, unless that ended its line. */
  #takeLast(): WindowRow {
    const last = this.#rows.at(-1);
    if (last === undefined || isWhole(last)) return this.#rowAfter();
    this.#rows.pop();
    return last;
  }

  #rowAfter(): WindowRow {
    const last = this.#rows.at(-1);
    const isContinued = last === undefined ? !this.#begin.beginsLine : !isWhole(last);
    const lines = last === undefined ? 0 : last.lines + (isContinued ? 0 : 1);
    const start = this.end;
    return { start, isContinued, lines, states: 0, hasSkipped: false, shownFrom: start, bytes: new Uint8Array(0) };
  }

  /** The row at the end is a progress bar, whose states before a position are not held. */
  #skip(shownFrom: number, states: number, hasSkipped: boolean): void {
    const last = this.#takeLast();
    const row = folded(last, last.bytes.length);
    this.#rows.push({
      ...row,
      shownFrom,
      states: row.states + states,
      hasSkipped: row.hasSkipped || hasSkipped,
    });
  }

  #dropBefore(row: number): void {
    const { isContinued, start } = this.#rows[row] as WindowRow;
    this.#begin = { start, line: this.#lineAt(row), beginsLine: !isContinued };
    this.#rows = this.#rows.slice(row);
  }
}

const endOf = ({ shownFrom, bytes }: WindowRow) => shownFrom + bytes.length;
const isWhole = ({ bytes }: WindowRow) => bytes.at(-1) === NEWLINE;
const isBar = ({ states, hasSkipped }: WindowRow) => states > 0 || hasSkipped;

/** Where a row ends if its line goes on, in its bytes: at the same byte of the content whatever comes before it. */
function cutOf({ start, isContinued, shownFrom }: WindowRow): number {
  const least = shownFrom !== start || isContinued ? CUT_BYTES / 2 : CUT_BYTES;
  return Math.ceil((shownFrom + least) / CUT_BYTES) * CUT_BYTES - shownFrom;
}

/** The states before an index of its bytes are counted instead of held. */
function folded(row: WindowRow, to: number): WindowRow {
  const states = row.states + count(row.bytes.subarray(0, to), RETURN);
  return { ...row, states, shownFrom: row.shownFrom + to, bytes: row.bytes.slice(to) };
}

function joined(one: Uint8Array, other: Uint8Array): Uint8Array {
  if (one.length === 0) return other;
  const all = new Uint8Array(one.length + other.length);
  all.set(one);
  all.set(other, one.length);
  return all;
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
  { start, end, rows }: Pick<TextWindow, 'start' | 'end'> & { readonly rows: readonly unknown[] },
): void {
  if (sizes.size <= rows.length + MAX_REMOVED) return;
  for (const row of sizes.keys()) if (Number(row) < start || Number(row) >= end) sizes.delete(row);
}
