/** The line between one agent and the service: how many calls are on it, how many were, and whether they were allowed. */
import type { ServerShare } from '../../src/agent/server-share.ts';
import type { JobId } from '../../src/job.ts';
import type { Clock } from '../../src/system/clock.ts';
import type { Call } from './service.ts';

export interface LineOptions {
  readonly clock: Clock;
  readonly share: ServerShare;
  readonly concurrency: number;
  readonly requestsPerMinute: number | null;
  readonly offend: (what: string) => void;
}

const MINUTE_MS = 60_000;
interface Asked {
  readonly what: string;
  answeredAt: number;
}

/** The same call is not made again within this time, unless something else happened meanwhile. */
const AGAIN_MS = 400;
/** An event explains calls that begin so much later, and those that wait for one under way. */
const EXPLAINED_MS = 2_000;
/** A repetition after a lost session takes no other turn; timers that fire late are made up for. */
const SPARE_CALLS = 5;

export class Line {
  /** No call may begin before that. */
  pausedUntil = Number.NEGATIVE_INFINITY;
  running = 0;
  /** The last call for each job: what it asked for, and when its answer was whole. */
  readonly #last = new Map<JobId | undefined, Asked>();
  #explainedAt = Number.NEGATIVE_INFINITY;
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

  /** Something happened that explains calls. */
  explain(): void {
    this.#explainedAt = this.clock.monotonic();
  }

  begun({ operation, jobId, files }: Call): Asked {
    const { clock, concurrency, requestsPerMinute, offend } = this.#options;
    const now = clock.monotonic();
    this.running += 1;
    if (this.running > concurrency) offend(`${this.running} calls at a time, ${concurrency} are allowed`);
    if (now < this.pausedUntil) offend(`${operation} began in a pause that the service asked for`);
    const asked: Asked = { what: `${operation} ${files.join(' ')}`, answeredAt: Number.NEGATIVE_INFINITY };
    const last = this.#last.get(jobId);
    const againMs = now - (last?.answeredAt ?? Number.NEGATIVE_INFINITY);
    // A listing is of the search for tasks, of the results, or of a complete pass, each with one of its own.
    const isListing = operation === 'ListChangedFilesForJob';
    const isExplained = isListing || now - this.#explainedAt < EXPLAINED_MS;
    if (!isExplained && last?.what === asked.what && againMs < AGAIN_MS)
      offend(`${jobId ?? 'all jobs'}: ${asked.what} is made twice in a row, after ${againMs} ms`);
    this.#last.set(jobId, asked);
    if (requestsPerMinute === null) return asked;
    this.#begun = this.#begun.filter((at) => at > now - MINUTE_MS);
    this.#begun.push(now);
    if (this.#begun.length > requestsPerMinute + SPARE_CALLS)
      offend(`${this.#begun.length} calls in a minute, ${requestsPerMinute} are allowed`);
    return asked;
  }

  ended(asked: Asked, isAnswered: boolean): void {
    this.running -= 1;
    if (isAnswered) asked.answeredAt = this.clock.monotonic();
  }
}
