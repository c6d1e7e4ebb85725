/** Parts of live files, for all protocols (docs/dev/servers.md 1): opened all together, read with constant memory. */
import type { FileHandle } from 'node:fs/promises';
import { relative } from 'node:path';
import type { LiveFileName } from '../../src/job.ts';
import type { SubmittedJob, SubmittedTask } from '../cluster/cluster.ts';
import { openWithin, readRange, visibleSize } from '../cluster/job-files.ts';
import { staleBytes } from '../faults.ts';
import type { OperationCall, SandboxPlace } from '../place.ts';
import { ServiceFault } from '../refusals.ts';
import { type DecodingOptions, decodeBlocks } from './decoding.ts';

/** No file of ext4 is longer, and none of its files can be read from further on: the service that tries fails. */
const MAX_OFFSET = 2n ** 44n;

/** What a request names. */
export interface AskedPart {
  readonly taskId: string | null;
  readonly file: LiveFileName | null;
  readonly offset: bigint;
}

export interface WantedPart {
  readonly task: SubmittedTask;
  readonly file: LiveFileName;
  readonly offset: bigint;
}

export interface OpenPart extends WantedPart {
  readonly handle: FileHandle;
  /** Bytes of the whole file as they are seen. */
  readonly size: number;
}

/**
 * The files of this job in a request, in its order. An entry that is none of them is omitted.
 */
export function wantedParts(asked: readonly (AskedPart | null)[], job: SubmittedJob): WantedPart[] {
  const tasks = new Map<string | null, SubmittedTask>(job.tasks.map((task) => [task.taskId, task]));
  return asked.flatMap((entry) => {
    const task = tasks.get(entry?.taskId ?? null);
    if (task === undefined || entry?.file == null) return [];
    return [{ task, file: entry.file, offset: entry.offset }];
  });
}

/**
 * Opens what is there, in this order; the caller closes it. One that cannot be opened or read from there on fails all.
 */
export async function openParts(
  wanted: readonly WantedPart[],
  { rules }: OperationCall,
  { cluster }: SandboxPlace,
): Promise<OpenPart[]> {
  const open: OpenPart[] = [];
  try {
    for (const part of wanted) {
      const path = pathOf(part);
      const handle = await openWithin(cluster.directory, path);
      if (handle === undefined) continue;
      const { task, file } = part;
      const size = await sizeOf(handle, part);
      open.push({ ...part, handle, size: visibleSize(size, staleBytes(rules, { taskId: task.taskId, file })) });
    }
    return open;
  } catch (error) {
    await closeParts(open);
    throw error;
  }
}

export async function closeParts(open: readonly OpenPart[]): Promise<void> {
  await Promise.all(open.map(({ handle }) => handle.close()));
}

export const hasText = ({ offset, size }: OpenPart) => offset < size;

/** The text of a part in pieces. */
export function textOf({ handle, offset, size }: OpenPart, decoding: DecodingOptions = {}): AsyncGenerator<string> {
  return decodeBlocks(readRange(handle, Number(offset), size), decoding);
}

/** From the directory of its task, without a slash before it. */
export function relativePathOf(part: WantedPart): string {
  return relative(part.task.directory, pathOf(part));
}

function pathOf({ task, file }: WantedPart): string {
  return task.files[file];
}

/** Bytes of the whole file; one that cannot be read from the offset on is closed. */
async function sizeOf(handle: FileHandle, { task, file, offset }: WantedPart): Promise<number> {
  try {
    if (offset < 0n) throw new ServiceFault(`The offset ${offset} is negative.`);
    if (offset > MAX_OFFSET) throw new ServiceFault(`EINVAL: the offset ${offset} is no place in a file.`);
    const stats = await handle.stat();
    if (!stats.isFile()) throw new ServiceFault(`The ${file} of task ${task.taskId} is no file.`);
    return stats.size;
  } catch (error) {
    await handle.close();
    throw error;
  }
}
