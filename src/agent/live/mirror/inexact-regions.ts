/**
 * Stretches of a mirror whose width is right but whose bytes could not be had: the service shows them as U+FFFD and
 * hands out no raw bytes. They are kept in order and do not overlap.
 */
import type { InexactRegion } from '../../../store/rows.ts';

/** What a byte stands for in a comparison while it is not known: no byte that can be read from UTF-8. */
export const UNKNOWN = 0xff;

/** `bytes`, which stand at `at`, with the regions made unknown. */
export function maskRegions(bytes: Buffer, at: number, regions: readonly InexactRegion[]): Buffer {
  const inside = regions.filter((region) => overlaps(region, at, at + bytes.length));
  if (inside.length === 0) return bytes;
  const masked = Buffer.from(bytes);
  for (const { start, length } of inside)
    masked.fill(UNKNOWN, Math.max(0, start - at), Math.min(bytes.length, start + length - at));
  return masked;
}

/** The regions, or parts of them, before `end`. */
export function regionsBefore(regions: readonly InexactRegion[], end: number): InexactRegion[] {
  return regions
    .filter((region) => region.start < end)
    .map(({ start, length }) => ({ start, length: Math.min(length, end - start) }));
}

/** The regions with one more behind them; one that continues the last is joined with it. */
export function withRegion(regions: readonly InexactRegion[], added: InexactRegion): InexactRegion[] {
  const last = regions.at(-1);
  if (last === undefined || last.start + last.length !== added.start) return [...regions, added];
  return [...regions.slice(0, -1), { start: last.start, length: last.length + added.length }];
}

/** What two lists of regions have in common. */
export function commonRegions(a: readonly InexactRegion[], b: readonly InexactRegion[]): InexactRegion[] {
  const common: InexactRegion[] = [];
  let next = 0;
  for (const { start, length } of a) {
    const end = start + length;
    for (; next < b.length; next++) {
      const other = b[next] ?? { start: 0, length: 0 };
      const from = Math.max(start, other.start);
      const to = Math.min(end, other.start + other.length);
      if (from < to) common.push({ start: from, length: to - from });
      // The one that ends later may reach into what comes next of the other list.
      if (other.start + other.length > end) break;
    }
  }
  return common;
}

export function overlaps({ start, length }: InexactRegion, from: number, to: number): boolean {
  return start < to && start + length > from;
}
