/** The pace of one transfer: its bytes are told, and held to the limit. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { DirectFile, DirectOrder } from '../agent/ports.ts';

/** Called with the bytes of each piece; waits where the bandwidth is limited. */
export type OnPiece = (bytes: number) => Promise<void>;

export function paceOf<File extends DirectFile>({
  bytesPerSecond,
  onBytes,
  signal,
}: Pick<DirectOrder<File>, 'bytesPerSecond' | 'onBytes' | 'signal'>): OnPiece {
  let bytes = 0;
  const startedMs = performance.now();
  return async (more) => {
    bytes += more;
    onBytes(bytes);
    if (bytesPerSecond === null) return;
    const earlyMs = startedMs + (bytes / bytesPerSecond) * 1000 - performance.now();
    if (earlyMs > 0) await sleep(earlyMs, undefined, { signal }).catch(() => {});
  };
}
