import { afterEach, describe, expect, it, vi } from 'vitest';
import { BottomLines, bar } from '../../../src/cli/show/terminal.ts';

afterEach(() => {
  vi.unstubAllEnvs();
});

const ESC = '\u001b';
/** Up, erase below, return, next line, or text. */
const STEP = new RegExp(`${ESC}\\[(\\d+)A|(${ESC}\\[J|\\r|\\n|[^${ESC}\\r\\n]+)`, 'g');

/** What a terminal shows of what was written to it, as far as these lines use one. */
class Screen {
  readonly isTTY: boolean;
  readonly columns = 10;
  written = '';
  readonly #lines = [''];
  #row = 0;
  #column = 0;

  constructor({ isTTY = true } = {}) {
    this.isTTY = isTTY;
  }

  get lines(): string[] {
    return this.#lines;
  }

  write(text: string): boolean {
    this.written += text;
    for (const [, ups, part = ''] of text.matchAll(STEP)) {
      if (ups !== undefined) this.#row -= Number(ups);
      else if (part === `${ESC}[J`)
        this.#lines.splice(this.#row, Number.POSITIVE_INFINITY, this.#shown.slice(0, this.#column));
      else if (part === '\r') this.#column = 0;
      else if (part === '\n') {
        this.#row += 1;
        this.#column = 0;
        this.#lines[this.#row] ??= '';
      } else {
        this.#lines[this.#row] =
          this.#shown.slice(0, this.#column) + part + this.#shown.slice(this.#column + part.length);
        this.#column += part.length;
      }
    }
    return true;
  }

  get #shown(): string {
    return this.#lines[this.#row] ?? '';
  }
}

describe('lines that stay below the others', () => {
  it('stand below whatever is written, cut to the width of the terminal', () => {
    const screen = new Screen();
    const bottom = new BottomLines(screen);
    bottom.write('one\n');
    bottom.show(['', 'a bar that is too long']);
    bottom.write('two\nthree\n');
    expect(screen.lines).toEqual(['one', 'two', 'three', '', 'a bar th…']);
    bottom.show(['', 'short']);
    expect(screen.lines).toEqual(['one', 'two', 'three', '', 'short']);
  });

  it('are taken away, or left as they stand', () => {
    const screen = new Screen();
    const bottom = new BottomLines(screen);
    bottom.show(['a', 'b']);
    bottom.clear();
    bottom.write('one\n');
    bottom.show(['c']);
    bottom.leave();
    bottom.write('two\n');
    expect(screen.lines).toEqual(['one', 'c', 'two', '']);
  });

  it('are not shown where there is no terminal', () => {
    const screen = new Screen({ isTTY: false });
    const bottom = new BottomLines(screen);
    bottom.show(['a']);
    bottom.write('one\n');
    bottom.leave();
    bottom.clear();
    expect(screen.written).toBe('one\n');
  });
});

it('a bar is full by its share', () => {
  vi.stubEnv('LC_ALL', 'C.UTF-8');
  expect([0, 0.5, 1, 2].map((share) => bar(share, 4))).toEqual(['░░░░', '██░░', '████', '████']);
});
