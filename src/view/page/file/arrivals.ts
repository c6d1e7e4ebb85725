/** When the bytes of an opened content arrived: as times of its lines, and as a histogram over time. */
import { signal } from '@preact/signals';
import type { Arrivals, ContentQuery } from '../../contract/addresses.ts';
import { address, askJson } from '../api.ts';
import { clock } from '../text/units.ts';

export interface Arrived {
  readonly from: number;
  readonly to: number;
}

/** Part of a histogram over time. */
export interface Bin extends Arrived {
  readonly lines: number;
  readonly bytes: number;
  /** The first byte that arrived from then on. */
  readonly start: number;
}

/** Times that are closer together are one: a poll takes as long. */
const EXACT_MS = 2_000;
const ASK_EACH_MS = 2_000;
/** The last bytes are committed a moment after they are shown. */
const MAX_ATTEMPTS = 3;

export class ArrivalTimes {
  /** Changes when times arrived. */
  readonly changes = signal(0);
  #all: Arrivals['arrivals'] = [];
  readonly #content: () => ContentQuery;
  readonly #over = new AbortController();
  #asked = { version: '', bytes: -1, attempts: 0, at: 0 };
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(content: () => ContentQuery) {
    this.#content = content;
  }

  /** Requests the times of so many bytes of a version, unless they are here; one request at a time. */
  want(version: string | undefined, bytes: number): void {
    const { version: had, bytes: hadBytes, attempts } = this.#asked;
    if (version === undefined || this.#timer !== undefined || !('task' in this.#content())) return;
    const isSame = had === version && hadBytes === bytes;
    if (isSame && ((this.#all.at(-1)?.[1] ?? 0) >= bytes || attempts >= MAX_ATTEMPTS)) return;
    if (had !== version) this.#all = [];
    const wait = had === version ? Math.max(0, this.#asked.at + ASK_EACH_MS - Date.now()) : 0;
    this.#asked = { version, bytes, attempts: isSame ? attempts + 1 : 1, at: Date.now() + wait };
    this.#timer = setTimeout(() => void this.#load(), wait);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#over.abort();
  }

  async #load(): Promise<void> {
    const { signal: over } = this.#over;
    const { version } = this.#asked;
    const found = await askJson<Arrivals>(address('arrivals', { ...this.#content(), version }), {
      signal: over,
    }).catch(() => undefined);
    this.#timer = undefined;
    if (over.aborted) return;
    if (found !== undefined) this.#all = found.arrivals;
    this.changes.value++;
  }

  /** When the first one of these bytes arrived at the earliest, and the last one at the latest; undefined: not known. */
  of(start: number, end: number): Arrived | undefined {
    return arrivedIn(this.#all, start, end);
  }

  /** Lines and bytes over time, in so many equal parts. */
  bins(count: number): readonly Bin[] {
    return binsOf(this.#all, count);
  }

  /** The first byte that may have arrived at a time or later; undefined: none did. */
  byteAt(time: number): number | undefined {
    return this.#all.find(([, , , to]) => to >= time)?.[0];
  }

  get last(): number | undefined {
    return this.#all.at(-1)?.[3];
  }
}

export function arrivedIn(all: Arrivals['arrivals'], start: number, end: number): Arrived | undefined {
  const first = all.findIndex(([, rangeEnd]) => rangeEnd > start);
  const last = all.findIndex(([, rangeEnd]) => rangeEnd >= end);
  const [a, b] = [all[first], all[last]];
  if (a === undefined || b === undefined || a[0] > start) return undefined;
  // A gap between them has bytes whose time is not known.
  const isWhole = all.slice(first, last).every(([, rangeEnd], index) => all[first + index + 1]?.[0] === rangeEnd);
  return isWhole ? { from: a[2], to: b[3] } : undefined;
}

/** What has no exact time is spread evenly over its range. */
export function binsOf(all: Arrivals['arrivals'], count: number): Bin[] {
  const [first, last] = [all[0], all.at(-1)];
  if (first === undefined || last === undefined) return [];
  const begin = first[2];
  const each = Math.max(1_000, (last[3] - begin) / count);
  const bins = Array.from({ length: count }, (_, index) => ({
    ...{
      from: begin + index * each,
      to: begin + (index + 1) * each,
      lines: 0,
      bytes: 0,
      start: Number.POSITIVE_INFINITY,
    },
  }));
  const binAt = (at: number) => Math.min(count - 1, Math.max(0, Math.floor((at - begin) / each)));
  for (const [start, end, from, to, lines] of all) {
    const [low, high] = [binAt(from), binAt(to)];
    for (const [index, bin] of bins.slice(low, high + 1).entries()) {
      bin.lines += lines / (high - low + 1);
      bin.bytes += (end - start) / (high - low + 1);
      bin.start = Math.min(bin.start, start + Math.floor(((end - start) * index) / (high - low + 1)));
    }
  }
  return bins;
}

const isExact = ({ from, to }: Arrived) => to - from < EXACT_MS;

/** `07:35:45` of the same day, else `11-22 07:35:45`, as it stands in a column; a range where the time is not exact. */
export function arrivedText(arrived: Arrived, now: number): string {
  const to = timeText(arrived.to, now);
  return isExact(arrived) ? to : `${timeText(arrived.from, now)} – ${timeText(arrived.to, arrived.from)}`;
}

/** The same in words. */
export function arrivedWords(arrived: Arrived, now: number): string {
  const to = timeText(arrived.to, now);
  return isExact(arrived) ? `arrived ${to}` : `arrived between ${timeText(arrived.from, now)} and ${to}`;
}

function timeText(at: number, now: number): string {
  const [text, today] = [clock(at), clock(now)];
  return text.slice(0, 10) === today.slice(0, 10) ? text.slice(11) : text.slice(5);
}

/** The last moment that a clock showed this time of day (`7:35`, `07:35:45`), not after `now`; undefined if it is none. */
export function timeOfDay(typed: string, now: number): number | undefined {
  const [, hours, minutes, seconds = '0'] = /^\s*([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?\s*$/.exec(typed) ?? [];
  if (hours === undefined || Number(hours) > 23 || Number(minutes) > 59 || Number(seconds) > 59) return undefined;
  const date = new Date(now);
  date.setHours(Number(hours), Number(minutes), Number(seconds), 0);
  if (date.getTime() > now) date.setDate(date.getDate() - 1);
  return date.getTime();
}
