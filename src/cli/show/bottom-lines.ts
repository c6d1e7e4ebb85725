/** Lines that scroll, and some below them that stay and change: only on a terminal; elsewhere there are just the lines. */
import type { WriteStream } from 'node:tty';
import { cutToColumns } from './terminal-text.ts';

const CLEAR_BELOW = '\u001b[J';
const LINES_UP = (lines: number) => (lines === 0 ? '' : `\u001b[${lines}A`);

/** What of a terminal is used. */
export type Terminal = Pick<WriteStream, 'write'> & Partial<Pick<WriteStream, 'isTTY' | 'columns'>>;

export class BottomLines {
  readonly #stream: Terminal;
  #shown = '';

  constructor(stream: Terminal) {
    this.#stream = stream;
  }

  /** Whole lines, above those that stay. */
  write(lines: string): void {
    this.#stream.write(`${this.#erasing}${lines}${this.#shown}`);
  }

  /** What is to stand below from now on, each line cut to the width of the terminal. */
  show(lines: readonly string[]): void {
    if (this.#stream.isTTY !== true) return;
    const columns = (this.#stream.columns || 80) - 1;
    const shown = lines.map((line) => cutToColumns(line, columns)).join('\n');
    if (shown === this.#shown) return;
    this.#stream.write(`${this.#erasing}${shown}`);
    this.#shown = shown;
  }

  /** Takes them away. */
  clear(): void {
    this.#stream.write(this.#erasing);
    this.#shown = '';
  }

  /** Leaves them as they stand, and the cursor below them. */
  leave(): void {
    if (this.#shown !== '') this.#stream.write('\n');
    this.#shown = '';
  }

  get #erasing(): string {
    return this.#shown === '' ? '' : `\r${LINES_UP(this.#shown.split('\n').length - 1)}${CLEAR_BELOW}`;
  }
}

/** A bar of so many columns, of which a share from 0 to 1 is full. */
export function bar(share: number, columns: number): string {
  const full = Math.floor(Math.min(1, share) * columns);
  return '█'.repeat(full) + '░'.repeat(columns - full);
}
