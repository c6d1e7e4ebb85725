/** Receivers of the bulky texts of a response: the interface, and a file. */
import type { Sink } from '../../agent/ports/server.ts';
import { GrowingBuffer } from '../../bytes.ts';
import { JobtailError } from '../../errors.ts';
import { untilAborted } from '../../in-turn.ts';
import { malformed } from '../wrong-responses.ts';

/** Receives the bulky texts of a response one after the other while it arrives. */
export interface Lifted {
  /** text: the content of each item. base64: the result, decoded. */
  readonly encoding: 'text' | 'base64';
  /** A text begins (also an empty one, but not nil). They are counted from 0. */
  begin(): void;
  /** Whole characters, or decoded bytes. Valid until the call returns. */
  bytes(bytes: Buffer): void;
  /** It is complete; the rest of the response may still be invalid. */
  end(): void;
  /** Called between network chunks; the response is not read further before the promise has resolved. */
  flush(): Promise<void>;
  readonly hasEnough?: boolean;
}

/** Larger pieces, because each call and each write has a cost. */
const PIECE_BYTES = 256 * 1024;

/** Passes bytes on in pieces: the next piece is collected while the sink has one. */
export class StreamedFile implements Lifted {
  readonly encoding = 'base64';
  readonly #sink: Sink;
  readonly #signal: AbortSignal;
  #gathered = new GrowingBuffer();
  #handedOn = new GrowingBuffer();
  #taken: Promise<void> = Promise.resolve();
  #inside = false;
  #length = 0;
  #begun = false;

  constructor(sink: Sink, signal: AbortSignal) {
    this.#sink = sink;
    this.#signal = signal;
  }

  /** Bytes that the sink has taken; undefined if the response contains no file. */
  get length(): number | undefined {
    return this.#begun ? this.#length : undefined;
  }

  /** @throws JobtailError not-found if the response contains no file */
  requireLength(hint: string): number {
    if (this.#begun) return this.#length;
    throw new JobtailError('not-found', 'the service has no such file', { hint });
  }

  /** @throws JobtailError malformed for a second file: the sink may have used the first one */
  begin(): void {
    if (this.#begun) throw malformed('it contains more than one file');
    this.#begun = true;
    this.#inside = true;
  }

  bytes(bytes: Buffer): void {
    this.#gathered.append(bytes);
  }

  end(): void {
    this.#inside = false;
  }

  /** Waits for the sink, at most until the caller's signal; after the end of the file the sink has everything. @throws what the sink threw */
  async flush(): Promise<void> {
    if (this.#inside && this.#gathered.length < PIECE_BYTES) return;
    await untilAborted(this.#taken, this.#signal, aborted);
    if (this.#gathered.length === 0) return;
    [this.#gathered, this.#handedOn] = [this.#handedOn, this.#gathered];
    this.#gathered.clear();
    this.#taken = this.#handOn(this.#handedOn.view());
    // The next await throws it.
    this.#taken.catch(() => undefined);
    if (this.#inside) return;
    await untilAborted(this.#taken, this.#signal, aborted);
    // What is old would keep them until the whole heap is collected.
    for (const memory of [this.#gathered, this.#handedOn]) memory.free();
  }

  async #handOn(bytes: Buffer): Promise<void> {
    await this.#sink(bytes);
    this.#length += bytes.length;
  }
}

function aborted(): JobtailError {
  return new JobtailError('aborted', 'the download was stopped');
}
