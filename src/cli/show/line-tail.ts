/** The lines that mirrors grow by, each with a coloured prefix that says which mirror it is of. */
import { StringDecoder } from 'node:string_decoder';
import pc from 'picocolors';
import type { LiveFileKey } from '../../job.ts';
import { MirrorReader, type MirrorReaderOptions } from './mirror-reader.ts';
import { cutToColumns, terminalText } from './terminal-text.ts';

export interface LineTailOptions {
  /** Columns that a line may take, its prefix included; no limit by default. */
  readonly columns?: () => number;
  /** Milliseconds. */
  readonly now?: () => number;
  /** What is written where a new generation of a mirror begins; nothing by default. */
  readonly announcement?: string;
  /** Lines as the job wrote them: nothing is left out, and each character stands for one byte (Latin-1). */
  readonly raw?: boolean;
  /** An unfinished line is written over: the whole line is written once it is complete, whatever was shown before. */
  readonly rewrites?: boolean;
  /** Lines say of which mirror they are; true by default. */
  readonly prefixes?: boolean;
}

/** Takes a line as it is to be shown, the name of its mirror, and whether the end of the line is still to come. */
export type WriteLine = (line: string, name: string, unfinished: boolean) => void;

interface Tailed {
  readonly reader: MirrorReader;
  readonly name: string;
  readonly prefix: string;
  decoder: StringDecoder;
  /** The beginning of a line whose end has not come. */
  unfinished: string;
  /** Since when it has been held back. */
  heldSince: number;
  /** What of it was shown last. */
  shown: string;
}

const COLOURS = [pc.cyan, pc.yellow, pc.green, pc.magenta, pc.blue, pc.red];
/** A line that does not end is shown as it stands once it is so old, and again when it has changed after as long. */
const HELD_MS = 1_000;
/** A line without an end is ended here. */
const LONGEST_LINE = 64 * 1024;

/** Read of one mirror in one look. */
const MOST_BYTES = 1024 * 1024;

export class LineTail {
  readonly #write: WriteLine;
  readonly #options: LineTailOptions;
  readonly #now: () => number;
  readonly #tailed: Tailed[] = [];

  constructor(write: WriteLine, options: LineTailOptions = {}) {
    this.#write = write;
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  /** Tails a file from its beginning, or from where `from` says. */
  add(file: string, name: string, from: MirrorReaderOptions = {}): void {
    const colour = COLOURS[this.#tailed.length % COLOURS.length] ?? pc.cyan;
    const prefix = this.#options.prefixes === false ? '' : `${colour(`${name} |`)} `;
    this.#tailed.push({ reader: new MirrorReader(file, from), name, prefix, ...this.#freshLine() });
  }

  /** Writes what has come since the last look; whether there may be more at once. */
  look(): boolean {
    let more = false;
    for (const tailed of this.#tailed) {
      more = this.#lookAt(tailed, MOST_BYTES) || more;
      if (this.#now() - tailed.heldSince >= HELD_MS) this.#showUnfinished(tailed);
    }
    return more;
  }

  /** Writes what has come, lines without an end too: there will be no other look. */
  end(): void {
    for (const tailed of this.#tailed) {
      this.#lookAt(tailed, Number.POSITIVE_INFINITY);
      this.#showUnfinished(tailed);
    }
  }

  #freshLine() {
    // Latin-1 takes every byte as a character, and gives every byte back.
    const decoder = new StringDecoder(this.#options.raw === true ? 'latin1' : 'utf8');
    return { decoder, unfinished: '', heldSince: this.#now(), shown: '' };
  }

  #lookAt(tailed: Tailed, mostBytes: number): boolean {
    let taken = 0;
    for (const piece of tailed.reader.look(mostBytes)) {
      if (piece === 'generation') this.#beginGeneration(tailed);
      else {
        this.#take(tailed, tailed.decoder.write(piece));
        taken += piece.length;
      }
    }
    return taken >= mostBytes;
  }

  #beginGeneration(tailed: Tailed): void {
    const { announcement } = this.#options;
    if (announcement !== undefined) {
      this.#showUnfinished(tailed);
      this.#write(`${tailed.prefix}${pc.dim(announcement)}\n`, tailed.name, false);
    }
    Object.assign(tailed, this.#freshLine());
  }

  #take(tailed: Tailed, text: string): void {
    if (tailed.unfinished === '') tailed.heldSince = this.#now();
    const lines = (tailed.unfinished + text).split('\n');
    tailed.unfinished = lines.pop() ?? '';
    for (const line of lines) this.#end(tailed, this.#stateOf(line));
    if (tailed.unfinished.length > LONGEST_LINE) {
      this.#end(tailed, this.#stateOf(tailed.unfinished));
      tailed.unfinished = '';
    }
  }

  /** The end of a line has come. */
  #end(tailed: Tailed, line: string): void {
    const isNew = tailed.shown === '' || line !== tailed.shown || this.#options.rewrites === true;
    if (isNew) this.#show(tailed, line, false);
    tailed.shown = '';
    tailed.heldSince = this.#now();
  }

  #showUnfinished(tailed: Tailed): void {
    const state = this.#stateOf(tailed.unfinished);
    if (state === '' || state === tailed.shown) return;
    this.#show(tailed, state, true);
    tailed.heldSince = this.#now();
    // What is passed on as it is is passed on once.
    if (this.#options.raw === true) tailed.unfinished = '';
    else tailed.shown = state;
  }

  #stateOf(line: string): string {
    return this.#options.raw === true ? line : lastState(line);
  }

  #show({ prefix, name }: Tailed, line: string, unfinished: boolean): void {
    const { raw, columns } = this.#options;
    const shown = `${prefix}${raw === true ? line : terminalText(line)}`;
    this.#write(`${columns === undefined ? shown : cutToColumns(shown, columns())}\n`, name, unfinished);
  }
}

/** Which mirror a line is of, all of one width. */
export function alignedNames(keys: readonly LiveFileKey[]): string[] {
  const names = keys.map(({ taskId, file }) => `${taskId} ${file}`);
  const width = Math.max(0, ...names.map(({ length }) => length));
  return names.map((name) => name.padEnd(width));
}

/** A progress bar rewrites its line with CR: its last state is what a terminal would show. */
function lastState(line: string): string {
  const states = line.replace(/(?<!\r)\r+$/, '').split('\r');
  return states.at(-1) ?? '';
}
