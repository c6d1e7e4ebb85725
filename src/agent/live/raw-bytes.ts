/**
 * Compares mirrors with the raw bytes of their remote files, which are the authority, and appends what follows. Each
 * comparison costs a download of the whole file, so there are pauses between them.
 */
import { nominalPause } from '../../back-off.ts';
import { commonLength } from '../../bytes.ts';
import type { LiveBytes } from '../ports/live-source.ts';
import type { Match } from './decide.ts';
import type { FileMemory } from './memory.ts';
import type { LiveFile } from './mirror/live-file.ts';

/** A file of this size is downloaded again after one second at the earliest, a larger one proportionally later. */
const BYTES_A_SECOND = 256 * 1024;
const MAX_WAIT_MS = 10 * 60_000;

export class RawBytes {
  readonly #now: () => number;

  /** `now`: monotonic clock, in milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /**
   * Whether the back-off allows a request now; the last pass does not wait. If `response` shows that the file changed,
   * downloads without news before it lengthen no pause.
   */
  isDue({ raw }: FileMemory, isFinal: boolean, response?: LiveBytes): boolean {
    const isNew = response !== undefined && raw.endOffset !== undefined && endOffset(response) !== raw.endOffset;
    const failures = raw.refusals + (isNew ? 0 : raw.unchanged);
    return isFinal || this.#now() >= raw.at + nominalPause(failures, { firstMs: raw.firstMs, maxMs: MAX_WAIT_MS });
  }

  /**
   * Compares all of the mirror with the raw file of a response, and appends what follows if the mirror is its beginning.
   * Undefined if there are no raw bytes now.
   */
  async catchUp(file: LiveFile, response: LiveBytes, isFinal: boolean): Promise<Match | undefined> {
    const { raw } = file.memory;
    const before = file.length;
    let received = new Received(file);
    const outcome = await response.raw.download(() => {
      received = new Received(file);
      return (bytes) => received.take(bytes);
    });
    const compared = outcome.isThere ? received.finish() : undefined;
    const isProof = outcome.isThere && (compared?.kind === 'same' || !outcome.isListed);
    const found = isProof ? compared : undefined;
    raw.reason = isProof ? '' : outcome.isThere ? 'no listed file begins with the mirror' : outcome.reason;
    const { from, sameness } = response;
    raw.compared = found?.kind === 'same' ? { from, sameness, length: file.length } : undefined;
    // A last pass does not wait, so its refusals set no pause.
    if (found !== undefined || !isFinal) {
      raw.firstMs = (1 + (file.length + (found === undefined ? response.size : 0)) / BYTES_A_SECOND) * 1_000;
      raw.at = this.#now();
      raw.endOffset = endOffset(response);
      raw.unchanged = found?.kind === 'same' && file.length === before ? raw.unchanged + 1 : 0;
      raw.refusals = found === undefined ? raw.refusals + 1 : 0;
    }
    if (isProof && outcome.listedName != null && file.length > 0) file.note({ listedName: outcome.listedName });
    return found;
  }
}

const endOffset = ({ from, size }: LiveBytes) => from + size;

/** The bytes of one raw file. The source sends none after the mirror before it is proven. */
class Received {
  readonly #file: LiveFile;
  /** Length of the mirror at the start. */
  readonly #length: number;
  #at = 0;
  #differsAt: number | undefined;

  constructor(file: LiveFile) {
    this.#file = file;
    this.#length = file.length;
  }

  async take(bytes: Buffer): Promise<void> {
    const start = this.#at;
    this.#at += bytes.length;
    if (this.#differsAt !== undefined) return;
    const there = await this.#file.read(start, Math.min(this.#at, this.#length));
    const common = commonLength(bytes, there);
    if (common < there.length) this.#differsAt = start + common;
    else if (this.#at > this.#length) {
      this.#file.markCompared('raw bytes');
      await this.#file.append(bytes.subarray(there.length));
    }
  }

  /** What was received, as a whole. A mirror that it has is intact. */
  finish(): Match {
    if (this.#differsAt !== undefined) return { kind: 'different', at: this.#differsAt, isByAscii: false };
    if (this.#at < this.#length) return { kind: 'shorter', at: this.#at };
    this.#file.markCompared('raw bytes');
    return { kind: 'same', at: this.#length };
  }
}
