/** Spreads calls over the period of a limit: by the headers of a response, or by the calls between two 429. */
interface Quota {
  /** Calls that the server allows until then. */
  readonly remaining: number;
  readonly resetMs: number;
}

/** What of a response shows a limit of the server. */
export interface QuotaAnswer {
  readonly status: number;
  readonly retryAfterMs: number | undefined;
  /** The rest of the server's limit, if the response reports it. */
  readonly quota?: Quota | undefined;
}

const MAX_REPORTED_MS = 60_000;
const MAX_LEARNED_MS = 10_000;
/** Fewer calls before a refusal show no limit for each period. */
const MIN_CALLS = 20;
/** Room for the period to be shorter than it seems. */
const MARGIN = 1.02;
/** A limit may be lifted. */
const LEARNED_FOR_MS = 60 * 60_000;
/** A period is known only if the calls were used up early in it. */
const MAX_USED_PART = 4;

export class CallQuota {
  #learned = { spacingMs: 0, until: Number.NEGATIVE_INFINITY };
  #pausedUntil = Number.NEGATIVE_INFINITY;
  /** First response after the last pause; undefined if there was no pause. */
  #since: number | undefined;
  #answered = 0;

  /** Records a response; returns the time from it to the next call, in milliseconds. */
  answered(now: number, { status, retryAfterMs, quota }: QuotaAnswer): number {
    if (status === 429) {
      // Calls that were under way together are refused together.
      if (retryAfterMs !== undefined && now >= this.#pausedUntil) this.#refused(now, retryAfterMs);
      return 0;
    }
    if (this.#answered === 0 && this.#pausedUntil > Number.NEGATIVE_INFINITY) this.#since = now;
    this.#answered += 1;
    const reportedMs = quota === undefined ? 0 : Math.min(MAX_REPORTED_MS, quota.resetMs / (quota.remaining + 1));
    return Math.max(reportedMs, now < this.#learned.until ? this.#learned.spacingMs : 0);
  }

  #refused(now: number, retryAfterMs: number): void {
    const usedMs = now - (this.#since ?? Number.NEGATIVE_INFINITY);
    if (this.#answered >= MIN_CALLS && usedMs <= MAX_USED_PART * retryAfterMs) {
      const spacingMs = Math.min(MAX_LEARNED_MS, (MARGIN * (usedMs + retryAfterMs)) / this.#answered);
      this.#learned = { spacingMs, until: now + LEARNED_FOR_MS };
    }
    this.#pausedUntil = now + retryAfterMs;
    this.#since = undefined;
    this.#answered = 0;
  }
}
