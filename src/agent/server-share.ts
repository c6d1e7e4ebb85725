/**
 * How often the agent may call the service. By default it uses at most half of the server's time: after a response that
 * took the server one second, the next call may start one second later. A call under way costs as much as the last
 * response, so calls overlap on the connection but not in the server. Idle time is credit for a short burst. A fixed
 * number of requests per minute replaces the measurement. A pause that the server requests (429, 503, `Retry-After`)
 * applies in both cases, to all calls. So does a limit that the server reports: the rest of it is spread over its period.
 */

import { nominalPause } from '../back-off.ts';
import { type Clock, sleep } from '../system/clock.ts';

/** How a response loads the server, and what it reports of limits. */
interface ServerLoad {
  readonly status: number;
  readonly firstByteMs: number;
  readonly workMs: number;
  readonly retryAfterMs: number | undefined;
  /** Calls that the server allows in the rest of its period, if the response reports that. */
  readonly quota?: { readonly remaining: number; readonly resetMs: number } | undefined;
}

interface ServerShareOptions {
  /** Null: the measured share. */
  readonly requestsPerMinute: number | null;
  /** The monotonic clock, in milliseconds. */
  readonly monotonic: () => number;
  /** Since when calls have a session; always if omitted. */
  readonly signedInAt?: () => number;
}

const SHARE = 0.5;
/** Maximum idle time that a burst may use. */
const MAX_CREDIT_MS = 2_000;
/** The same for a fixed limit: compensates timers that fire late. */
const MAX_FIXED_CREDIT_MS = 50;
/** Maximum delay of the next calls by one response, and by one call that is under way. */
const MAX_DELAY_MS = 10_000;
/** The pause after a 429 or 503 without `Retry-After`; doubles while such responses follow each other. */
export const FIRST_PAUSE_MS = 500;
export const MAX_PAUSE_MS = 30_000;
/** A call of so long did not keep the server busy if others were answered in less than `QUICK_MS` beside it. */
const LONG_MS = 4_000;
const QUICK_MS = 1_000;
/** Maximum time between two calls by a reported limit. */
const MAX_SPACING_MS = 60_000;
const PAUSES = { firstMs: FIRST_PAUSE_MS, maxMs: MAX_PAUSE_MS };

export class ServerShare {
  readonly #options: ServerShareOptions;
  /** Until then, the next calls compensate past work. */
  #settledAt = Number.NEGATIVE_INFINITY;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  /** Overload responses in a row without a requested pause. */
  #overloads = 0;
  #callsOnTheirWay = 0;
  #lastCostMs = 0;
  /** When the server last answered within `QUICK_MS`. */
  #quickAt = Number.NEGATIVE_INFINITY;
  /** Calls under way that count for nothing: they hang, and others work (hanging-calls.ts). */
  hanging = 0;
  #agents = 1;
  #onResponse: (load: ServerLoad) => void = () => {};

  constructor(options: ServerShareOptions) {
    this.#options = options;
  }

  /** Sets the callback for responses, which change `opensAt`. */
  onResponse(callback: (load: ServerLoad) => void): void {
    this.#onResponse = callback;
  }

  divideAmong(agents: number): void {
    this.#agents = Math.max(1, agents);
  }

  /** Undefined without a fixed limit; agents share that equally. */
  get #costOfRequestMs(): number | undefined {
    const { requestsPerMinute } = this.#options;
    return requestsPerMinute === null ? undefined : (60_000 / requestsPerMinute) * this.#agents;
  }

  get opensAt(): number {
    const reservedMs =
      this.#costOfRequestMs === undefined ? (this.#callsOnTheirWay - this.hanging) * this.#lastCostMs : 0;
    return Math.max(this.#pausedUntil, this.#settledAt + reservedMs);
  }

  /** Rest of a pause that the server requested; 0 if there is none. */
  get pauseMs(): number {
    return Math.max(0, this.#pausedUntil - this.#options.monotonic());
  }

  /** Since when calls can be sent: the end of the last pause or sign-in, which is later than now or infinite before. */
  get openSince(): number {
    return Math.max(this.#pausedUntil, this.#options.signedInAt?.() ?? this.#pausedUntil);
  }

  async pauseOver(clock: Clock, signal: AbortSignal): Promise<void> {
    while (this.pauseMs > 0) await sleep(clock, this.pauseMs, signal);
  }

  begun(): void {
    this.#callsOnTheirWay += 1;
    if (this.#costOfRequestMs !== undefined) this.#charge(this.#costOfRequestMs, 0, MAX_FIXED_CREDIT_MS);
  }

  ended(): void {
    this.#callsOnTheirWay -= 1;
  }

  /** Records a response; returns the length of the pause that it starts or extends. */
  responded(load: ServerLoad): number | undefined {
    const { status, retryAfterMs } = load;
    this.#chargeWork(load);
    const isOverload = status === 429 || status === 503;
    if (status < 400) this.#overloads = 0;
    const isPause = isOverload || (status >= 400 && retryAfterMs !== undefined);
    const pauseMs = isPause ? this.#pause(retryAfterMs) : undefined;
    this.#onResponse(load);
    return pauseMs;
  }

  #chargeWork(load: ServerLoad): void {
    const now = this.#options.monotonic();
    const workMs = load.workMs >= LONG_MS && this.#quickAt > now - load.workMs ? 0 : load.workMs;
    if (load.workMs < QUICK_MS) this.#quickAt = now;
    const spacingMs = load.status === 429 ? 0 : spacingOf(load) * this.#agents;
    if (this.#costOfRequestMs !== undefined) {
      if (spacingMs > this.#costOfRequestMs) this.#charge(spacingMs - this.#costOfRequestMs, 0, MAX_FIXED_CREDIT_MS);
      return;
    }
    const maxDelayMs = Math.max(spacingMs, MAX_DELAY_MS);
    const costMs = Math.max(spacingMs, Math.min((workMs / SHARE) * this.#agents, workMs + MAX_DELAY_MS));
    // Others may have been charged while this response was under way.
    const latest = Math.max(this.#settledAt, now) + maxDelayMs;
    this.#charge(costMs, workMs, MAX_CREDIT_MS);
    this.#settledAt = Math.min(this.#settledAt, latest);
    this.#lastCostMs = Math.min(maxDelayMs, costMs);
  }

  #charge(costMs: number, elapsedMs: number, maxCreditMs: number): void {
    const oldest = this.#options.monotonic() - elapsedMs - maxCreditMs;
    this.#settledAt = Math.max(this.#settledAt, oldest) + costMs;
  }

  #pause(retryAfterMs: number | undefined): number | undefined {
    // Calls that were under way together get the same response, which counts once.
    if (retryAfterMs === undefined && this.pauseMs > 0) return undefined;
    if (retryAfterMs === undefined) this.#overloads += 1;
    const pauseMs = retryAfterMs ?? nominalPause(this.#overloads, PAUSES);
    const until = this.#options.monotonic() + pauseMs;
    if (until <= this.#pausedUntil) return undefined;
    this.#pausedUntil = until;
    return pauseMs;
  }
}

const spacingOf = ({ quota }: ServerLoad): number =>
  quota === undefined ? 0 : Math.min(MAX_SPACING_MS, quota.resetMs / (quota.remaining + 1));
