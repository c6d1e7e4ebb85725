/** Writes a mirror: tracks its length and the appended bytes that are not flushed yet. */
import type { Mirror, MirrorLook } from './mirror.ts';

/** Unflushed bytes that start a flush in the background. */
const AHEAD_BYTES = 8 * 1024 * 1024;
/** Bytes appended before they are flushed and committed within one long append. */
const COMMIT_BYTES = 32 * 1024 * 1024;

export class MirrorWriter {
  readonly #mirror: Mirror;
  readonly #onFlushFailure: () => void;
  #length: number;
  #appended = 0;
  #unflushed = 0;
  /** Unflushed bytes that the background flush covers. */
  #ahead = 0;
  #flushingAhead: Promise<void> = Promise.resolve();

  /** `onFlushFailure` is called when a flush fails: from then on, unflushed bytes may be lost. */
  constructor(mirror: Mirror, length: number, onFlushFailure: () => void) {
    this.#mirror = mirror;
    this.#length = length;
    this.#onFlushFailure = onFlushFailure;
  }

  /** Bytes of the mirror. */
  get length(): number {
    return this.#length;
  }

  /** Bytes appended so far. */
  get appended(): number {
    return this.#appended;
  }

  /** Length of the mirror without unflushed bytes. */
  get flushedLength(): number {
    return Math.max(0, this.#length - this.#unflushed);
  }

  /** Whether enough bytes are unflushed that the caller should flush and commit. */
  get wantsCommit(): boolean {
    return this.#unflushed >= COMMIT_BYTES;
  }

  /** Appends all of `bytes`; bytes that were written before a failure stay and count. */
  async append(bytes: Buffer): Promise<void> {
    try {
      await this.#mirror.write(this.#length, bytes);
    } catch (error) {
      const look = await this.#mirror.look().catch(() => undefined);
      this.#count(Math.max(0, (look?.length ?? 0) - this.#length));
      throw error;
    }
    this.#count(bytes.length);
  }

  /** Truncates the mirror to `length`. */
  async cut(length: number): Promise<void> {
    await this.#mirror.cut(length);
    this.#unflushed = Math.max(0, this.#unflushed - (this.#length - length));
    this.#length = length;
  }

  /** Counts bytes that an earlier process appended and may not have flushed. */
  foundUnflushed(bytes: number): void {
    this.#unflushed += bytes;
  }

  /** Resets the counts for a new generation. */
  emptied(): void {
    this.#length = 0;
    this.#unflushed = 0;
  }

  /** Starts a flush in the background if enough is unflushed; `flush` reports its failure. */
  flushAhead(): void {
    if (this.#unflushed - this.#ahead < AHEAD_BYTES) return;
    this.#ahead = this.#unflushed;
    this.#flushingAhead = this.#flushingAhead.then(() => this.#flushMirror());
    this.#flushingAhead.catch(() => {});
  }

  async flush(): Promise<void> {
    const ahead = this.#flushingAhead;
    this.#flushingAhead = Promise.resolve();
    this.#ahead = 0;
    await ahead;
    await this.#flushMirror();
    this.#unflushed = 0;
  }

  /** Truncates the mirror after a failed flush to `length`, the bytes known to be flushed; returns its status. */
  async takeBack(length: number): Promise<MirrorLook> {
    await this.#mirror.cut(length);
    const look = await this.#mirror.look();
    this.#length = look.length;
    this.#unflushed = 0;
    return look;
  }

  /** Waits for the background flush. */
  async end(): Promise<void> {
    await this.#flushingAhead.catch(() => {});
  }

  #count(appended: number): void {
    this.#length += appended;
    this.#appended += appended;
    this.#unflushed += appended;
  }

  async #flushMirror(): Promise<void> {
    try {
      await this.#mirror.flush();
    } catch (error) {
      this.#onFlushFailure();
      throw error;
    }
  }
}
