/**
 * Holds a reading against bytes that are already there (a mirror, or raw bytes). Where the service could not decode,
 * the bytes there are skipped until both go on alike.
 */
import { commonLength, startsAlike, widthOfLead } from '../../../bytes.ts';
import { WITHIN_BLOCK_BYTES } from '../text/blocks.ts';
import type { Reading } from '../text/reading.ts';
import { fewestReplacements, MOST_BYTES_A_REPLACEMENT } from './replacements.ts';

/** Bytes with a position: a mirror, or raw bytes in memory. */
export interface Bytes {
  read(start: number, end: number): Promise<Buffer>;
  /** Where the stretch ends that covers a position and of which only the width is known; undefined if none does. */
  unknownUntil?(position: number): number | undefined;
}

/**
 * same: the reading has all of the bytes and stands right behind them, unless `aligned` is false: then the bytes from
 * `at` on are ones the service cannot decode, the reading stands behind its `replaced` replacement characters, and
 * where that is cannot be told. shorter: the reading ended at `at`. different: the byte at `at` is another one.
 */
export type Match =
  | { readonly kind: 'same'; readonly aligned: true }
  | { readonly kind: 'same'; readonly aligned: false; readonly at: number; readonly replaced: number }
  | Difference;

export interface Difference {
  readonly kind: 'shorter' | 'different';
  readonly at: number;
}

const STEP_BYTES = 64 * 1024;
const RESUME_BYTES = 64;

/** The bytes [from, to); `asked` is where the reading began, if that is known. */
export interface Stretch {
  readonly from: number;
  readonly to: number;
  readonly asked?: number;
}

/** Compares bytes with what the reading has from where it stands; tells each stretch it skips. */
export async function match(
  reading: Reading,
  bytes: Bytes,
  { from, to, asked }: Stretch,
  onSkipped: (start: number, end: number) => void = () => {},
): Promise<Match> {
  let at = from;
  while (at < to) {
    const read = await reading.peek(Math.min(STEP_BYTES, to - at));
    if (read.length > 0) {
      const there = await bytes.read(at, at + read.length);
      const common = commonLength(read, there);
      reading.advance(common);
      at += common;
      if (common === read.length) continue;
      // The text may show by now what it did not when the bytes were put there.
      const until = Math.min(to, bytes.unknownUntil?.(at) ?? at);
      const rest = await reading.peek(until - at);
      if (until === at || (rest.length < until - at && reading.uncertainBytes === undefined))
        return { kind: 'different', at };
      onSkipped(at, at + rest.length);
      reading.advance(rest.length);
      at += rest.length;
      continue;
    }
    if (reading.atEnd()) return { kind: 'shorter', at };
    const width = reading.uncertainBytes;
    if (width !== undefined) {
      const end = at + width * (await reading.skipUncertain((to - at) / width));
      // No character that is uncertain stands for a byte of ASCII.
      if ((await bytes.read(at, end)).some((byte) => byte < 0x80)) return { kind: 'different', at };
      onSkipped(at, end);
      at = end;
      continue;
    }
    const replaced = await reading.skipUncertain();
    const uncutBytes = asked === undefined ? 0 : Math.max(0, asked + WITHIN_BLOCK_BYTES - at);
    const resumed = await whereResumed(reading, bytes, { at, to, replaced, uncutBytes });
    if (resumed === undefined) return { kind: reading.atEnd() ? 'shorter' : 'different', at };
    onSkipped(at, resumed);
    if (resumed === to) return { kind: 'same', aligned: false, at, replaced };
    at = resumed;
  }
  return { kind: 'same', aligned: true };
}

/** Replacement characters that stand at `at` of the bytes, of which `to` is the end. */
interface Replaced {
  readonly at: number;
  readonly to: number;
  readonly replaced: number;
  /** Bytes from `at` on that no block edge cuts. */
  readonly uncutBytes: number;
}

/**
 * Where the bytes go on like the reading does behind its replacement characters; `to` if they end before that, or with
 * the beginning of a character that may have been replaced, too. What was replaced is none of ASCII, and at least one
 * byte for each character.
 */
async function whereResumed(
  reading: Reading,
  bytes: Bytes,
  { at, to, replaced, uncutBytes }: Replaced,
): Promise<number | undefined> {
  const end = await whereAlike(reading, bytes, { at, to, replaced });
  const skipped = await bytes.read(at, Math.min(end ?? at, at + STEP_BYTES));
  return fewestReplacements(skipped, uncutBytes) > replaced ? undefined : end;
}

/** Where the bytes are like those behind the replacement characters: first where both end together, if these end soon. */
async function whereAlike(
  reading: Reading,
  bytes: Bytes,
  { at, to, replaced }: Omit<Replaced, 'uncutBytes'>,
): Promise<number | undefined> {
  const resumes = await reading.peek(RESUME_BYTES);
  const behind = reading.fork();
  behind.advance(resumes.length);
  const longest = behind.atEnd() ? resumes.length : Number.POSITIVE_INFINITY;
  let longer: number | undefined;
  const widest = Math.min(to, at + replaced * MOST_BYTES_A_REPLACEMENT);
  const fewest = widest < to ? 1 : Math.max(1, widthOfLead(resumes[0] ?? 0));
  for (let start = at; start <= widest; start += STEP_BYTES) {
    const there = await bytes.read(start, Math.min(to, start + STEP_BYTES + RESUME_BYTES));
    for (let position = start; position <= widest && position < start + STEP_BYTES; position++) {
      if (position === to) return to;
      const rest = there.subarray(position - start, position - start + resumes.length);
      if (position >= at + replaced && rest.length >= fewest && startsAlike(rest, resumes)) {
        if (to - position <= longest) return position;
        longer ??= position;
      }
      if ((there[position - start] ?? 0) < 0x80) return longer;
    }
  }
  return longer;
}
