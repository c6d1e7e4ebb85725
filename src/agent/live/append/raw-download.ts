/**
 * One raw download of a listed file. Compares its bytes, while they arrive, with the mirror and with the text of the
 * live file. Passes no byte to the sink before the text proves that the listed file is the live file.
 */
import { BYTE_ORDER_MARK, commonLength, GrowingBuffer, standsAt, startsAlike } from '../../../bytes.ts';
import { JobtailError } from '../../../errors.ts';
import type { InexactRegion } from '../../../store/rows.ts';
import type { Sink } from '../../ports.ts';
import { type Difference, match } from '../match.ts';
import { maskRegions, overlaps } from '../mirror/inexact-regions.ts';
import type { LiveFile } from '../mirror/live-file.ts';
import { startsCharacter } from '../offsets.ts';
import { mayBeUtf16 } from '../text/byte-order-mark.ts';
import type { ServerDecoding } from '../text/decoding.ts';
import type { Reading } from '../text/reading.ts';

/** Number of bytes that are compared with the text. */
const COMPARED_BYTES = 64 * 1024;
/** The same at the end of a file that is too long to be sent as text. */
const END_BYTES = 16 * 1024;

/** The listed file is not the live file: the download is cancelled; this is no failure. */
export class AnotherFile extends JobtailError {
  constructor() {
    super('aborted', 'the listed file is another one');
  }
}

/** The text from an offset on. */
export interface ShownPart {
  readonly offset: number;
  readonly text: Reading;
}

export class RawDownload {
  readonly #file: LiveFile;
  readonly #shown: ShownPart | undefined;
  /** The server does not decode UTF-8: only the ASCII characters of a text count. */
  readonly #isOtherwise: boolean;
  /** How the server decodes, if the bytes show it. */
  evidence: Exclude<ServerDecoding, 'unknown'> | undefined;
  readonly #sink: Sink;
  /** Length of the mirror at the start: the sink may append to it. */
  readonly #length: number;
  readonly #regions: readonly InexactRegion[];
  /** The bytes of the listed file in the inexact ranges of the mirror. */
  readonly pieces: Buffer[];
  /** Bytes that are compared with the text. */
  readonly #window = new GrowingBuffer();
  /** Bytes after the mirror that wait for the proof. */
  #waiting: Buffer[] = [];
  #isProven = false;
  /** The last bytes received; used only without `shown`: the caller requests the text near the end. */
  #end: Buffer = Buffer.alloc(0);
  #differsAt: number | undefined;
  #at = 0;

  /**
   * `sink` receives the bytes after the mirror, if the mirror is the beginning of the listed file. Without `shown`, the
   * last bytes are compared with a text that the caller requests after the download.
   */
  constructor(file: LiveFile, shown: ShownPart | undefined, isOtherwise: boolean, sink: Sink) {
    this.#file = file;
    this.#shown = shown;
    this.#isOtherwise = isOtherwise;
    this.#sink = sink;
    this.#length = file.length;
    this.#regions = file.row.inexact;
    this.pieces = this.#regions.map(() => Buffer.alloc(0));
  }

  /** @throws AnotherFile; what the sink throws */
  async take(bytes: Buffer): Promise<void> {
    const start = this.#at;
    this.#at += bytes.length;
    if (this.#shown === undefined) this.#end = Buffer.concat([this.#end, bytes]).subarray(-END_BYTES);
    else if (!this.#isProven) {
      const skipped = Math.max(0, this.#shown.offset - start);
      this.#window.append(bytes.subarray(skipped, skipped + COMPARED_BYTES - this.#window.length));
    }
    if (this.#differsAt === undefined) await this.#compareWithMirror(bytes, start);
    if (this.#shown !== undefined && this.#window.length >= COMPARED_BYTES) await this.#prove(this.#shown);
  }

  /** The download is complete. @throws AnotherFile; what the sink throws */
  async end(): Promise<void> {
    if (this.#shown !== undefined) await this.#prove(this.#shown);
  }

  /** Selects the last bytes for the comparison. Returns their offset: at a character that is no byte-order mark. */
  alignEnd(): number {
    let skipped = 0;
    while (skipped < this.#end.length && !startsCharacter(this.#end, skipped)) skipped++;
    if (skipped === this.#end.length) skipped = Math.min(1, skipped);
    this.#window.append(this.#end.subarray(skipped));
    return this.#at - this.#end.length + skipped;
  }

  /** The result of the comparison of the mirror with the listed file. */
  get found(): 'same' | Difference {
    if (this.#differsAt !== undefined) return { kind: 'different', at: this.#differsAt };
    return this.#at < this.#length ? { kind: 'shorter', at: this.#at } : 'same';
  }

  async #compareWithMirror(bytes: Buffer, start: number): Promise<void> {
    const there = await this.#file.read(start, Math.min(start + bytes.length, this.#length));
    const shared = bytes.subarray(0, there.length);
    for (const [index, region] of this.#regions.entries()) {
      if (!overlaps(region, start, start + shared.length)) continue;
      const part = shared.subarray(Math.max(0, region.start - start), region.start + region.length - start);
      this.pieces[index] = Buffer.concat([this.pieces[index] ?? part.subarray(0, 0), part]);
    }
    const common = commonLength(maskRegions(shared, start, this.#regions), there);
    const rest = bytes.subarray(there.length);
    if (common < there.length) this.#differsAt = start + common;
    else if (rest.length === 0) return;
    else if (this.#isProven || this.#shown === undefined) await this.#sink(rest);
    else this.#waiting.push(Buffer.from(rest));
  }

  async #prove(shown: ShownPart): Promise<void> {
    if (this.#isProven) return;
    if (!(await this.isShown(shown))) throw new AnotherFile();
    this.#isProven = true;
    for (const bytes of this.#waiting) if (this.#differsAt === undefined) await this.#sink(bytes);
    this.#waiting = [];
  }

  /** Whether the text matches the last bytes. How many U+FFFD stand for undecodable bytes proves nothing. */
  async isShown({ offset, text }: ShownPart): Promise<boolean> {
    const window = Buffer.from(this.#window.view());
    // An empty text fits only an empty file, or a file that is a stripped byte-order mark.
    if (text.atEnd() ? window.length > 0 && this.#file.row.listedName === null : window.length === 0) return false;
    const isUtf8 =
      (await matches(text, window)) ||
      (offset === 0 && standsAt(window, 0, BYTE_ORDER_MARK) && (await matches(text, window, BYTE_ORDER_MARK.length))) ||
      (await isUtf16(text, window));
    const isBeyondAscii = await text.isBeyondAscii();
    const isOther = !isUtf8 && isBeyondAscii && (await matches(text.fork(true), window));
    if (isBeyondAscii && isUtf8) this.evidence = 'utf-8';
    if (isOther && !mayBeUtf16(window.subarray(0, 2))) this.evidence = 'other';
    return isUtf8 || (isOther && this.#isOtherwise);
  }
}

/** Whether a text shows the bytes from `from` on; the file may have grown after the text was requested. */
async function matches(text: Reading, bytes: Buffer, from = 0): Promise<boolean> {
  const read = async (start: number, end: number) => bytes.subarray(start, end);
  const rest = text.fork();
  if ((await match(rest, { read }, { from, to: bytes.length })).kind === 'different') return false;
  // Bytes that end within a character of the text are no UTF-8: another decoder makes this character of its first byte.
  const [next = 0] = await rest.peek(1);
  return (next & 0xc0) !== 0x80 || bytes.length >= END_BYTES;
}

/** Whether a text shows bytes that begin with a mark of UTF-16, as one decoder to the end does. */
async function isUtf16(text: Reading, bytes: Buffer): Promise<boolean> {
  const mark = bytes.subarray(0, 2);
  if (mark.length < 2 || !mayBeUtf16(mark)) return false;
  const decoder = new TextDecoder(mark[0] === 0xff ? 'utf-16le' : 'utf-16be');
  const shown = Buffer.from(decoder.decode(bytes, { stream: true }));
  return startsAlike(shown, await text.text(shown.length));
}
