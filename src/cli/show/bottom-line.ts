/** Lines that scroll, and one below them that stays and changes: only on a terminal; elsewhere there are just the lines. */
import type { WriteStream } from 'node:tty';
import pc from 'picocolors';
import { cutToColumns } from './terminal-text.ts';

const CLEAR_LINE = '\r\u001b[2K';

export class BottomLine {
  readonly #stream: WriteStream;
  #shown = '';

  constructor(stream: WriteStream) {
    this.#stream = stream;
  }

  /** Whole lines. */
  write(lines: string): void {
    this.#stream.write(this.#shown === '' ? lines : `${CLEAR_LINE}${lines}${this.#shown}`);
  }

  /** What is to stand below the lines from now on. */
  show(text: string): void {
    if (!this.#stream.isTTY) return;
    const shown = pc.dim(cutToColumns(text, (this.#stream.columns || 80) - 1));
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#stream.write(`${CLEAR_LINE}${shown}`);
  }

  /** Takes it away. */
  clear(): void {
    if (this.#shown !== '') this.#stream.write(CLEAR_LINE);
    this.#shown = '';
  }
}
