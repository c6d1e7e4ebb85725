/**
 * Reads a live mirror while it grows, as `tail -F` does, and goes on in the next generation when the remote file was
 * truncated or rewritten: the mirror is then cut to nothing in place, and its former bytes stand in `stdout.log.1`.
 */
import fs, { constants } from 'node:fs';
import { inTheWay } from '../../system/directories.ts';

export interface MirrorReaderOptions {
  /** Where to begin, in bytes; 0 if left out. */
  readonly at?: number;
  /** Former generations are kept, so that a mirror that only gets shorter is one that is being mended. */
  readonly keeps?: boolean;
}

const READ_BYTES = 64 * 1024;

export class MirrorReader {
  readonly #file: string;
  readonly #keeps: boolean;
  #at: number;
  /** The former generation that was there at the last look. */
  #kept: string | undefined;

  constructor(file: string, { at = 0, keeps = false }: MirrorReaderOptions = {}) {
    this.#file = file;
    this.#keeps = keeps;
    this.#at = at;
    this.#kept = nameOf(statIfThere(`${file}.1`));
  }

  /** The bytes that have come since the last look, at most about so many, and where a new generation begins. */
  *look(mostBytes = Number.POSITIVE_INFINITY): Generator<Buffer | 'generation'> {
    const handle = openIfThere(this.#file);
    if (handle === undefined) return;
    try {
      const { size } = fs.fstatSync(handle);
      const former = `${this.#file}.1`;
      const kept = nameOf(statIfThere(former));
      if (kept !== this.#kept && kept !== undefined) {
        // It is kept first and cut then: as long as both are the same, nothing new can have come.
        if (isSame(this.#file, former)) return;
        this.#kept = kept;
        yield* this.#restOf(former);
        this.#at = 0;
        yield 'generation';
      } else if (size < this.#at) {
        this.#at = this.#keeps ? size : 0;
        if (!this.#keeps) yield 'generation';
      }
      yield* this.#bytesOf(handle, mostBytes);
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

  *#bytesOf(handle: number, mostBytes: number): Generator<Buffer> {
    for (let taken = 0; taken < mostBytes; ) {
      const bytes = Buffer.allocUnsafe(READ_BYTES);
      const read = fs.readSync(handle, bytes, 0, bytes.length, this.#at);
      if (read === 0) return;
      this.#at += read;
      taken += read;
      yield bytes.subarray(0, read);
    }
  }
}

/** Where the last `lines` lines of a file begin, in bytes; a line that has no end yet counts as one. */
export function startOfLastLines(file: string, lines: number): number {
  const handle = openIfThere(file);
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

function openIfThere(file: string): number | undefined {
  let opened: number;
  try {
    opened = fs.openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    if (code === 'ELOOP' || code === 'ENXIO') throw inTheWay(file, 'file');
    throw error;
  }
  if (fs.fstatSync(opened).isFile()) return opened;
  fs.closeSync(opened);
  throw inTheWay(file, 'file');
}

/** Whether two files have the same length and the same end. */
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

/** Tells one kept generation from the next, which takes its name. */
const nameOf = (stat: fs.BigIntStats | undefined) => (stat === undefined ? undefined : `${stat.ino} ${stat.mtimeNs}`);
