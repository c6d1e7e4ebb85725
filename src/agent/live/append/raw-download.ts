/**
 * One raw download of a listed file. Compares its bytes, while they arrive, with the mirror and with the text of the
 * live file. Passes no byte to the sink before the text proves that the listed file is the live file.
 */
import { commonLength, GrowingBuffer } from '../../../bytes.ts';
import { JobtailError } from '../../../errors.ts';
import type { InexactRegion } from '../../../store/rows.ts';
import type { Sink } from '../../ports.ts';
import { type Difference, match } from '../match.ts';
import { maskRegions, overlaps } from '../mirror/inexact-regions.ts';
import type { LiveFile } from '../mirror/live-file.ts';
import { startsCharacter } from '../offsets.ts';
import { CodePage, type TextEncoding } from '../text/encoding.ts';
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

/** The text from an offset on, read with each decoder that the server may have. */
export interface ShownPart {
  readonly offset: number;
  readonly texts: readonly Reading[];
}

/** The text with each decoder that the server may have: if it is UTF-8, also with each code page that can show it. */
export async function shownBy(offset: number, text: Reading, encoding: TextEncoding): Promise<ShownPart> {
  const { codePage } = text;
  const names = codePage?.names ?? encoding.codePagesShowing(Buffer.alloc(0), await text.text());
  const texts = names.map((name) => text.fork(new CodePage([name])));
  return { offset, texts: codePage === undefined ? [text, ...texts] : texts };
}

export class RawDownload {
  readonly #file: LiveFile;
  readonly #shown: ShownPart | undefined;
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
  constructor(file: LiveFile, shown: ShownPart | undefined, sink: Sink) {
    this.#file = file;
    this.#shown = shown;
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

  /** Whether one of the texts matches the last bytes. */
  async isShown({ texts }: ShownPart): Promise<boolean> {
    const window = this.#window.view();
    const read = async (start: number, end: number) => window.subarray(start, end);
    for (const text of texts) {
      // An empty text fits only an empty file, or a file that is a stripped byte-order mark.
      const isOther = text.atEnd() ? window.length > 0 && this.#file.row.listedName === null : window.length === 0;
      if (isOther) continue;
      // `shorter` is accepted: the file may have grown after the text was requested.
      const found = await match(text.fork(), { read }, { from: 0, to: window.length });
      if (found.kind !== 'different') return true;
    }
    return false;
  }
}
