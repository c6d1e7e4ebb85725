/** Reads one file in windows of whole lines, and selects lines with their context. */
import fs from 'node:fs';
import { NEWLINE, RETURN } from '../bytes.ts';
import { JobtailError } from '../errors.ts';
import { READ } from '../system/regular-files.ts';
import { BufferWindow, type LineMatcher } from './pattern.ts';

export interface Wanted {
  /** lines: each selected line. ends: the first one with its context, and the last one. count: their number. any: whether there is one. */
  readonly what: 'lines' | 'ends' | 'count' | 'any';
  /** Selected lines that are returned; further ones are only counted. Default: all. */
  readonly maxLines?: number;
  /** Without it, and without context, line numbers are 0. */
  readonly numbered?: boolean;
  readonly before?: number;
  readonly after?: number;
}

export interface FoundLine {
  readonly number: number;
  /** One character for each byte, without the newline. */
  readonly bytes: string;
  readonly isSelected: boolean;
}

export interface ScanLimits {
  /** Bytes read at a time. Strings above 128 KiB are several times as expensive in V8. */
  readonly chunkBytes: number;
  /** A longer line is searched in pieces, and the piece with the first match is returned. */
  readonly maxLineBytes: number;
}

const OVERLAP_BYTES = 1024;

export const LIMITS: ScanLimits = { chunkBytes: 64 * 1024, maxLineBytes: 1024 * 1024 };

export function* scanFile(
  file: string,
  matcher: LineMatcher,
  wanted: Wanted,
  limits: ScanLimits,
): Generator<readonly FoundLine[], number> {
  const fd = fs.openSync(file, READ);
  try {
    if (!fs.fstatSync(fd).isFile()) throw new JobtailError('local-io', `${file} is not a file`);
    const selection = new SelectedLines(matcher, wanted);
    for (const window of windowsOf(fd, limits)) {
      yield selection.take(window);
      if (wanted.what === 'any' && selection.count > 0) break;
    }
    if (selection.last !== undefined) yield [selection.last];
    return selection.count;
  } finally {
    fs.closeSync(fd);
  }
}

/** A window is valid until the next one. */
function* windowsOf(fd: number, { chunkBytes, maxLineBytes }: ScanLimits): Generator<BufferWindow> {
  let buffer = Buffer.allocUnsafe(2 * chunkBytes);
  let length = 0;
  for (;;) {
    if (buffer.length < length + chunkBytes) buffer = Buffer.concat([buffer], 2 * buffer.length);
    const read = fs.readSync(fd, buffer, length, chunkBytes, null);
    if (read === 0) break;
    // The earlier bytes contain no newline.
    const newline = buffer.subarray(length, length + read).lastIndexOf(NEWLINE);
    let end = newline < 0 ? 0 : length + newline + 1;
    length += read;
    if (end > 0) yield new BufferWindow(buffer.subarray(0, end));
    else if (length > maxLineBytes) {
      // Between two states of a progress bar, or with an overlap, so that no word is cut.
      const state = buffer.subarray(0, maxLineBytes).lastIndexOf(RETURN) + 1;
      yield new BufferWindow(buffer.subarray(0, state || maxLineBytes), true);
      end = state || maxLineBytes - Math.min(OVERLAP_BYTES, maxLineBytes >> 1);
    }
    buffer.copyWithin(0, end, length);
    length -= end;
  }
  if (length > 0) yield new BufferWindow(buffer.subarray(0, length));
}

class SelectedLines {
  count = 0;
  /** The last selected line, unless it was returned. */
  last: FoundLine | undefined;
  readonly #matcher: LineMatcher;
  readonly #wanted: Required<Wanted>;
  #number = 0;
  /** Possible context before the next selected line; one line more, as the last may be a piece of that line. */
  #before: FoundLine[] = [];
  /** Lines of context that are still due. */
  #after = 0;
  /** Of the line that the last window cut. */
  #cut: { readonly isSelected: boolean } | undefined;

  constructor(
    matcher: LineMatcher,
    { what, maxLines = Number.POSITIVE_INFINITY, numbered = false, before = 0, after = 0 }: Wanted,
  ) {
    this.#matcher = matcher;
    this.#wanted = { what, maxLines, numbered: numbered || before + after > 0, before, after };
  }

  take(window: BufferWindow): FoundLine[] {
    const found: FoundLine[] = [];
    const { what, maxLines } = this.#wanted;
    const matcher = this.#matcher;
    let at = this.#cut === undefined ? 0 : this.#takeRest(window, found);
    let isSelected = at > 0 && this.#cut?.isSelected === true;
    for (; matcher.next(window, at); at = matcher.end) {
      this.#select(window, at, found);
      isSelected = true;
      if (what === 'any') return found;
    }
    if (what !== 'count' && this.count <= maxLines) this.#passOver(window, at, window.bytes.length, found);
    this.#cut = window.isCut ? { isSelected: isSelected && at === window.bytes.length } : undefined;
    return found;
  }

  /** Takes the rest of a line that was cut, which is selected once and has a number; returns where the next line begins. */
  #takeRest(window: BufferWindow, found: FoundLine[]): number {
    const matcher = this.#matcher;
    const end = window.lineEnd(0);
    if (this.#cut?.isSelected === true || matcher.isInverted || !matcher.next(window, 0) || matcher.start > 0)
      return end;
    if (this.#before.at(-1)?.number === this.#number) this.#before.pop();
    if (this.#wanted.numbered) this.#number--;
    this.#select(window, 0, found);
    this.#cut = { isSelected: true };
    return end;
  }

  /** Takes the line of the matcher, after the lines from `at` on. */
  #select(window: BufferWindow, at: number, found: FoundLine[]): void {
    const { what, maxLines, before, after } = this.#wanted;
    const { start, end } = this.#matcher;
    this.count++;
    if (what === 'any' || what === 'count' || this.count > maxLines) return;
    this.#passOver(window, at, start, found);
    const line = this.#line(window, start, end, true);
    const isOfFirst = this.#after > 0;
    if (what === 'ends' && this.count > 1 && !isOfFirst) this.last = line;
    else found.push(...this.#before.slice(Math.max(0, this.#before.length - before)), line);
    this.#before = [];
    this.#after = what !== 'ends' || this.count === 1 ? after : this.#after - 1;
  }

  /** Counts the lines [from, to), which are not selected, and returns or keeps those of the context. */
  #passOver(window: BufferWindow, from: number, to: number, found: FoundLine[]): void {
    if (!this.#wanted.numbered) return;
    const { before } = this.#wanted;
    let at = from;
    for (; at < to && (this.#after > 0 || before > 0); at = window.lineEnd(at)) {
      const line = this.#line(window, at, window.lineEnd(at), false);
      if (this.#after-- > 0) found.push(line);
      else if (this.#before.push(line) > before + 1) this.#before.shift();
    }
    this.#number += window.linesIn(at, to);
  }

  #line(window: BufferWindow, start: number, end: number, isSelected: boolean): FoundLine {
    if (this.#wanted.numbered) this.#number++;
    return { number: this.#number, bytes: window.line(start, end), isSelected };
  }
}
