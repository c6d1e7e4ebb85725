/** Prints the mirrors as lines while they grow, each with a prefix for its source. */
import fs from 'node:fs';
import { StringDecoder } from 'node:string_decoder';
import { isDeepStrictEqual } from 'node:util';
import { type JobId, LIVE_FILE_NAMES, type LiveFileKey, type LiveFileName, type TaskId } from '../../job.ts';
import { lastState, rowsOf, withLastState } from '../../line-states.ts';
import { mirrorsIn } from '../../search/mirrors.ts';
import { EXACT } from '../../system/files.ts';
import { openIfThere } from '../../system/regular-files.ts';
import { ESC, pc, terminalText } from './terminal.ts';

interface TailOptions {
  readonly now?: () => number;
  /** Whether lines are unchanged, with one character per byte (Latin-1). */
  readonly raw?: boolean;
  /** Whether an unfinished line is overwritten: the whole line is written when it is complete. */
  readonly rewrites?: boolean;
  /** Whether lines have a prefix for their mirror; true if omitted. */
  readonly prefixes?: boolean;
}

/** Receives a line, the name of its mirror, and whether its end is still to come. */
type WriteLine = (line: string, name: string, unfinished: boolean) => void;

/** Empty lists mean all. */
export interface LiveFileChoice {
  readonly task: readonly TaskId[];
  readonly file: readonly LiveFileName[];
}

interface MirrorSource extends Partial<LiveFileChoice> {
  readonly mirror: { readonly directory: string; readonly keepGenerations: number };
  readonly jobIds: readonly JobId[];
}

interface Tailed {
  readonly reader: MirrorReader;
  readonly name: string;
  readonly prefix: string;
  decoder: StringDecoder;
  unfinished: string;
  unfinishedSince: number;
  shown: string;
}

const COLOURS = [pc.cyan, pc.yellow, pc.green, pc.magenta, pc.blue, pc.red];
/** An unfinished line is shown after this time, and again when it has changed after the same time. */
const UNFINISHED_MS = 1_000;
/** A longer line is cut. */
const MAX_LINE_CHARACTERS = 64 * 1024;

const MAX_BYTES = 1024 * 1024;
const NEW_MIRRORS_MS = 1_000;
const ANNOUNCEMENT = '--- the remote file was truncated or rewritten; the new content follows ---';

export class TailedMirrors {
  readonly #write: WriteLine;
  readonly #source: MirrorSource;
  readonly #options: TailOptions;
  readonly #now: () => number;
  /** What is shown of a line. */
  readonly #textOf: (line: string) => string;
  /** By the path of the mirror. */
  readonly #tailed = new Map<string, Tailed>();
  #addedAt = Number.NEGATIVE_INFINITY;

  constructor(write: WriteLine, source: MirrorSource, options: TailOptions = {}) {
    this.#write = write;
    this.#source = source;
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#textOf = options.raw === true ? (line) => line : (line) => terminalText(lastState(line));
  }

  get isEmpty(): boolean {
    return this.#tailed.size === 0;
  }

  /** Writes new lines, each second also those of new mirrors; returns whether there may be more at once. */
  tick(): boolean {
    if (this.#now() - this.#addedAt >= NEW_MIRRORS_MS) this.add();
    let more = false;
    for (const tailed of this.#tailed.values()) {
      more = this.#read(tailed, MAX_BYTES) || more;
      if (this.#now() - tailed.unfinishedSince >= UNFINISHED_MS) this.#showUnfinished(tailed);
    }
    return more;
  }

  /** Writes everything, unfinished lines too: none is overwritten any more, so each is written as a whole. */
  end(): void {
    this.add();
    for (const tailed of this.#tailed.values()) {
      this.#read(tailed, Number.POSITIVE_INFINITY);
      const last = this.#textOf(tailed.unfinished);
      if (last !== '') this.#end(tailed, last);
    }
  }

  /** `startOf` returns the byte offset at which to begin. */
  add(startOf: (file: string) => number = () => 0): void {
    this.#addedAt = this.#now();
    const { mirror, jobIds, task: tasks = [], file: files = [] } = this.#source;
    for (const jobId of jobIds) {
      const choice = { jobs: [jobId], tasks, files };
      const found = mirrorsIn(mirror.directory, choice).filter((one) => !this.#tailed.has(one.path));
      const names = alignedNames(found, files);
      for (const [index, { path: file }] of found.entries()) {
        const name = jobIds.length === 1 ? (names[index] ?? '') : `${jobId} ${names[index]}`;
        const colour = COLOURS[this.#tailed.size % COLOURS.length] ?? pc.cyan;
        const prefix = this.#options.prefixes === false ? '' : `${colour(`${name} |`)} `;
        const reader = new MirrorReader(file, { at: startOf(file), keeps: mirror.keepGenerations > 0 });
        this.#tailed.set(file, { reader, name, prefix, ...this.#freshLine() });
      }
    }
  }

  #freshLine() {
    // Latin-1 maps each byte to one character.
    const decoder = new StringDecoder(this.#options.raw === true ? 'latin1' : 'utf8');
    return { decoder, unfinished: '', unfinishedSince: this.#now(), shown: '' };
  }

  #read(tailed: Tailed, maxBytes: number): boolean {
    let taken = 0;
    let text = '';
    const take = () => {
      if (text !== '') this.#take(tailed, text);
      text = '';
    };
    tailed.reader.read((piece) => {
      if (piece === 'generation') {
        take();
        this.#beginGeneration(tailed);
        return;
      }
      // Much of it together: the cursor may go back to lines before.
      text += tailed.decoder.write(piece);
      taken += piece.length;
      if (text.length >= MAX_BYTES) take();
    }, maxBytes);
    take();
    return taken >= maxBytes;
  }

  #beginGeneration(tailed: Tailed): void {
    this.#showUnfinished(tailed);
    this.#write(`${tailed.prefix}${pc.dim(ANNOUNCEMENT)}\n`, tailed.name, false);
    Object.assign(tailed, this.#freshLine());
  }

  #take(tailed: Tailed, text: string): void {
    const { raw, prefixes } = this.#options;
    // Without prefixes, the bytes are those of the mirror.
    if (raw === true && prefixes === false) return void this.#write(text, tailed.name, false);
    if (tailed.unfinished === '') tailed.unfinishedSince = this.#now();
    const whole = tailed.unfinished + text;
    const end = whole.lastIndexOf('\n');
    const complete = whole.slice(0, Math.max(0, end));
    tailed.unfinished = whole.slice(end + 1);
    const rows = this.#options.raw === true ? complete.split('\n') : rowsOf(complete);
    if (end >= 0) for (const row of rows) this.#end(tailed, this.#textOf(row));
    // Former states of a progress bar are not shown.
    if (this.#options.raw !== true) tailed.unfinished = withLastState(tailed.unfinished);
    while (tailed.unfinished.length > MAX_LINE_CHARACTERS) {
      this.#end(tailed, this.#textOf(tailed.unfinished.slice(0, MAX_LINE_CHARACTERS)));
      tailed.unfinished = tailed.unfinished.slice(MAX_LINE_CHARACTERS);
    }
  }

  #end(tailed: Tailed, line: string): void {
    const isNew = tailed.shown === '' || line !== tailed.shown || this.#options.rewrites === true;
    if (isNew) this.#write(`${tailed.prefix}${line}\n`, tailed.name, false);
    tailed.shown = '';
    tailed.unfinishedSince = this.#now();
  }

  #showUnfinished(tailed: Tailed): void {
    const state = this.#textOf(tailed.unfinished);
    if (state === '' || state === tailed.shown) return;
    this.#write(`${tailed.prefix}${state}\n`, tailed.name, true);
    tailed.unfinishedSince = this.#now();
    // Raw text is passed on once.
    if (this.#options.raw === true) tailed.unfinished = '';
    else tailed.shown = state;
  }
}

/** Also with those of the same task that are not there yet. */
function alignedNames(keys: readonly LiveFileKey[], chosen: readonly LiveFileName[]): string[] {
  const fileWidth = Math.max(...(chosen.length > 0 ? chosen : LIVE_FILE_NAMES).map(({ length }) => length));
  const names = keys.map(({ taskId, file }) => `${taskId} ${file.padEnd(fileWidth)}`);
  const width = Math.max(0, ...names.map(({ length }) => length));
  return names.map((name) => name.padEnd(width));
}

interface MirrorReaderOptions {
  readonly at?: number;
  /** Whether old generations are kept: then a mirror that becomes shorter is being repaired. */
  readonly keeps?: boolean;
}

const READ_BYTES = 64 * 1024;

type TakePiece = (piece: Buffer | 'generation') => void;

export class MirrorReader {
  readonly #file: string;
  readonly #keeps: boolean;
  #at: number;
  /** The older generations that an earlier read found. */
  readonly #known = new Set<string>();

  constructor(file: string, { at = 0, keeps = false }: MirrorReaderOptions = {}) {
    this.#file = file;
    this.#keeps = keeps;
    this.#at = at;
    for (const { name } of this.#fresh()) this.#known.add(name);
  }

  read(take: TakePiece, maxBytes = Number.POSITIVE_INFINITY): void {
    whenThere(this.#file, (handle, size) => {
      const fresh = this.#fresh();
      const last = fresh.at(-1);
      if (last !== undefined) {
        // The rotation copies before it truncates: while both files are equal, and the copy is younger, nothing new came.
        if (isDeepStrictEqual(endOf(this.#file), endOf(last.file)) && !isYounger(handle, last.file)) return;
        for (const { file, name } of fresh) {
          this.#known.add(name);
          whenThere(file, (rest) => this.#bytesOf(rest, take));
          this.#at = 0;
          take('generation');
        }
      } else if (size < this.#at) {
        this.#at = this.#keeps ? size : 0;
        if (!this.#keeps) take('generation');
      }
      this.#bytesOf(handle, take, maxBytes);
    });
  }

  /** The older generations that are new, the oldest first. */
  #fresh(): { readonly file: string; readonly name: string }[] {
    const found: { file: string; name: string }[] = [];
    for (let number = 1; ; number++) {
      const file = `${this.#file}.${number}`;
      const name = nameOf(file);
      // Before the copy becomes `.1`, there is none.
      if (name === undefined ? number > 1 : this.#known.has(name)) return found;
      if (name !== undefined) found.unshift({ file, name });
    }
  }

  #bytesOf(handle: number, take: TakePiece, maxBytes = Number.POSITIVE_INFINITY): void {
    for (let taken = 0; taken < maxBytes; ) {
      const bytes = Buffer.allocUnsafe(READ_BYTES);
      const read = fs.readSync(handle, bytes, 0, bytes.length, this.#at);
      if (read === 0) return;
      this.#at += read;
      taken += read;
      take(bytes.subarray(0, read));
    }
  }
}

const MOVE = new RegExp(`${ESC}\\[(\\d{0,3})$`);
const MOVE_BYTES = 5;
const linesMoved = (before: string) => {
  const [, lines] = MOVE.exec(before) ?? [];
  return lines === undefined ? 0 : Math.max(1, Number(lines));
};

export function startOfLastLines(file: string, lines: number): number {
  if (lines === Number.POSITIVE_INFINITY) return 0;
  const start = whenThere(file, (handle, size) => {
    if (lines <= 0) return size;
    const bytes = Buffer.allocUnsafe(READ_BYTES);
    let missing = lines;
    // The end of the last line begins no further one.
    for (let end = Math.max(0, size - 1); end > 0; end -= READ_BYTES) {
      const from = Math.max(0, end - READ_BYTES);
      const read = fs.readSync(handle, bytes, 0, end - from, from);
      for (let index = read - 1; index >= 0; index--) {
        if (bytes[index] === 0x0a && --missing === 0) return from + index + 1;
        // These letters end a sequence that moves the cursor to former lines, and back.
        if (bytes[index] === 0x41 || bytes[index] === 0x42) {
          const moved = linesMoved(bytes.toString('latin1', Math.max(0, index - MOVE_BYTES), index));
          missing = Math.max(1, missing + (bytes[index] === 0x41 ? moved : -moved));
        }
      }
    }
    return 0;
  });
  return start ?? 0;
}

const isYounger = (handle: number, other: string) =>
  whenThere(other, (opened) => fs.fstatSync(handle, EXACT).mtimeNs > fs.fstatSync(opened, EXACT).mtimeNs) === true;

const endOf = (file: string) =>
  whenThere(file, (handle, size) => {
    const bytes = Buffer.alloc(Math.min(size, READ_BYTES));
    fs.readSync(handle, bytes, 0, bytes.length, size - bytes.length);
    return { size, bytes };
  });

/** Undefined if there is no such file. */
function whenThere<T>(file: string, work: (handle: number, size: number) => T): T | undefined {
  const handle = openIfThere(file);
  if (handle === undefined) return undefined;
  try {
    return work(handle, fs.fstatSync(handle).size);
  } finally {
    fs.closeSync(handle);
  }
}

/** Identifies an old generation, whose name passes to the next one. */
function nameOf(file: string): string | undefined {
  const stat = fs.lstatSync(file, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? undefined : `${stat.ino} ${stat.mtimeNs}`;
}
