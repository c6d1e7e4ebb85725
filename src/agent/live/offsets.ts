/**
 * The offset of a request: where a whole character of the mirror starts, so that the response starts with known bytes.
 * Not at a byte-order mark, which some servers strip there (docs/dev/servers.md 1.4), nor at bytes that may be one of UTF-16.
 */
import { isUtf8 } from 'node:buffer';
import { BYTE_ORDER_MARK, standsAt, widthOfLead } from '../../bytes.ts';
import type { LiveFile } from './mirror/live-file.ts';

/** How far back a whole character is searched. Longer rows of marks or undecodable bytes are requested from within. */
const REACH_BYTES = 128;

/** Where a poll starts: at the overlap, which shows a truncation or rewrite; at 0 unless the mirror is intact. */
export async function nextOffset(file: LiveFile): Promise<number> {
  if (file.integrity !== 'intact') return 0;
  const overlapAt = Math.max(0, file.undisputed - file.overlapBytes);
  const at = await alignDown(file, overlapAt);
  // Bytes that were not committed are compared in any case.
  return at <= file.undisputed ? at : overlapAt;
}

/** The nearest such offset at or before `position`, or else shortly after it. */
export async function alignDown(file: LiveFile, position: number): Promise<number> {
  const start = Math.max(0, position - REACH_BYTES);
  const bytes = await file.read(start, position + REACH_BYTES);
  for (let at = position - start; at >= 0; at--) if (startsCharacter(bytes, at)) return start + at;
  for (let at = position - start; at < bytes.length; at++) if (startsCharacter(bytes, at)) return start + at;
  return start === 0 ? 0 : position;
}

/** Whether a whole character starts there that is no byte-order mark. */
export function startsCharacter(bytes: Buffer, at: number): boolean {
  const lead = bytes[at];
  if (lead === undefined || lead < 0x80) return lead !== undefined;
  const width = widthOfLead(lead);
  const isWhole = width > 1 && at + width <= bytes.length && isUtf8(bytes.subarray(at, at + width));
  return isWhole && !standsAt(bytes, at, BYTE_ORDER_MARK);
}
