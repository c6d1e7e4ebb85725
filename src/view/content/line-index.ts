/**
 * Which line is where: the line ends before each block of a content are counted once, and the rest within a block when
 * it is requested. A file of 2 GiB has 2,048 numbers. The indexes of the contents that were opened last are kept.
 */
import { setImmediate as otherWork } from 'node:timers/promises';
import { NEWLINE } from '../../bytes.ts';
import { type FileContent, SLICE_BYTES, type Source } from './content.ts';

const BLOCK_BYTES = 1024 * 1024;

export class LineIndex {
  /** Line ends before each block that is reached. */
  #before: number[] = [0];
  #counted = 0;
  #lines = 0;

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
    // What was cut off may have been replaced by other bytes: a mirror loses its uncommitted tail after a kill.
    if (source.bytes < this.#counted) this.#forget();
    while (this.#counted < source.bytes) {
      const end = Math.min(source.bytes, this.#counted + SLICE_BYTES, this.#before.length * BLOCK_BYTES);
      const bytes = source.readShared(this.#counted, end);
      this.#lines += lineEndsIn(bytes);
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
    return (this.#before[block] ?? 0) + lineEndsIn(source.readShared(start, byte));
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

  #forget(): void {
    this.#before = [0];
    this.#counted = 0;
    this.#lines = 0;
  }
}

/** Byte by byte: lines are short, and a call for each takes longer. */
function lineEndsIn(bytes: Buffer): number {
  let found = 0;
  for (let at = 0; at < bytes.length; at++) if (bytes[at] === NEWLINE) found++;
  return found;
}

const MAX_KEPT = 64;

interface KeptIndex {
  readonly index: LineIndex;
  counting: Promise<void> | undefined;
}

export class LineIndexes {
  readonly #kept = new Map<string, KeptIndex>();

  /** `key` names a version of a content. */
  of(key: string): LineIndex {
    return this.#keptOf(key).index;
  }

  /**
   * Counts to the end of the content, which is closed then; another one of the same key that counts already is waited
   * for first. Ends early when the signal fires.
   * @throws Refused (409) if the content became another
   */
  async count(key: string, content: FileContent, signal: AbortSignal): Promise<void> {
    const kept = this.#keptOf(key);
    const { index } = kept;
    const countOn = async () => {
      for await (const _ of index.count(content)) {
        if (signal.aborted) return;
      }
    };
    try {
      while (kept.counting !== undefined && !signal.aborted) await kept.counting.catch(() => {});
      if (signal.aborted) return;
      kept.counting = countOn();
      await kept.counting.finally(() => {
        kept.counting = undefined;
      });
    } finally {
      content.close();
    }
  }

  /** Least recently requested first. */
  #keptOf(key: string): KeptIndex {
    const kept = this.#kept.get(key) ?? { index: new LineIndex(), counting: undefined };
    this.#kept.delete(key);
    this.#kept.set(key, kept);
    for (const [old, { counting }] of this.#kept) {
      if (this.#kept.size <= MAX_KEPT) break;
      if (counting === undefined) this.#kept.delete(old);
    }
    return kept;
  }
}
