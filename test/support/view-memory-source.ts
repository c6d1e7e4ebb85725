/** Bytes in memory as a content that is looked at. */
import type { Source } from '../../src/view/content/content.ts';

export const sourceOf = (bytes: Buffer): Source => ({
  bytes: bytes.length,
  read(start, end) {
    if (start < 0 || start > end || end > bytes.length)
      throw new Error(`read of [${start}, ${end}) of ${bytes.length}`);
    return Buffer.from(bytes.subarray(start, end));
  },
});
