/**
 * One raw download of a file on the server. Compares its bytes, while they arrive, with the mirror and with the text of
 * the live file. Writes no byte before the text proves that the file is the live file, and the mirror is its beginning.
 */
import { createHash } from 'node:crypto';
import { BYTE_ORDER_MARK, commonLength, GrowingBuffer, standsAt, startsAlike } from '../../../bytes.ts';
import { JobtailError } from '../../../errors.ts';
import type { InexactRegion } from '../../../store/rows.ts';
import type { Content } from '../../ports/server.ts';
import { type Difference, match } from '../match.ts';
import { maskRegions, overlaps } from '../mirror/inexact-regions.ts';
import type { LiveFile } from '../mirror/live-file.ts';
import { startsCharacter } from '../offsets.ts';
import type { Shown } from '../steps.ts';
import { mayBeUtf16 } from '../text/byte-order-mark.ts';
import type { ServerDecoding } from '../text/decoding.ts';
import { Reading } from '../text/reading.ts';

/** Number of bytes that are compared with the text. */
const COMPARED_BYTES = 64 * 1024;
/** The same at the end of a file that is too long to be sent as text. */
const END_BYTES = 16 * 1024;

/** The file is not the live file: the download is cancelled; this is no failure. */
export class AnotherFile extends JobtailError {
  constructor() {
    super('aborted', 'the listed file is another one');
  }
}

export interface TextProof {
  readonly isShown: boolean;
  /** How the server decodes, if the bytes show it. */
  readonly evidence: Exclude<ServerDecoding, 'unknown'> | undefined;
}

/** The end of a file, from a character on that is no byte-order mark: the text from there is short enough to be sent. */
export class RawEnd {
  #end: Buffer = Buffer.alloc(0);
  #length = 0;

  async take(bytes: Buffer): Promise<void> {
    this.#length += bytes.length;
    this.#end = Buffer.concat([this.#end, bytes]).subarray(-END_BYTES);
  }

  async end(): Promise<void> {}

  /** Its offset and bytes. */
  found(): { readonly offset: number; readonly bytes: Buffer } {
    let skipped = 0;
    while (skipped < this.#end.length && !startsCharacter(this.#end, skipped)) skipped++;
    if (skipped === this.#end.length) skipped = Math.min(1, skipped);
    return { offset: this.#length - this.#end.length + skipped, bytes: this.#end.subarray(skipped) };
  }
}

interface RawDownloadOptions {
  /** Undefined if the file is proven. */
  readonly shown: Shown | undefined;
  /** The server does not decode UTF-8: only the ASCII characters of a text count. */
  readonly isOtherwise: boolean;
  /** Whether the bytes after the mirror are appended to it. */
  readonly mayAppend: boolean;
}

export class RawDownload {
  readonly path: string;
  readonly #file: LiveFile;
  readonly #options: RawDownloadOptions;
  evidence: TextProof['evidence'];
  /** Length and inexact ranges of the mirror at the start. */
  readonly #length: number;
  readonly #regions: readonly InexactRegion[];
  /** The bytes of the file in the inexact ranges of the mirror. */
  readonly #pieces: Buffer[];
  /** The bytes that wait for the proof, from `#windowAt` on: those that the text shows, and those after the mirror. */
  readonly #window = new GrowingBuffer();
  readonly #windowAt: number;
  #isProven: boolean;
  #isAccepted = false;
  #differsAt: number | undefined;
  #at = 0;
  readonly #hash = createHash('sha256');

  constructor(file: LiveFile, path: string, options: RawDownloadOptions) {
    this.path = path;
    this.#file = file;
    this.#options = options;
    this.#isProven = options.shown === undefined;
    this.#length = file.length;
    this.#windowAt = Math.min(options.shown?.offset ?? 0, file.length);
    this.#regions = file.row.inexact;
    this.#pieces = this.#regions.map(() => Buffer.alloc(0));
  }

  /** @throws AnotherFile; what writing to the mirror throws */
  async take(bytes: Buffer): Promise<void> {
    const start = this.#at;
    this.#at += bytes.length;
    if (!this.#options.mayAppend) this.#hash.update(bytes);
    if (this.#differsAt === undefined) await this.#compareWithMirror(bytes, start);
    if (this.#isProven) return await this.#append(bytes.subarray(Math.max(0, this.#length - start)));
    this.#window.append(bytes.subarray(Math.max(0, this.#windowAt - start)));
    if (this.#windowAt + this.#window.length >= (this.#options.shown?.offset ?? 0) + COMPARED_BYTES)
      await this.#prove();
  }

  /** The download is complete. @throws AnotherFile; what writing to the mirror throws */
  async end(): Promise<void> {
    await this.#prove();
    await this.#append(Buffer.alloc(0));
  }

  /** The result of the comparison of the mirror with the file. */
  get found(): 'same' | Difference {
    if (this.#differsAt !== undefined) return { kind: 'different', at: this.#differsAt };
    return this.#at < this.#length ? { kind: 'shorter', at: this.#at } : 'same';
  }

  /** Of all its bytes, unless they may be appended. */
  digest(): string {
    return this.#hash.digest('hex');
  }

  async #compareWithMirror(bytes: Buffer, start: number): Promise<void> {
    const there = await this.#file.read(start, Math.min(start + bytes.length, this.#length));
    const shared = bytes.subarray(0, there.length);
    for (const [index, region] of this.#regions.entries()) {
      if (!overlaps(region, start, start + shared.length)) continue;
      const part = shared.subarray(Math.max(0, region.start - start), region.start + region.length - start);
      this.#pieces[index] = Buffer.concat([this.#pieces[index] ?? part.subarray(0, 0), part]);
    }
    const common = commonLength(maskRegions(shared, start, this.#regions), there);
    if (common < there.length) this.#differsAt = start + common;
  }

  async #prove(): Promise<void> {
    const { shown, isOtherwise } = this.#options;
    if (shown === undefined || this.#isProven) return;
    const waiting = this.#window.view();
    const compared = waiting.subarray(shown.offset - this.#windowAt).subarray(0, COMPARED_BYTES);
    const proof = await proofBy(shown, compared, this.#file, isOtherwise);
    this.evidence = proof.evidence;
    if (!proof.isShown) throw new AnotherFile();
    this.#isProven = true;
    await this.#append(waiting.subarray(this.#length - this.#windowAt));
  }

  /** Appends bytes after the mirror, if that is the beginning of the file: so the inexact ranges are mended before. */
  async #append(bytes: Buffer): Promise<void> {
    if (!this.#options.mayAppend || this.found !== 'same') return;
    if (!this.#isAccepted) {
      this.#isAccepted = true;
      if (this.#pieces.length > 0) await this.#file.mend(this.#pieces);
      // All of the mirror was compared, not only what follows the text's offset.
      this.#file.markCompared('raw bytes');
    }
    if (bytes.length > 0) await this.#file.append(bytes);
  }
}

/** Compares a text with the bytes at its offset. How many U+FFFD stand for undecodable bytes proves nothing. */
export async function proofBy(
  { offset, content }: Shown,
  bytes: Buffer,
  { row }: LiveFile,
  isOtherwise: boolean,
): Promise<TextProof> {
  // An empty text fits only an empty file, or a file that is a stripped byte-order mark.
  if (content.length === 0 ? bytes.length > 0 && row.listedName === null : bytes.length === 0)
    return { isShown: false, evidence: undefined };
  const isUtf8 =
    (await matches(new Reading(content), bytes)) ||
    (offset === 0 &&
      standsAt(bytes, 0, BYTE_ORDER_MARK) &&
      (await matches(new Reading(content), bytes, BYTE_ORDER_MARK.length))) ||
    (await isUtf16(content, bytes));
  const isBeyondAscii = await new Reading(content).isBeyondAscii();
  const isOther = !isUtf8 && isBeyondAscii && (await matches(new Reading(content, true), bytes));
  const evidence =
    isBeyondAscii && isUtf8 ? 'utf-8' : isOther && !mayBeUtf16(bytes.subarray(0, 2)) ? 'other' : undefined;
  return { isShown: isUtf8 || (isOther && isOtherwise), evidence };
}

/** Whether a text shows the bytes from `from` on; the file may have grown after the text was requested. */
async function matches(text: Reading, bytes: Buffer, from = 0): Promise<boolean> {
  const read = async (start: number, end: number) => bytes.subarray(start, end);
  if ((await match(text, { read }, { from, to: bytes.length })).kind === 'different') return false;
  // Bytes that end within a character of the text are no UTF-8: another decoder makes this character of its first byte.
  const [next = 0] = await text.peek(1);
  return (next & 0xc0) !== 0x80 || bytes.length >= END_BYTES;
}

/** Whether a text shows bytes that begin with a mark of UTF-16, as one decoder to the end does. */
async function isUtf16(content: Content, bytes: Buffer): Promise<boolean> {
  const mark = bytes.subarray(0, 2);
  if (mark.length < 2 || !mayBeUtf16(mark)) return false;
  const decoder = new TextDecoder(mark[0] === 0xff ? 'utf-16le' : 'utf-16be');
  const shown = Buffer.from(decoder.decode(bytes, { stream: true }));
  return startsAlike(shown, await content.read(0, shown.length));
}
