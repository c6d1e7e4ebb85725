/** Whole files, for all protocols (docs/dev/servers.md 4.3): read with constant memory, written as base64. */
import type { FileHandle } from 'node:fs/promises';
import { openWithin, readRange, visibleSize } from '../cluster/job-files.ts';
import { staleBytes } from '../faults.ts';
import type { OperationCall, SandboxPlace } from '../place.ts';
import { ServiceFault } from '../refusals.ts';

export interface WholeFile {
  readonly handle: FileHandle;
  /** Bytes as they are seen. */
  readonly size: number;
}

/**
 * A file by its path on the cluster, which the name `listed` stands for. Undefined if there is none. The caller closes
 * it.
 */
export async function openWhole(
  { path, listed }: { readonly path: string; readonly listed: string },
  { rules }: OperationCall,
  { cluster }: SandboxPlace,
): Promise<WholeFile | undefined> {
  const handle = await openWithin(cluster.directory, path);
  if (handle === undefined) return undefined;
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) throw new ServiceFault(`${listed} is no file.`);
    return { handle, size: visibleSize(stats.size, staleBytes(rules, { file: listed })) };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Its bytes; the buffer handed out is used again for the next ones. */
export function bytesOf({ handle, size }: WholeFile): AsyncGenerator<Buffer> {
  return readRange(handle, 0, size);
}

/** Base64 without line breaks; up to two bytes wait for the next read. */
export async function* base64Of(reads: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const read of reads) {
    const bytes = rest.length === 0 ? read : Buffer.concat([rest, read]);
    const whole = bytes.length - (bytes.length % 3);
    yield bytes.toString('base64', 0, whole);
    rest = Buffer.from(bytes.subarray(whole));
  }
  yield rest.toString('base64');
}
