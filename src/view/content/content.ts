/** A file that was opened to be looked at. What is read of it belongs to one version, or is not handed out. */
import fs from 'node:fs';
import { changed } from '../refused.ts';

/** Bytes at positions. */
export interface Source {
  /** How many there were when it was opened. */
  readonly bytes: number;
  /** The bytes [start, end), all of them. */
  read(start: number, end: number): Buffer;
  /** The same; they are good until the next look. */
  look(start: number, end: number): Buffer;
}

export interface ContentOptions {
  readonly file: number;
  readonly version: string;
  /** For a download. */
  readonly name: string;
  /** The version that stands there now. */
  readonly versionNow: () => string;
}

/** So much at a time is read, or looked through: other requests get their turn in between. */
export const SLICE_BYTES = 128 * 1024;

export class Content implements Source {
  readonly version: string;
  readonly name: string;
  readonly bytes: number;
  readonly modifiedAt: number;
  readonly inode: number;
  readonly #file: number;
  readonly #versionNow: () => string;
  #looked = Buffer.alloc(0);
  #isClosed = false;

  constructor({ file, version, name, versionNow }: ContentOptions) {
    const { size, mtimeMs, ino } = fs.fstatSync(file);
    this.version = version;
    this.name = name;
    this.bytes = size;
    this.modifiedAt = mtimeMs;
    this.inode = ino;
    this.#file = file;
    this.#versionNow = versionNow;
  }

  /** @throws Refused (409) if they are no longer those of this version */
  read(start: number, end: number): Buffer {
    return this.#readInto(Buffer.allocUnsafeSlow(end - start), start);
  }

  /** In one buffer, used again: fresh memory takes longer than the reading. */
  look(start: number, end: number): Buffer {
    if (this.#looked.length < end - start) this.#looked = Buffer.allocUnsafeSlow(end - start);
    return this.#readInto(this.#looked.subarray(0, end - start), start);
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

/** The bytes [start, end) piece by piece, as they are asked for. */
export function* piecesOf(source: Source, start: number, end: number): Generator<Buffer> {
  for (let at = start; at < end; at += SLICE_BYTES) yield source.read(at, Math.min(end, at + SLICE_BYTES));
}
