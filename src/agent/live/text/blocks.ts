/** The server decodes blocks of 1,024 bytes, counted from the requested offset (docs/servers.md 1.2). */
import { startsAlike } from '../../../bytes.ts';

export const BLOCK_BYTES = 1024;
/** A character that a block edge cuts in one response is whole in one that was requested this much later. */
export const HALF_BLOCK_BYTES = 512;
/** Bytes at the start of a response without a block edge. */
export const WITHIN_BLOCK_BYTES = 480;

/** Whether a text starts with the expected one, compared up to WITHIN_BLOCK_BYTES. */
export function shows(found: Buffer, expected: Buffer): boolean {
  const compared = expected.subarray(0, WITHIN_BLOCK_BYTES);
  return found.length >= compared.length && startsAlike(found.subarray(0, WITHIN_BLOCK_BYTES), compared);
}
