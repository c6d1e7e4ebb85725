/** An answer on its way through a scanner: what is lifted out of it is taken before more is read. */
import type { Lifted } from './lifted.ts';

interface Scanner<Rest> {
  push(chunk: Buffer): void;
  finish(): Rest;
}

interface ScanProgress {
  readonly lifted: Lifted | undefined;
  /** Counts the bytes of the answer. */
  readonly count: { bytes: number };
  /** Called with the first bytes. */
  readonly onHead: (head: Buffer) => void;
}

/** What remains of the answer, in a box; undefined if no more of it was wanted. */
export async function scanAnswer<Rest>(
  body: AsyncIterable<Buffer>,
  scanner: Scanner<Rest>,
  { lifted, count, onHead }: ScanProgress,
): Promise<{ readonly rest: Rest } | undefined> {
  let isHead = true;
  for await (const chunk of body) {
    if (isHead) onHead(chunk);
    isHead = false;
    count.bytes += chunk.length;
    scanner.push(chunk);
    await lifted?.flush();
    if (lifted?.hasEnough) return undefined;
  }
  return { rest: scanner.finish() };
}
