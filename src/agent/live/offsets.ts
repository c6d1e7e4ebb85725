/**
 * The offset of a request: where a whole character of the mirror starts, so that the response starts with known bytes.
 * Not at a byte-order mark, which some servers strip there (docs/servers.md 1.4), nor at bytes that may be one of UTF-16.
 */
import { isUtf8 } from 'node:buffer';
import { BYTE_ORDER_MARK, standsAt, widthOfLead } from '../../bytes.ts';
import type { LiveFile } from './mirror/live-file.ts';

/** How far back a whole character is searched. Longer rows of marks or undecodable bytes are requested from within. */
const REACH_BYTES = 128;
/** How far before the overlap a non-ASCII character is searched: it shows how the server decodes. */
const PROOF_BYTES = 960;

/**
 * The offset of the overlap, or of the last non-ASCII character shortly before it, which shows how the server decodes.
 * 0 unless the mirror is intact.
 */
export async function overlapOffset(file: LiveFile): Promise<number> {
  if (file.integrity !== 'intact') return 0;
  const overlap = Math.max(0, file.committed - file.overlapBytes);
  const start = Math.max(0, overlap - PROOF_BYTES);
  const before = await file.read(start, file.committed);
  const beyondAscii = before.findLastIndex((byte) => byte >= 0x80);
  return alignDown(file, beyondAscii < 0 ? overlap : Math.min(overlap, start + beyondAscii));
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
