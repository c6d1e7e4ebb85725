/** Writes a mirror: how long it is, and which of its bytes were appended and are not flushed yet. */
import type { Mirror, MirrorLook } from './mirror.ts';

/** So many at a time are flushed while more are appended, so that little is left to wait for. */
const AHEAD_BYTES = 8 * 1024 * 1024;
/** Bytes appended before they are flushed and committed within one long append. */
const COMMIT_BYTES = 32 * 1024 * 1024;

export class MirrorWriter {
  readonly #mirror: Mirror;
  readonly #onFlushFailure: () => void;
  #length: number;
  #appended = 0;
  #unflushed = 0;
  /** The part of the unflushed bytes that is being flushed, or was. */
  #ahead = 0;
  #flushingAhead: Promise<void> = Promise.resolve();

  /** `onFlushFailure` is called as soon as any flush fails: from then on, unflushed bytes may be lost. */
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

  /** Bytes of the mirror that were not appended after the last flush. */
  get flushedLength(): number {
    return Math.max(0, this.#length - this.#unflushed);
  }

  /** Whether so much is not flushed that it should be, and be committed. */
  get wantsCommit(): boolean {
    return this.#unflushed >= COMMIT_BYTES;
  }

  /** Appends all of `bytes`; what fitted before a failure is there to stay, and counts. */
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

  /** Removes what stands behind `length`. */
  async cut(length: number): Promise<void> {
    await this.#mirror.cut(length);
    this.#unflushed = Math.max(0, this.#unflushed - (this.#length - length));
    this.#length = length;
  }

  /** Bytes that an earlier process appended, which is not known to have flushed them. */
  foundUnflushed(bytes: number): void {
    this.#unflushed += bytes;
  }

  /** A new generation has nothing yet. */
  emptied(): void {
    this.#length = 0;
    this.#unflushed = 0;
  }

  /** Flushes if that is much, and does not wait; whether it failed is told by the flush that is waited for. */
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

  /** After a flush that failed: cuts the mirror to `length`, behind which nothing may be flushed, and looks at it. */
  async takeBack(length: number): Promise<MirrorLook> {
    await this.#mirror.cut(length);
    const look = await this.#mirror.look();
    this.#length = look.length;
    this.#unflushed = 0;
    return look;
  }

  /** Nothing is being flushed any more. */
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
