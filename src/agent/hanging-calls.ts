/**
 * Calls that hang: for seconds, the server has answered no call. A server may block all calls of an account behind
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
  /** Called with the number of short calls, and whether the last one was answered. */
  readonly onEnd: (calls: number, isAnswered: boolean) => void;
}

/** A call that is not answered for this time may hang. With the first short call, that is less than 10 s. */
const HANGS_AFTER_MS = 4_000;
/** A server whose last answers took longer has to be silent for so many times as long. */
const SLOWNESS = 3;
const LAST_ANSWERS = 5;
const FIRST_LIMIT_MS = 4_000;
const NEXT_LIMIT_MS = 1_500;
const RECHECK_MS = 1_000;
/** Up to eight calls share a connection of the server. */
const MAX_HANGING = 8;
const MAX_SHORT_CALLS = MAX_HANGING + 2;
/** A busy server needs seconds to open another connection. */
const LAST_LIMIT_MS = 8_000;
/** Pause after short calls that were not answered. */
const PAUSE_MS = 5 * 60_000;

interface RunningCall {
  readonly startedAt: number;
  readonly isLong: boolean;
  hangs: boolean;
}

export class HangingCalls {
  readonly #options: HangingCallsOptions;
  readonly #running = new Set<RunningCall>();
  #answeredAt = Number.NEGATIVE_INFINITY;
  /** How long the last answers took. */
  #lastMs: readonly number[] = [];
  #nextAt = Number.NEGATIVE_INFINITY;
  #cancelTimer: (() => void) | undefined;
  /** Ends the short calls. */
  #stop: AbortController | undefined;
  /** The calls that the short calls are for: with the last of them, these end. */
  #suspects: readonly RunningCall[] = [];
  /** Short calls without an answer since the last quick one. */
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
    this.#arm(HANGS_AFTER_MS);
    return () => {
      this.#running.delete(one);
      if (!this.#suspects.some((suspect) => this.#running.has(suspect))) this.#stop?.abort();
      if (this.#running.size > 0) return;
      this.#cancelTimer?.();
      this.#cancelTimer = undefined;
    };
  }

  /** The server answered a call after so long. */
  answered(ms: number): void {
    this.#answeredAt = this.#options.clock.monotonic();
    this.#lastMs = [ms, ...this.#lastMs].slice(0, LAST_ANSWERS);
    if (ms < HANGS_AFTER_MS) this.#shortCalls = 0;
  }

  /** How long a server of this kind may be silent. */
  get #patienceMs(): number {
    const slowestMs = Math.max(0, ...this.#lastMs);
    return slowestMs > HANGS_AFTER_MS ? SLOWNESS * slowestMs : HANGS_AFTER_MS;
  }

  #arm(delayMs: number): void {
    this.#cancelTimer ??= this.#options.clock.timer(delayMs, () => {
      this.#cancelTimer = undefined;
      this.#check();
      if (this.#running.size > 0) this.#arm(RECHECK_MS);
    });
  }

  #check(): void {
    const { clock, isWanted, openSince } = this.#options;
    const now = clock.monotonic();
    if (this.#stop !== undefined || now < this.#nextAt || this.hanging.count >= MAX_HANGING || !isWanted()) return;
    const since = Math.max(this.#answeredAt, openSince());
    const isUnanswered = ({ startedAt }: RunningCall) => now - Math.max(startedAt, since) >= this.#patienceMs;
    const suspects = [...this.#running].filter((one) => !one.hangs && isUnanswered(one));
    if (suspects.length > 0) void this.#resolve(suspects);
  }

  async #resolve(suspects: readonly RunningCall[]): Promise<void> {
    const { clock, onChange, onEnd } = this.#options;
    const stop = new AbortController();
    this.#stop = stop;
    this.#suspects = suspects;
    const beganAt = clock.monotonic();
    const isAnswered = () => this.#answeredAt >= beganAt;
    // A poll asks for parts, any other long call for something else.
    const kind = suspects.some(({ isLong }) => !isLong) ? 'listing' : 'parts';
    let calls = this.#shortCalls;
    while (!isAnswered() && !stop.signal.aborted && this.#shortCalls < MAX_SHORT_CALLS) {
      await this.#callShortly(kind, stop.signal);
      calls += 1;
    }
    this.#stop = undefined;
    if (stop.signal.aborted) return;
    if (isAnswered()) for (const one of suspects) one.hangs = this.#running.has(one);
    else this.#nextAt = clock.monotonic() + PAUSE_MS;
    if (!isAnswered()) this.#shortCalls = 0;
    onEnd(calls, isAnswered());
    onChange();
  }

  /** Makes one short call, within the limit that its number has. */
  async #callShortly(kind: 'parts' | 'listing', stop: AbortSignal): Promise<void> {
    const { clock, shortCall } = this.#options;
    const number = this.#shortCalls;
    this.#shortCalls += 1;
    const nextMs = number < MAX_HANGING - 1 ? NEXT_LIMIT_MS : LAST_LIMIT_MS;
    const limit = new LinkedAbort(stop);
    const cancel = clock.timer(number === 0 ? FIRST_LIMIT_MS : nextMs, () => limit.abort());
    await shortCall(kind, limit.signal).catch(() => undefined);
    cancel();
    limit.release();
  }
}
