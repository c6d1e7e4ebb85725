/** Bytes in memory as a content that is looked at. */
import type { Source } from '../../src/view/content/content.ts';

export function sourceOf(bytes: Buffer): Source {
  const read = (start: number, end: number) => {
    if (start < 0 || start > end || end > bytes.length)
      throw new Error(`read of [${start}, ${end}) of ${bytes.length}`);
    return Buffer.from(bytes.subarray(start, end));
  };
  let looked = Buffer.alloc(0);
  return {
    bytes: bytes.length,
    read,
    readShared(start, end) {
      // Whoever keeps what was looked at before finds something else there.
      looked.fill(0xee);
      looked = read(start, end);
      return looked;
    },
  };
}
