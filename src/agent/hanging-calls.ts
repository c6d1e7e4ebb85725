/**
 * Calls that hang: for seconds, the server has responded to no call. A server may block all calls of an account behind
 * one that hangs, until so many hang that it opens another connection for the account (docs/dev/rest.md 5.4). Short calls of
 * another kind find out whether others work, and make the server open that connection. From then on, the calls that hang
 * count for no limit.
 */
import { LinkedAbort } from '../linked-abort.ts';
import type { Clock } from '../system/clock.ts';

/** Makes one short call; it may end in any way. */
export type ShortCall = (kind: 'parts' | 'listing', signal: AbortSignal) => Promise<unknown>;

interface HangingCallsOptions {
  readonly clock: Clock;
  readonly shortCall: ShortCall;
  readonly isWanted: () => boolean;
  /** Since when calls can be sent, by the monotonic clock: one that waits for a sign-in or a pause does not hang. */
  readonly openSince: () => number;
  readonly onChange: () => void;
  /** Called with the number of short calls, and whether the last one had a response. */
  readonly onEnd: (calls: number, hasResponse: boolean) => void;
}

/** A call without a response for this time may hang. With the first short call, that is less than 10 s. */
const HANGS_AFTER_MS = 4_000;
/** A server whose last responses took longer has to be silent for so many times as long. */
const SLOWNESS = 3;
const LAST_RESPONSES = 5;
const CHECK_MS = 1_000;
/** Up to eight calls share a connection of the server. */
const MAX_HANGING = 8;
const MAX_SHORT_CALLS = MAX_HANGING + 2;
/** Time limits of a short call, by its number. A busy server needs seconds to open another connection. */
const limitMs = (number: number) => (number === 0 ? 4_000 : number < MAX_HANGING - 1 ? 1_500 : 8_000);
/** Pause after short calls without a response. */
const PAUSE_MS = 5 * 60_000;

interface RunningCall {
  readonly startedAt: number;
  readonly isLong: boolean;
  hangs: boolean;
}

export class HangingCalls {
  readonly #options: HangingCallsOptions;
  readonly #running = new Set<RunningCall>();
  #respondedAt = Number.NEGATIVE_INFINITY;
  /** How long the last responses took. */
  #lastMs: readonly number[] = [];
  #nextAt = Number.NEGATIVE_INFINITY;
  /** Set while a call runs. */
  #cancelCheck: (() => void) | undefined;
  /** The calls that the short calls are for, or were: these end with the last of them. */
  #suspects: readonly RunningCall[] = [];
  #stop: AbortController | undefined;
  /** Short calls without a response since the last quick one. */
  #shortCalls = 0;

  constructor(options: HangingCallsOptions) {
    this.#options = options;
  }

  /** The number of calls that hang while others work, and of those of them that count as long. */
  get hanging(): { readonly count: number; readonly long: number } {
    const hanging = [...this.#running].filter(({ hangs }) => hangs);
    return { count: hanging.length, long: hanging.filter(({ isLong }) => isLong).length };
  }

  /** Records the start of a call; the returned function records its end. */
  begun(isLong: boolean): () => void {
    const one: RunningCall = { startedAt: this.#options.clock.monotonic(), isLong, hangs: false };
    this.#running.add(one);
    this.#cancelCheck ??= this.#checkLater();
    return () => {
      this.#running.delete(one);
      if (!this.#suspects.some((suspect) => this.#running.has(suspect))) this.#stop?.abort();
      if (this.#running.size > 0) return;
      this.#cancelCheck?.();
      this.#cancelCheck = undefined;
    };
  }

  /** The server responded to a call after so long. */
  responded(ms: number): void {
    this.#respondedAt = this.#options.clock.monotonic();
    this.#lastMs = [ms, ...this.#lastMs].slice(0, LAST_RESPONSES);
    if (ms < HANGS_AFTER_MS) this.#shortCalls = 0;
  }

  #checkLater(): () => void {
    return this.#options.clock.timer(CHECK_MS, () => {
      this.#cancelCheck = this.#checkLater();
      this.#check();
    });
  }

  #check(): void {
    const { clock, isWanted, openSince } = this.#options;
    const now = clock.monotonic();
    if (this.#stop !== undefined || now < this.#nextAt || this.hanging.count >= MAX_HANGING || !isWanted()) return;
    const slowestMs = Math.max(0, ...this.#lastMs);
    const patienceMs = slowestMs > HANGS_AFTER_MS ? SLOWNESS * slowestMs : HANGS_AFTER_MS;
    const since = Math.max(this.#respondedAt, openSince());
    const isSilent = ({ startedAt }: RunningCall) => now - Math.max(startedAt, since) >= patienceMs;
    this.#suspects = [...this.#running].filter((one) => !one.hangs && isSilent(one));
    if (this.#suspects.length > 0) void this.#resolve(this.#suspects);
  }

  async #resolve(suspects: readonly RunningCall[]): Promise<void> {
    const { clock, onChange, onEnd } = this.#options;
    const stop = new AbortController();
    this.#stop = stop;
    const beganAt = clock.monotonic();
    const hasResponse = () => this.#respondedAt >= beganAt;
    // A poll requests parts, any other long call something else.
    const kind = suspects.some(({ isLong }) => !isLong) ? 'listing' : 'parts';
    let calls = this.#shortCalls;
    for (; !hasResponse() && !stop.signal.aborted && this.#shortCalls < MAX_SHORT_CALLS; calls += 1)
      await this.#callShortly(kind, stop.signal);
    this.#stop = undefined;
    this.#suspects = [];
    if (stop.signal.aborted) return;
    if (hasResponse()) for (const one of suspects) one.hangs = this.#running.has(one);
    else {
      this.#nextAt = clock.monotonic() + PAUSE_MS;
      this.#shortCalls = 0;
    }
    onEnd(calls, hasResponse());
    onChange();
  }

  async #callShortly(kind: 'parts' | 'listing', stop: AbortSignal): Promise<void> {
    const { clock, shortCall } = this.#options;
    const limit = new LinkedAbort(stop);
    const cancel = clock.timer(limitMs(this.#shortCalls), () => limit.abort());
    this.#shortCalls += 1;
    await shortCall(kind, limit.signal).catch(() => undefined);
    cancel();
    limit.release();
  }
}
