/** The bytes of a mirror that were appended and are not flushed yet. */
import type { Mirror } from './mirror.ts';

/** So many at a time are flushed while more are appended, so that little is left to wait for. */
const AHEAD_BYTES = 8 * 1024 * 1024;

export class Flushing {
  readonly #mirror: Mirror;
  readonly #onFailure: () => void;
  #bytes = 0;
  /** The part of them that is being flushed, or was. */
  #ahead = 0;
  #flushingAhead: Promise<void> = Promise.resolve();

  /** `onFailure` is called as soon as any flush fails: from then on, unflushed bytes may be lost. */
  constructor(mirror: Mirror, onFailure: () => void) {
    this.#mirror = mirror;
    this.#onFailure = onFailure;
  }

  /** How many there are. */
  get bytes(): number {
    return this.#bytes;
  }

  added(bytes: number): void {
    this.#bytes += bytes;
  }

  /** They were cut off. */
  removed(bytes: number): void {
    this.#bytes = Math.max(0, this.#bytes - bytes);
  }

  /** Flushes them if they are many, and does not wait; whether it failed is told by the flush that is waited for. */
  flushAhead(): void {
    if (this.#bytes - this.#ahead < AHEAD_BYTES) return;
    this.#ahead = this.#bytes;
    this.#flushingAhead = this.#flushingAhead.then(() => this.#flushMirror());
    this.#flushingAhead.catch(() => {});
  }

  async flush(): Promise<void> {
    const ahead = this.#flushingAhead;
    this.#flushingAhead = Promise.resolve();
    this.#ahead = 0;
    await ahead;
    await this.#flushMirror();
    this.#bytes = 0;
  }

  /** Nothing is being flushed any more. */
  async end(): Promise<void> {
    await this.#flushingAhead.catch(() => {});
  }

  async #flushMirror(): Promise<void> {
    try {
      await this.#mirror.flush();
    } catch (error) {
      this.#onFailure();
      throw error;
    }
  }
}
