/** The line between one agent and the service: how many calls are on it, how many were, and whether they were allowed. */
import type { ServerShare } from '../../src/agent/server-share.ts';
import type { Operation } from '../../src/operations.ts';
import type { Clock } from '../../src/system/clock.ts';

export interface LineOptions {
  readonly clock: Clock;
  readonly share: ServerShare;
  readonly concurrency: number;
  readonly requestsPerMinute: number | null;
  readonly offend: (what: string) => void;
}

const MINUTE_MS = 60_000;
/** A repetition after a lost session takes no other turn; timers that fire late are made up for. */
const SPARE_CALLS = 5;

export class Line {
  /** No call may begin before that. */
  pausedUntil = Number.NEGATIVE_INFINITY;
  running = 0;
  readonly #options: LineOptions;
  /** When the calls of the last minute began. */
  #begun: number[] = [];

  constructor(options: LineOptions) {
    this.#options = options;
  }

  get clock(): Clock {
    return this.#options.clock;
  }

  get share(): ServerShare {
    return this.#options.share;
  }

  begun(operation: Operation): void {
    const { clock, concurrency, requestsPerMinute, offend } = this.#options;
    const now = clock.monotonic();
    this.running += 1;
    if (this.running > concurrency) offend(`${this.running} calls at a time, ${concurrency} are allowed`);
    if (now < this.pausedUntil) offend(`${operation} began in a pause that the service asked for`);
    if (requestsPerMinute === null) return;
    this.#begun = this.#begun.filter((at) => at > now - MINUTE_MS);
    this.#begun.push(now);
    if (this.#begun.length > requestsPerMinute + SPARE_CALLS)
      offend(`${this.#begun.length} calls in a minute, ${requestsPerMinute} are allowed`);
  }

  ended(): void {
    this.running -= 1;
  }
}
