/** The service decodes blocks of 1,024 bytes, counted from the offset asked for (docs/servers.md 1.2). */
import { startsAlike } from '../../../bytes.ts';

export const BLOCK_BYTES = 1024;
/** A character that a block edge cuts in one answer is whole in another one that was asked for so much further on. */
export const HALF_BLOCK_BYTES = 512;
/** Less than a block, so that no block edge falls into the beginning of an answer. */
export const WITHIN_BLOCK_BYTES = 480;

/** Whether a text begins with all of what is expected of it, as far as no block edge falls between them. */
export function shows(found: Buffer, expected: Buffer): boolean {
  const compared = expected.subarray(0, WITHIN_BLOCK_BYTES);
  return found.length >= compared.length && startsAlike(found.subarray(0, WITHIN_BLOCK_BYTES), compared);
}
