/** Prints the mirrors as lines while they grow, each with a prefix for its source. */
import fs from 'node:fs';
import { StringDecoder } from 'node:string_decoder';
import type { Config } from '../../config/config.ts';
import type { JobId, LiveFileKey, LiveFileName, TaskId } from '../../job.ts';
import { mirrorsIn } from '../../search/mirrors.ts';
import { openIfThere } from '../../system/regular-files.ts';
import { pc } from './colours.ts';
import { cutToColumns, terminalText } from './terminal.ts';

interface LineTailOptions {
  /** Maximum columns of a line with its prefix; no limit if omitted. */
  readonly columns?: () => number;
  readonly now?: () => number;
  /** Written at the start of a new generation of a mirror. */
  readonly announcement?: string;
  /** Whether lines are unchanged, with one character per byte (Latin-1). */
  readonly raw?: boolean;
  /** Whether an unfinished line is overwritten: the whole line is written when it is complete. */
  readonly rewrites?: boolean;
  /** Whether lines have a prefix for their mirror; true if omitted. */
  readonly prefixes?: boolean;
}

/** Receives a line, the name of its mirror, and whether its end is still to come. */
type WriteLine = (line: string, name: string, unfinished: boolean) => void;

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

  add(file: string, name: string, from: MirrorReaderOptions = {}): void {
    const colour = COLOURS[this.#tailed.length % COLOURS.length] ?? pc.cyan;
    const prefix = this.#options.prefixes === false ? '' : `${colour(`${name} |`)} `;
    this.#tailed.push({ reader: new MirrorReader(file, from), name, prefix, ...this.#freshLine() });
  }

  /** Writes new lines; returns whether there may be more at once. */
  read(): boolean {
    let more = false;
    for (const tailed of this.#tailed) {
      more = this.#read(tailed, MAX_BYTES) || more;
      if (this.#now() - tailed.unfinishedSince >= UNFINISHED_MS) this.#showUnfinished(tailed);
    }
    return more;
  }

  /** Writes everything, unfinished lines too. */
  end(): void {
    for (const tailed of this.#tailed) {
      this.#read(tailed, Number.POSITIVE_INFINITY);
      this.#showUnfinished(tailed);
    }
  }

  #freshLine() {
    // Latin-1 maps each byte to one character.
    const decoder = new StringDecoder(this.#options.raw === true ? 'latin1' : 'utf8');
    return { decoder, unfinished: '', unfinishedSince: this.#now(), shown: '' };
  }

  #read(tailed: Tailed, maxBytes: number): boolean {
    let taken = 0;
    for (const piece of tailed.reader.read(maxBytes)) {
      if (piece === 'generation') this.#beginGeneration(tailed);
      else {
        this.#take(tailed, tailed.decoder.write(piece));
        taken += piece.length;
      }
    }
    return taken >= maxBytes;
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
    if (tailed.unfinished === '') tailed.unfinishedSince = this.#now();
    const lines = (tailed.unfinished + text).split('\n');
    tailed.unfinished = lines.pop() ?? '';
    for (const line of lines) this.#end(tailed, this.#stateOf(line));
    // Former states of a progress bar are not shown.
    if (this.#options.raw !== true) tailed.unfinished = withLastState(tailed.unfinished);
    if (tailed.unfinished.length > MAX_LINE_CHARACTERS) {
      this.#end(tailed, this.#stateOf(tailed.unfinished));
      tailed.unfinished = '';
    }
  }

  #end(tailed: Tailed, line: string): void {
    const isNew = tailed.shown === '' || line !== tailed.shown || this.#options.rewrites === true;
    if (isNew) this.#show(tailed, line, false);
    tailed.shown = '';
    tailed.unfinishedSince = this.#now();
  }

  #showUnfinished(tailed: Tailed): void {
    const state = this.#stateOf(tailed.unfinished);
    if (state === '' || state === tailed.shown) return;
    this.#show(tailed, state, true);
    tailed.unfinishedSince = this.#now();
    // Raw text is passed on once.
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

const NEW_MIRRORS_MS = 1_000;

/** Empty lists mean all. */
export interface LiveFileChoice {
  readonly task: readonly TaskId[];
  readonly file: readonly LiveFileName[];
}

export class TailedMirrors {
  readonly #tail: LineTail;
  readonly #mirror: Config['mirror'];
  readonly #jobIds: readonly JobId[];
  readonly #choice: LiveFileChoice;
  readonly #added = new Set<string>();
  #addedAt = Number.NEGATIVE_INFINITY;

  constructor(
    tail: LineTail,
    mirror: Config['mirror'],
    jobIds: readonly JobId[],
    choice: LiveFileChoice = { task: [], file: [] },
  ) {
    this.#tail = tail;
    this.#mirror = mirror;
    this.#jobIds = jobIds;
    this.#choice = choice;
  }

  get isEmpty(): boolean {
    return this.#added.size === 0;
  }

  /** Writes new lines, each second also those of new mirrors; returns whether there may be more at once. */
  tick(): boolean {
    if (performance.now() - this.#addedAt >= NEW_MIRRORS_MS) this.add();
    return this.#tail.read();
  }

  end(): void {
    this.add();
    this.#tail.end();
  }

  /** `startOf` returns the byte offset at which to begin. */
  add(startOf: (file: string) => number = () => 0): void {
    this.#addedAt = performance.now();
    const { directory, keepGenerations } = this.#mirror;
    for (const jobId of this.#jobIds) {
      const { task: tasks, file: files } = this.#choice;
      const found = mirrorsIn(directory, { jobs: [jobId], tasks, files }).filter((one) => !this.#added.has(one.path));
      const names = alignedNames(found);
      for (const [index, { path: file }] of found.entries()) {
        const name = names[index] ?? '';
        const shown = this.#jobIds.length === 1 ? name : `${jobId} ${name}`;
        this.#tail.add(file, shown, { at: startOf(file), keeps: keepGenerations > 0 });
        this.#added.add(file);
      }
    }
  }
}

function alignedNames(keys: readonly LiveFileKey[]): string[] {
  const names = keys.map(({ taskId, file }) => `${taskId} ${file}`);
  const width = Math.max(0, ...names.map(({ length }) => length));
  return names.map((name) => name.padEnd(width));
}

/** The last state of a progress bar, which rewrites its line with CR. */
const lastState = (line: string) => withLastState(line).replaceAll('\r', '');

/** The same with a CR at its end, which a newline may follow. */
function withLastState(line: string): string {
  let end = line.length;
  while (line[end - 1] === '\r') end--;
  return line.slice(end === 0 ? 0 : line.lastIndexOf('\r', end - 1) + 1);
}

interface MirrorReaderOptions {
  readonly at?: number;
  /** Whether old generations are kept: then a mirror that becomes shorter is being repaired. */
  readonly keeps?: boolean;
}

const READ_BYTES = 64 * 1024;

export class MirrorReader {
  readonly #file: string;
  readonly #keeps: boolean;
  #at: number;
  #kept: string | undefined;

  constructor(file: string, { at = 0, keeps = false }: MirrorReaderOptions = {}) {
    this.#file = file;
    this.#keeps = keeps;
    this.#at = at;
    this.#kept = nameOf(statIfThere(`${file}.1`));
  }

  *read(maxBytes = Number.POSITIVE_INFINITY): Generator<Buffer | 'generation'> {
    const handle = openIfThere(this.#file);
    if (handle === undefined) return;
    try {
      const { size } = fs.fstatSync(handle);
      const former = `${this.#file}.1`;
      const kept = nameOf(statIfThere(former));
      if (kept !== this.#kept && kept !== undefined) {
        // The rotation copies before it truncates: while both files are equal, nothing new can have come.
        if (isSame(this.#file, former)) return;
        this.#kept = kept;
        yield* this.#restOf(former);
        this.#at = 0;
        yield 'generation';
      } else if (size < this.#at) {
        this.#at = this.#keeps ? size : 0;
        if (!this.#keeps) yield 'generation';
      }
      yield* this.#bytesOf(handle, maxBytes);
    } finally {
      fs.closeSync(handle);
    }
  }

  *#restOf(file: string): Generator<Buffer> {
    const handle = openIfThere(file);
    if (handle === undefined) return;
    try {
      yield* this.#bytesOf(handle, Number.POSITIVE_INFINITY);
    } finally {
      fs.closeSync(handle);
    }
  }

  *#bytesOf(handle: number, maxBytes: number): Generator<Buffer> {
    for (let taken = 0; taken < maxBytes; ) {
      const bytes = Buffer.allocUnsafe(READ_BYTES);
      const read = fs.readSync(handle, bytes, 0, bytes.length, this.#at);
      if (read === 0) return;
      this.#at += read;
      taken += read;
      yield bytes.subarray(0, read);
    }
  }
}

/** The byte offset of the last `lines` lines; an unfinished line counts. */
export function startOfLastLines(file: string, lines: number): number {
  const handle = lines === Number.POSITIVE_INFINITY ? undefined : openIfThere(file);
  if (handle === undefined) return 0;
  try {
    const { size } = fs.fstatSync(handle);
    if (lines <= 0) return size;
    const bytes = Buffer.allocUnsafe(READ_BYTES);
    let missing = lines;
    // The end of the last line begins no further one.
    for (let end = Math.max(0, size - 1); end > 0; ) {
      const start = Math.max(0, end - READ_BYTES);
      const read = fs.readSync(handle, bytes, 0, end - start, start);
      for (let index = bytes.subarray(0, read).lastIndexOf(0x0a); index >= 0; ) {
        missing--;
        if (missing === 0) return start + index + 1;
        index = index === 0 ? -1 : bytes.subarray(0, index).lastIndexOf(0x0a);
      }
      end = start;
    }
    return 0;
  } finally {
    fs.closeSync(handle);
  }
}

function isSame(...files: readonly [string, string]): boolean {
  const ends = files.map((file) => {
    const handle = openIfThere(file);
    if (handle === undefined) return undefined;
    try {
      const { size } = fs.fstatSync(handle);
      const bytes = Buffer.alloc(Math.min(size, READ_BYTES));
      const read = fs.readSync(handle, bytes, 0, bytes.length, size - bytes.length);
      return { size, bytes: bytes.subarray(0, read) };
    } finally {
      fs.closeSync(handle);
    }
  });
  const [a, b] = ends;
  return a !== undefined && b !== undefined && a.size === b.size && a.bytes.equals(b.bytes);
}

const statIfThere = (file: string) => fs.lstatSync(file, { bigint: true, throwIfNoEntry: false });

/** Identifies an old generation, whose name passes to the next one. */
const nameOf = (stat: fs.BigIntStats | undefined) => (stat === undefined ? undefined : `${stat.ino} ${stat.mtimeNs}`);
