/**
 * What the demo shows: headings, lines, and bars that stay below them on a terminal; only lines where there is none.
 */
import type { WriteStream } from 'node:tty';
import { BottomLines, bar, pc, wrapToColumns } from '../../src/cli/show/terminal.ts';
import { showBytes } from '../../src/numbers.ts';
import type { Growth } from './sides.ts';

/** The text of the demo is indented by this. */
const INDENT = '   ';
const PLAIN_PROGRESS_MS = 3_000;
const BAR_COLUMNS = 12;

export class Screen {
  readonly #stream: WriteStream;
  readonly #bottom: BottomLines;
  #steps = 0;
  #plainAt = performance.now();

  constructor(stream: WriteStream) {
    this.#stream = stream;
    this.#bottom = new BottomLines(stream);
  }

  /** Columns of the terminal; what is no terminal takes any line. */
  get columns(): number {
    if (!this.#isTerminal) return Number.POSITIVE_INFINITY;
    // Some terminals do not report it.
    return this.#stream.columns > 0 ? this.#stream.columns : 80;
  }

  /** Columns of what is quoted; 0 stands for no limit. */
  get quotedColumns(): number {
    return this.#isTerminal ? this.columns - 2 * INDENT.length : 0;
  }

  get #isTerminal(): boolean {
    return this.#stream.isTTY === true;
  }

  /** The heading of the next step. */
  step(title: string): void {
    this.#steps += 1;
    this.write(`\n${pc.bold(`${this.#steps}  ${title}`)}\n`);
  }

  /** The demo's own words; an empty line without any. */
  line(text = ''): void {
    for (const line of wrapToColumns(text, this.columns - INDENT.length))
      this.write(`${line === '' ? '' : INDENT}${line}\n`);
  }

  /** Something that the demo quotes: a command, what it printed, a file. */
  quote(text: string): void {
    for (const quoted of text.trimEnd().split('\n')) {
      for (const line of wrapToColumns(quoted, this.quotedColumns || Number.POSITIVE_INFINITY))
        this.write(`${INDENT}${INDENT}${pc.dim(line)}\n`);
    }
  }

  /** Whole lines, as they are. */
  write(lines: string): void {
    this.#bottom.write(lines);
  }

  /** Shows how far the copies are: bars that move, or a line now and then. */
  progress(growths: readonly Growth[]): void {
    if (this.#isTerminal) this.#bottom.show(['', ...growths.map(barOf)]);
    else if (performance.now() - this.#plainAt >= PLAIN_PROGRESS_MS) {
      this.#plainAt = performance.now();
      const parts = growths.map(
        (growth) => `${growth.title} ${percentOf(growth)} of ${showBytes(growth.bytes.cluster)}`,
      );
      this.line(`-- mirrored so far: ${parts.join(', ')}`);
    }
  }

  /** Leaves the bars as they stand. */
  endProgress(): void {
    this.#bottom.leave();
  }
}

function barOf(growth: Growth): string {
  const { here, cluster } = growth.bytes;
  const shown = pc.cyan(bar(cluster === 0 ? 0 : here / cluster, BAR_COLUMNS));
  return `${INDENT}${growth.title.padEnd(14)} ${shown} ${percentOf(growth).padStart(5)}  ${amountOf(growth)}`;
}

function percentOf({ bytes }: Growth): string {
  const percent = bytes.cluster === 0 ? 0 : Math.min(100, Math.floor((100 * bytes.here) / bytes.cluster));
  return `${percent} %`;
}

function amountOf({ bytes, files }: Growth): string {
  const [here = '', cluster = ''] = [bytes.here, bytes.cluster].map(showBytes);
  const [, unit = ''] = cluster.split(' ');
  // The unit once, if it is the same.
  const shown = here.endsWith(` ${unit}`) ? here.slice(0, -unit.length - 1) : here;
  return `${shown} of ${cluster}, ${files.here}/${files.cluster} files`;
}
