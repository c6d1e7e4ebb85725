/** The clock of the service, by the `Date` of its responses. */
import { showAge } from '../numbers.ts';
import type { Clock } from '../system/clock.ts';
import type { Log } from './ports/host.ts';
import type { CapabilityStore } from './ports/server.ts';

const CLOCK_CAPABILITY = 'clock';
const NO_TIME = 'none';
/** Less may be the network, or clocks that are set now and then. */
const FAR_MS = 30_000;
/** More is no time zone and no empty battery: nothing that is old by this clock is removed. */
export const MAX_OFF_MS = 24 * 60 * 60_000;

const IS_AHEAD =
  'if it is ahead of the cluster, files of the first minutes of a job are never listed: set it by NTP; `agent verify --complete` names them';
export const SENDS_NO_TIME =
  'the service sends no time, so `retention` removes nothing: let it, or the proxy before it, send the header Date';

interface ServiceClockOptions {
  readonly clock: Clock;
  readonly capabilities: CapabilityStore;
  readonly log: Log;
}

export class ServiceClock {
  readonly #options: ServiceClockOptions;
  #last: { readonly sentAt: number; readonly at: number } | undefined;
  #hasResponse = false;
  #noted: string | undefined;

  constructor(options: ServiceClockOptions) {
    this.#options = options;
  }

  /** `sentAt`: the `Date` of a response, in milliseconds since 1970; undefined if it has none. */
  responded(sentAt: number | undefined): void {
    this.#hasResponse = true;
    if (sentAt !== undefined) this.#last = { sentAt, at: this.#options.clock.monotonic() };
    this.#note();
  }

  /** How far it is ahead of this machine's clock, in milliseconds; undefined before a response, null if none has a time. */
  get aheadMs(): number | null | undefined {
    const { now, monotonic } = this.#options.clock;
    if (this.#last === undefined) return this.#hasResponse ? null : undefined;
    return this.#last.sentAt + monotonic() - this.#last.at - now();
  }

  /** Stores what is odd about it, for `status`, and logs once that it is ahead. */
  #note(): void {
    const { capabilities, log } = this.#options;
    const { aheadMs = null } = this;
    const isFar = aheadMs !== null && (aheadMs >= FAR_MS || aheadMs < -MAX_OFF_MS);
    const value = aheadMs === null ? NO_TIME : isFar ? String(Math.round(aheadMs / FAR_MS) * FAR_MS) : '0';
    const before = this.#noted;
    if (value === before) return;
    this.#noted = value;
    capabilities.set(CLOCK_CAPABILITY, value);
    if (Number(value) > 0 && !(Number(before) > 0))
      log.warn({ aheadMs: Math.round(Number(aheadMs)), hint: IS_AHEAD }, 'clock of the service ahead');
  }
}

/** By how much it was ahead of this machine's clock when it was last asked, in milliseconds, as far as that is odd. */
export const storedAheadMs = (capabilities: CapabilityStore) => Number(capabilities.get(CLOCK_CAPABILITY)) || 0;

/** What is odd about it, for people; `isNeeded`: whether anything depends on it. */
export function clockLines(capabilities: CapabilityStore, isNeeded: boolean): string[] {
  if (capabilities.get(CLOCK_CAPABILITY) === NO_TIME) return isNeeded ? [SENDS_NO_TIME] : [];
  const aheadMs = storedAheadMs(capabilities);
  if (aheadMs < 0) return [`the clock of this machine is ${showAge(-aheadMs)} ahead of the service: set it by NTP`];
  return aheadMs === 0
    ? []
    : [`the clock of the service is about ${aheadMs / 1_000} s ahead of this machine: ${IS_AHEAD}`];
}
