/**
 * The raw bytes of a listed file while they arrive: it is taken for the live file only if the mirror is its beginning
 * and its next bytes, decoded, are what the service shows as text. The first thing that says otherwise ends it.
 */
import { characterStart, commonLength, startsAlike } from '../../../bytes.ts';
import { JobtailError } from '../../../errors.ts';
import { GrowingBuffer } from '../../../growing-buffer.ts';
import type { InexactRegion } from '../../../store/rows.ts';
import type { Sink } from '../../ports.ts';
import { type Difference, match } from '../match.ts';
import { maskRegions, overlaps } from '../mirror/inexact-regions.ts';
import type { LiveFile } from '../mirror/live-file.ts';
import { CodePage } from '../text/code-page.ts';
import { MARKS } from '../text/marks.ts';
import { EncodedReading, type Reading } from '../text/reading.ts';

/** Bytes that are compared with the text, where all of a file is. */
const WINDOW_BYTES = 64 * 1024;
const END_BYTES = 16 * 1024;
const LONGEST_CHARACTER_BYTES = 4;

/** The listed file is not the one that is looked for: the download is broken off, and nothing failed. */
export class AnotherFile extends JobtailError {
  constructor() {
    super('aborted', 'the listed file is another one');
  }
}

/** What the service shows behind the mirror, and how many bytes are to be compared with it. */
export interface ShownText {
  /** As each decoder that the service may have would have shown it. */
  readonly texts: readonly Reading[];
  readonly comparedBytes: number;
}

/** What takes the bytes of a listed file, in order, and is told when all of them came. */
export interface Arrival {
  take(bytes: Buffer): Promise<void>;
  end(): Promise<void>;
}

export class RawArrival implements Arrival {
  readonly #file: LiveFile;
  readonly #shown: ShownText | undefined;
  readonly #sink: Sink;
  /** Of the mirror as it was at the beginning: the sink may append to it. */
  readonly #length: number;
  readonly #regions: RegionBytes;
  /** Bytes behind the mirror that wait until enough of them are there to be compared; undefined once they were. */
  #head: GrowingBuffer | undefined;
  #at = 0;

  /** `sink` is given the bytes behind the mirror; without `shown`, these are not compared. */
  constructor(file: LiveFile, shown: ShownText | undefined, sink: Sink) {
    this.#file = file;
    this.#shown = shown;
    this.#sink = sink;
    this.#length = file.length;
    this.#regions = new RegionBytes(file.row.inexact);
    this.#head = shown === undefined ? undefined : new GrowingBuffer();
  }

  /** The bytes of the mirror's inexact regions. */
  get pieces(): readonly Buffer[] {
    return this.#regions.pieces;
  }

  /** @throws AnotherFile; what the sink throws */
  async take(bytes: Buffer): Promise<void> {
    const shared = bytes.subarray(0, Math.max(0, this.#length - this.#at));
    if (shared.length > 0) await this.#compareWithMirror(shared);
    this.#at += bytes.length;
    const rest = bytes.subarray(shared.length);
    if (rest.length === 0) return;
    if (this.#head === undefined) return await this.#sink(rest);
    this.#head.append(rest);
    if (this.#head.length >= (this.#shown?.comparedBytes ?? 0)) await this.#handOnHead();
  }

  /** All bytes are there. @throws AnotherFile; what the sink throws */
  async end(): Promise<void> {
    if (this.#at < this.#length || this.#head?.length === 0) throw new AnotherFile();
    await this.#handOnHead();
  }

  async #compareWithMirror(shared: Buffer): Promise<void> {
    const start = this.#at;
    const end = start + shared.length;
    const there = await this.#file.read(start, end);
    if (!there.equals(this.#regions.take(shared, start))) throw new AnotherFile();
  }

  async #handOnHead(): Promise<void> {
    if (this.#head === undefined || this.#shown === undefined) return;
    const head = this.#head.view();
    if (!(await isShownAs(this.#shown, head, this.#length === 0))) throw new AnotherFile();
    this.#head = undefined;
    await this.#sink(head);
  }
}

/** The inexact regions of a mirror, and what a listed file has there. */
class RegionBytes {
  readonly #regions: readonly InexactRegion[];
  readonly pieces: Buffer[];

  constructor(regions: readonly InexactRegion[]) {
    this.#regions = regions;
    this.pieces = regions.map(() => Buffer.alloc(0));
  }

  /** Keeps those of the next bytes, which stand at `at`; returns the bytes with the regions made unknown. */
  take(bytes: Buffer, at: number): Buffer {
    for (const [index, region] of this.#regions.entries()) {
      if (!overlaps(region, at, at + bytes.length)) continue;
      const part = bytes.subarray(Math.max(0, region.start - at), region.start + region.length - at);
      this.pieces[index] = Buffer.concat([this.pieces[index] ?? part.subarray(0, 0), part]);
    }
    return maskRegions(bytes, at, this.#regions);
  }
}

/** What the service shows from an offset on, as each decoder that it may have would have shown it. */
export interface ShownPart {
  readonly from: number;
  readonly texts: readonly Reading[];
}

/** All of a listed file, compared with the mirror; the sink is given what follows that. */
export class WholeArrival implements Arrival {
  readonly #file: LiveFile;
  readonly #sink: Sink;
  readonly #length: number;
  readonly #regions: RegionBytes;
  /** Where the bytes begin that are compared with a text; undefined if that is near their end. */
  readonly #from: number | undefined;
  readonly #window = new GrowingBuffer();
  #end: Buffer = Buffer.alloc(0);
  #differsAt: number | undefined;
  #at = 0;

  constructor(file: LiveFile, from: number | undefined, sink: Sink) {
    this.#file = file;
    this.#from = from;
    this.#sink = sink;
    this.#length = file.length;
    this.#regions = new RegionBytes(file.row.inexact);
  }

  /** The bytes of the mirror's inexact regions. */
  get pieces(): readonly Buffer[] {
    return this.#regions.pieces;
  }

  async take(bytes: Buffer): Promise<void> {
    const start = this.#at;
    this.#at += bytes.length;
    if (this.#from === undefined) this.#end = Buffer.concat([this.#end, bytes]).subarray(-END_BYTES);
    else {
      const skipped = Math.max(0, this.#from - start);
      this.#window.append(bytes.subarray(skipped, skipped + WINDOW_BYTES - this.#window.length));
    }
    if (this.#differsAt !== undefined) return;
    const there = await this.#file.read(start, Math.min(this.#at, this.#length));
    const here = this.#regions.take(bytes.subarray(0, there.length), start);
    const common = commonLength(here, there);
    if (common < there.length) this.#differsAt = start + common;
    else if (bytes.length > there.length) await this.#sink(bytes.subarray(there.length));
  }

  async end(): Promise<void> {}

  /** An offset near the end of the bytes, from which a text is to be compared with them. */
  alignEnd(): number {
    const isWhole = this.#end.length === this.#at;
    const skipped = isWhole ? 0 : characterStart(this.#end, LONGEST_CHARACTER_BYTES);
    this.#window.append(this.#end.subarray(skipped));
    return this.#at - this.#end.length + skipped;
  }

  /** Undefined if it is another file. */
  async found({ texts }: ShownPart): Promise<'same' | Difference | undefined> {
    const head = this.#window.view();
    for (const text of texts) {
      // Of nothing, nothing is shown; but a text without any may be that of a mark.
      const isOther = text.atEnd() ? head.length > 0 && this.#file.row.listedName === null : head.length === 0;
      if (isOther || !(await isShownAs({ texts: [text], comparedBytes: WINDOW_BYTES }, head, true))) continue;
      if (this.#differsAt !== undefined) return { kind: 'different', at: this.#differsAt };
      return this.#at < this.#length ? { kind: 'shorter', at: this.#at } : 'same';
    }
    return undefined;
  }
}

/** Whether the text is what a service shows of `head`; at its very beginning (`isBeginning`) a mark may stand. */
async function isShownAs({ texts, comparedBytes }: ShownText, head: Buffer, isBeginning: boolean): Promise<boolean> {
  const compared = head.subarray(0, comparedBytes);
  const asBytes = [compared];
  const mark = isBeginning && MARKS.find(({ bytes }) => startsAlike(bytes, compared.subarray(0, bytes.length)));
  // A mark that was swallowed, or that made UTF-16 of what follows it.
  if (mark)
    asBytes.push(
      mark.encoder === undefined
        ? compared.subarray(mark.bytes.length)
        : mark.encoder.decode(compared.subarray(mark.bytes.length)),
    );
  for (const bytes of asBytes) {
    const read = async (start: number, end: number) => bytes.subarray(start, end);
    for (const reading of texts.flatMap(readingsOf)) {
      // The text may be older than the raw bytes, and then ends before them.
      const found = await match(reading, { read }, { from: 0, to: bytes.length });
      if (found.kind !== 'different') return true;
    }
  }
  return false;
}

/** Of several code pages, one has to show all of it. */
function readingsOf(text: Reading): Reading[] {
  if (!(text instanceof EncodedReading && text.encoder instanceof CodePage)) return [text.fork()];
  return text.encoder.names.map((name) => text.as(new CodePage([name])));
}
