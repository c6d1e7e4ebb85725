/**
 * Which line is where: the line ends before each block of a content are counted once, and the rest within a block when
 * it is asked for. A file of 2 GiB has 2,048 numbers.
 */
import { setImmediate as otherWork } from 'node:timers/promises';
import { SLICE_BYTES, type Source } from './content.ts';
import { NEWLINE } from './window.ts';

const BLOCK_BYTES = 1024 * 1024;

export class LineIndex {
  /** Line ends before each block that is reached. */
  #before: number[] = [0];
  #counted = 0;
  #lines = 0;
  /** A byte that was asked for last, and the line ends before it: who follows the end asks for one a little behind it. */
  #asked = { byte: 0, lines: 0 };

  /** Line ends are counted up to this byte. */
  get counted(): number {
    return this.#counted;
  }

  /** Line ends before it. */
  get lines(): number {
    return this.#lines;
  }

  /** Counts on to the end of the source, slice by slice. Only one at a time. */
  async *count(source: Source): AsyncGenerator<void> {
    // What stood behind the end was taken back.
    if (source.bytes < this.#counted) this.#forgetFrom(Math.floor(source.bytes / BLOCK_BYTES));
    while (this.#counted < source.bytes) {
      const end = Math.min(source.bytes, this.#counted + SLICE_BYTES, this.#before.length * BLOCK_BYTES);
      this.#lines += lineEndsIn(source.look(this.#counted, end));
      this.#counted = end;
      if (end === this.#before.length * BLOCK_BYTES) this.#before.push(this.#lines);
      yield;
      await otherWork();
    }
  }

  /** The number of the line that a byte is in, from 0; undefined if it is not counted so far. */
  lineOf(source: Source, byte: number): number | undefined {
    if (byte > this.#counted) return undefined;
    const block = Math.floor(byte / BLOCK_BYTES);
    const start = block * BLOCK_BYTES;
    const isNear = this.#asked.byte >= start && this.#asked.byte <= byte;
    const from = isNear ? this.#asked : { byte: start, lines: this.#before[block] ?? 0 };
    this.#asked = { byte, lines: from.lines + lineEndsIn(source.look(from.byte, byte)) };
    return this.#asked.lines;
  }

  /** Where a line begins; undefined if it is not counted so far. */
  startOf(source: Source, line: number): number | undefined {
    if (line > this.#lines) return undefined;
    let block = 0;
    // The last block with fewer line ends before it.
    for (let high = this.#before.length; high - block > 1; ) {
      const middle = (block + high) >> 1;
      if ((this.#before[middle] ?? 0) < line) block = middle;
      else high = middle;
    }
    const start = block * BLOCK_BYTES;
    const bytes = source.read(start, Math.min(this.#counted, start + BLOCK_BYTES));
    let at = 0;
    for (let found = this.#before[block] ?? 0; found < line; found++) at = bytes.indexOf(NEWLINE, at) + 1;
    return start + at;
  }

  #forgetFrom(block: number): void {
    this.#before = this.#before.slice(0, block + 1);
    this.#counted = block * BLOCK_BYTES;
    this.#lines = this.#before.at(-1) ?? 0;
    this.#asked = { byte: 0, lines: 0 };
  }
}

/** Byte by byte: lines are short, and a call for each takes longer. */
function lineEndsIn(bytes: Buffer): number {
  let found = 0;
  for (let at = 0; at < bytes.length; at++) if (bytes[at] === NEWLINE) found++;
  return found;
}
