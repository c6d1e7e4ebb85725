/** An opened file: bytes of one version only, in windows that end at lines, so that a page holds what it shows. */
import fs from 'node:fs';
import { characterStart, endOfWholeUtf8, firstCharacter, NEWLINE } from '../../bytes.ts';
import { changed } from '../../http/refused.ts';
import type { LinesQuery } from '../contract/addresses.ts';

/** Bytes at positions. */
export interface Source {
  /** How many there were when it was opened. */
  readonly bytes: number;
  read(start: number, end: number): Buffer;
  /** The same; valid until the next call. */
  readShared(start: number, end: number): Buffer;
}

/** So much at a time is read, or looked through: other requests get their turn in between. */
export const SLICE_BYTES = 128 * 1024;

export class FileContent implements Source {
  readonly version: string;
  /** For a download. */
  readonly name: string;
  readonly bytes: number;
  readonly #file: number;
  readonly #versionNow: () => string;
  #shared = Buffer.alloc(0);
  #isClosed = false;

  /** Owns the descriptor `file`. `versionNow`: the version that stands there now; left out where it cannot change. */
  constructor(file: number, version: string, name: string, versionNow = () => version) {
    const { size } = fs.fstatSync(file);
    this.version = version;
    this.name = name;
    this.bytes = size;
    this.#file = file;
    this.#versionNow = versionNow;
  }

  /** @throws Refused (409) if they are no longer those of this version */
  read(start: number, end: number): Buffer {
    return this.#readInto(Buffer.allocUnsafeSlow(end - start), start);
  }

  /** In one buffer, used again: fresh memory takes longer than the reading. */
  readShared(start: number, end: number): Buffer {
    if (this.#shared.length < end - start) this.#shared = Buffer.allocUnsafeSlow(end - start);
    return this.#readInto(this.#shared.subarray(0, end - start), start);
  }

  #readInto(bytes: Buffer, start: number): Buffer {
    // Its number may be that of another file by now.
    if (this.#isClosed) throw new Error('read after it was closed');
    let filled = 0;
    while (filled < bytes.length) {
      const read = fs.readSync(this.#file, bytes, filled, bytes.length - filled, start + filled);
      if (read === 0) break;
      filled += read;
    }
    // In this order: bytes of a new generation come only after its number is committed.
    const now = this.#versionNow();
    if (now !== this.version || filled < bytes.length) throw changed(now);
    return bytes;
  }

  close(): void {
    if (!this.#isClosed) fs.closeSync(this.#file);
    this.#isClosed = true;
  }
}

export function* piecesOf(source: Source, start: number, end: number): Generator<Buffer> {
  for (let at = start; at < end; at += SLICE_BYTES) yield source.read(at, Math.min(end, at + SLICE_BYTES));
}

export interface Window {
  readonly start: number;
  readonly bytes: Buffer;
  readonly beginsLine: boolean;
}

/** The beginning of a line is looked for so far back. */
const MAX_BACK_BYTES = 64 * 1024;

/** Of `from`, `at` and `to` there is one, or none for the end. Positions beyond the end count as the end. */
export function windowOf(
  source: Source,
  { from, at, to, bytes: max }: LinesQuery & { readonly bytes: number },
): Window {
  const within = (position: number) => Math.min(position, source.bytes);
  if (at !== undefined) return forward(source, within(at), max);
  if (from !== undefined) return forward(source, startOfLine(source, within(from)), max);
  return backward(source, within(to ?? source.bytes), max);
}

function forward(source: Source, start: number, max: number): Window {
  const bytes = source.read(start, Math.min(source.bytes, start + max));
  const isEnd = start + bytes.length === source.bytes;
  const cut = isEnd ? bytes.length : bytes.lastIndexOf(NEWLINE) + 1;
  // A line that is longer than the window, and that of a file that is no text, is cut somewhere.
  const end = cut > 0 ? cut : endOfWholeUtf8(bytes, 1);
  return { start, bytes: bytes.subarray(0, end), beginsLine: beginsLine(source, start) };
}

function backward(source: Source, end: number, max: number): Window {
  const first = Math.max(0, end - max);
  const bytes = source.read(first, end);
  if (first === 0 || beginsLine(source, first)) return { start: first, bytes, beginsLine: true };
  // The line end at the very end is that of the last line.
  const newline = bytes.subarray(0, -1).indexOf(NEWLINE);
  const cut = newline < 0 ? firstCharacter(bytes) : newline + 1;
  return { start: first + cut, bytes: bytes.subarray(cut), beginsLine: newline >= 0 };
}

/** Where the line of a byte begins, or else the character of it. */
function startOfLine(source: Source, position: number): number {
  const first = Math.max(0, position - MAX_BACK_BYTES);
  const before = source.read(first, position);
  const newline = before.lastIndexOf(NEWLINE);
  if (newline >= 0 || first === 0) return first + newline + 1;
  const begin = position - 3;
  const around = source.read(begin, Math.min(source.bytes, position + 4));
  return begin + characterStart(around, position - begin);
}

function beginsLine(source: Source, start: number): boolean {
  return start === 0 || source.read(start - 1, start)[0] === NEWLINE;
}
