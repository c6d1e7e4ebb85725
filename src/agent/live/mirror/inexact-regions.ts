/** Inexact ranges of a mirror, in order, without overlap: their length is right, their bytes are substituted. */
import type { InexactRegion } from '../../../store/rows.ts';

/** Replaces a substituted byte in comparisons: no byte of valid UTF-8, nor of a byte-order mark. */
export const UNKNOWN = 0xf8;

/** `bytes`, which are at offset `at`, with UNKNOWN in the regions. */
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
    .map((region) => ({ ...region, length: Math.min(region.length, end - region.start) }));
}

/** Appends a region; joins it with the last one if it continues that. */
export function withRegion(regions: readonly InexactRegion[], added: InexactRegion): InexactRegion[] {
  const last = regions.at(-1);
  if (last === undefined || last.start + last.length !== added.start) return [...regions, added];
  return [...regions.slice(0, -1), { ...added, start: last.start, length: last.length + added.length }];
}

export function overlaps({ start, length }: InexactRegion, from: number, to: number): boolean {
  return start < to && start + length > from;
}
