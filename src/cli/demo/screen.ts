/** What the demo shows: headings, lines, and bars that stay below them on a terminal; only lines where there is none. */
import type { WriteStream } from 'node:tty';
import { MultiBar, type SingleBar } from 'cli-progress';
import pc from 'picocolors';
import { showBytes } from '../../numbers.ts';
import { wrapToColumns } from '../show/terminal-text.ts';
import type { Growth } from './sides.ts';

/** The text of the demo is indented by this. */
const INDENT = '   ';
const PLAIN_PROGRESS_MS = 3_000;
const BAR_COLUMNS = 12;
const CLEAR_RIGHT = '\u001b[K';

export class Screen {
  readonly #stream: WriteStream;
  readonly #now: () => number;
  #steps = 0;
  #bars: { readonly together: MultiBar; readonly each: Map<string, SingleBar> } | undefined;
  #plainAt: number;

  constructor(stream: WriteStream, now = () => performance.now()) {
    this.#stream = stream;
    this.#now = now;
    this.#plainAt = now();
  }

  /** Columns of the terminal; what is no terminal takes any line. */
  get columns(): number {
    if (!this.isTerminal) return Number.POSITIVE_INFINITY;
    // Some terminals do not tell.
    return this.#stream.columns > 0 ? this.#stream.columns : 80;
  }

  get isTerminal(): boolean {
    return this.#stream.isTTY === true;
  }

  /** The heading of the next step. */
  step(title: string): void {
    this.#steps += 1;
    this.write(`\n${pc.bold(`${this.#steps}  ${title}`)}\n`);
  }

  /** The demo's own words; an empty line without any. */
  say(text = ''): void {
    for (const line of wrapToColumns(text, this.columns - INDENT.length))
      this.write(`${line === '' ? '' : INDENT}${line}\n`);
  }

  /** Something that the demo quotes: a command, what it printed, a file. */
  quote(text: string): void {
    for (const quoted of text.trimEnd().split('\n')) {
      for (const line of wrapToColumns(quoted, this.columns - 2 * INDENT.length)) {
        this.write(`${INDENT}${INDENT}${pc.dim(line)}\n`);
      }
    }
  }

  /** Whole lines, as they are. */
  write(lines: string): void {
    if (this.#bars === undefined) this.#stream.write(lines);
    // What stood there before may be longer.
    else this.#bars.together.log(lines.replaceAll(/(?<=^|\n)(?!$)/g, CLEAR_RIGHT));
  }

  /** Shows how far the copies are: bars that move, or a line now and then. */
  progress(growths: readonly Growth[]): void {
    if (this.isTerminal) this.#moveBars(growths);
    else if (this.#now() - this.#plainAt >= PLAIN_PROGRESS_MS) {
      this.#plainAt = this.#now();
      const parts = growths.map(
        (growth) => `${growth.title} ${percentOf(growth)} of ${showBytes(growth.bytes.cluster)}`,
      );
      this.say(`-- mirrored so far: ${parts.join(', ')}`);
    }
  }

  /** Leaves the bars as they stand, and the cursor below them. */
  endProgress(): void {
    const bars = this.#bars;
    if (bars === undefined) return;
    bars.together.update();
    this.#bars = undefined;
    bars.together.stop();
  }

  #moveBars(growths: readonly Growth[]): void {
    this.#bars ??= this.#createBars(growths);
    for (const growth of growths) {
      const bar = this.#bars.each.get(growth.title);
      bar?.setTotal(growth.bytes.cluster);
      bar?.update(growth.bytes.here, payloadOf(growth));
    }
  }

  #createBars(growths: readonly Growth[]) {
    const together = new MultiBar({
      stream: this.#stream,
      format: `${INDENT}{title} ${pc.cyan('{bar}')} {percent}  {amount}`,
      barCompleteChar: '█',
      barIncompleteChar: '░',
      barsize: BAR_COLUMNS,
      hideCursor: true,
      emptyOnZero: true,
      // The lines above were written where the bars stood.
      forceRedraw: true,
    });
    together.create(1, 0, {}, { format: ' ' });
    const each = new Map(growths.map((growth) => [growth.title, together.create(1, 0, payloadOf(growth))]));
    return { together, each };
  }
}

function payloadOf(growth: Growth) {
  return { title: growth.title.padEnd(14), percent: percentOf(growth).padStart(5), amount: amountOf(growth) };
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
