/**
 * Holds a reading against bytes that are already there (a mirror, or raw bytes). Where the service could not decode,
 * the bytes there are passed over until both go on alike.
 */
import { commonLength } from '../chunk.ts';
import type { Reading } from './reading.ts';

/** Bytes with a position: a mirror, or raw bytes in memory. */
export interface Bytes {
  read(start: number, end: number): Promise<Buffer>;
}

/**
 * same: the reading has all of the bytes and stands right behind them, unless `aligned` is false: then the last bytes
 * are ones the service cannot decode, and where it stands is not known.
 * shorter: the reading ended at `at`. different: the byte at `at` is another one.
 */
export type Match =
  | { readonly kind: 'same'; readonly aligned: boolean }
  | { readonly kind: 'shorter' | 'different'; readonly at: number };

const STEP_BYTES = 64 * 1024;
/** A replacement character stands for one to three bytes (field notes 1). */
const MOST_BYTES_A_REPLACEMENT = 3;
const RESUME_BYTES = 64;

/** Compares the bytes [from, to) with what the reading has from where it stands. */
export async function match(reading: Reading, bytes: Bytes, from: number, to: number): Promise<Match> {
  let at = from;
  while (at < to) {
    const read = await reading.peek(Math.min(STEP_BYTES, to - at));
    if (read.length > 0) {
      const there = await bytes.read(at, at + read.length);
      const common = commonLength(read, there);
      reading.advance(common);
      at += common;
      if (common < read.length) return { kind: 'different', at };
      continue;
    }
    if (reading.atEnd()) return { kind: 'shorter', at };
    const resumed = await passUncertain(reading, bytes, at, to);
    if (resumed === 'unaligned') return { kind: 'same', aligned: false };
    if (resumed === undefined) return { kind: reading.atEnd() ? 'shorter' : 'different', at };
    at = resumed;
  }
  return { kind: 'same', aligned: true };
}

/** Where the bytes go on like the reading does behind its replacement characters. */
async function passUncertain(
  reading: Reading,
  bytes: Bytes,
  at: number,
  to: number,
): Promise<number | 'unaligned' | undefined> {
  const replaced = await reading.skipUncertain();
  const widest = at + replaced * MOST_BYTES_A_REPLACEMENT + 1;
  const resumes = await reading.peek(RESUME_BYTES);
  if (resumes.length > 0) {
    const there = await bytes.read(at, Math.min(to, widest + RESUME_BYTES));
    for (let skip = 1; at + skip < Math.min(to, widest + 1); skip++) {
      const rest = there.subarray(skip, skip + resumes.length);
      if (commonLength(rest, resumes) === rest.length) return at + skip;
    }
  }
  return to <= widest ? 'unaligned' : undefined;
}
