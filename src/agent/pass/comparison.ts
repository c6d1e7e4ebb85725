/** Local files held against the bytes of a listed file while they arrive: it is downloaded once for all of them. */
import { constants } from 'node:fs';
import fs from 'node:fs/promises';
import { commonLength } from '../../bytes.ts';
import { asJobtailError, type JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { inSlices } from '../../slices.ts';
import type { Remote, Sink } from '../ports.ts';

/**
 * equal: the local bytes are the remote ones, or the beginning of them (`remoteBytes` says how many there are).
 * different: the first byte that is not the same is at `at`. unproven: the raw bytes could not be had, see `reason`.
 */
export type Proof =
  | { readonly outcome: 'equal'; readonly bytes: number; readonly remoteBytes: number }
  | { readonly outcome: 'different'; readonly bytes: number; readonly remoteBytes: number; readonly at: number }
  | { readonly outcome: 'unproven'; readonly bytes: number; readonly reason: string };

/** Files that are kept open at a time; others that begin like the listed one are opened for each piece of it. */
const MOST_OPEN = 256;

/** What was seen of a local file before it is compared. */
export interface Looked {
  /** Its length in bytes, and its first bytes. Most files that differ do so there, and are not opened for that. */
  readonly bytes: number;
  readonly head: Buffer;
}

/** One local file in a comparison. What says that it is equal is read while the listed file arrives. */
export class Comparison {
  readonly #file: string;
  readonly #head: Buffer | undefined;
  /** The first difference ends the comparison: how long the listed file is does not matter then. */
  readonly untilDifferent: boolean;
  #handle: fs.FileHandle | undefined;
  #inode: number | undefined;
  /** The length of the local file. */
  bytes: number;
  /** The first byte that is not the same. */
  differsAt: number | undefined;
  /** Why it cannot be compared: it is no regular file. */
  reason: string | undefined;
  /** Why it could not be read. */
  failure: JobtailError | undefined;

  constructor(file: string, untilDifferent: boolean, looked?: Looked) {
    this.#file = file;
    this.untilDifferent = untilDifferent;
    this.#head = looked?.head;
    this.bytes = looked?.bytes ?? 0;
  }

  async open(): Promise<void> {
    this.#handle = await openRegular(this.#file);
    if (this.#handle === undefined) {
      this.reason = notRegular(this.#file);
      return;
    }
    const { size, ino } = await this.#handle.stat();
    // What was there and is gone is missed when it is read.
    this.bytes = Math.max(this.bytes, size);
    this.#inode ??= ino;
    if (ino !== this.#inode) this.reason = `${this.#file} was replaced while it was compared`;
  }

  /** Compares the bytes that stand at `from`; whether more of them are wanted. */
  async take(bytes: Buffer, from: number): Promise<boolean> {
    try {
      if (from === 0 && this.#head !== undefined) this.#compare(this.#head.subarray(0, bytes.length), bytes, from);
      if (this.isEqualSoFar && this.#handle === undefined) await this.open();
      if (!this.isEqualSoFar || this.#handle === undefined) return false;
      const local = Buffer.allocUnsafe(Math.min(bytes.length, Math.max(0, this.bytes - from)));
      const { bytesRead } = await this.#handle.read(local, 0, local.length, from);
      this.#compare(local.subarray(0, bytesRead), bytes, from);
      // It was cut meanwhile.
      if (bytesRead < local.length) this.differsAt ??= from + bytesRead;
    } catch (thrown) {
      this.failure = asJobtailError(thrown);
    }
    const isWanted = this.isEqualSoFar && this.bytes > from + bytes.length;
    if (!isWanted) await this.close();
    return isWanted;
  }

  get isEqualSoFar(): boolean {
    return this.differsAt === undefined && this.reason === undefined && this.failure === undefined;
  }

  #compare(local: Buffer, bytes: Buffer, from: number): void {
    const common = commonLength(local, bytes);
    if (common < local.length) this.differsAt = from + common;
  }

  async close(): Promise<void> {
    const handle = this.#handle;
    this.#handle = undefined;
    await handle?.close();
  }
}

export interface DownloadOptions {
  readonly remote: Remote;
  readonly jobId: JobId;
  readonly signal: AbortSignal;
}

/** What came of the listed file, or why the service hands it out to nobody. */
export type Compared = { readonly remoteBytes: number } | { readonly refusal: string };

/** What a comparison that was not cut short by a failure proves. */
export function proofOf({ bytes, differsAt, reason }: Comparison, compared: Compared): Proof {
  if (reason !== undefined) return { outcome: 'unproven', bytes, reason };
  if ('refusal' in compared) return { outcome: 'unproven', bytes, reason: compared.refusal };
  const { remoteBytes } = compared;
  if (differsAt === undefined) return { outcome: 'equal', bytes, remoteBytes };
  return { outcome: 'different', bytes, remoteBytes, at: differsAt };
}

/** Ends a download of which no more is needed. */
class Enough extends Error {}

/**
 * Holds local files against the file the service lists as `name`, in one download. What is wrong with one of them is
 * kept in its comparison; rejects if the service fails.
 */
export async function compareWith(
  name: string,
  comparisons: readonly Comparison[],
  { remote, jobId, signal }: DownloadOptions,
): Promise<Compared> {
  let remoteBytes = 0;
  let wanting = comparisons;
  const compare = async (bytes: Buffer) => {
    const still: Comparison[] = [];
    for await (const one of inSlices(wanting)) {
      if (await one.take(bytes, remoteBytes)) still.push(one);
      if (still.length > MOST_OPEN) await one.close();
    }
    wanting = still;
    remoteBytes += bytes.length;
    if (still.length === 0 && comparisons.every(isOver)) throw new Enough();
  };
  let taken: Promise<void> = Promise.resolve();
  const sink: Sink = (bytes) => {
    taken = compare(bytes);
    return taken;
  };
  try {
    await remote.downloadFile(jobId, name, sink, signal);
    for (const one of comparisons) if (one.isEqualSoFar && one.bytes > remoteBytes) one.differsAt = remoteBytes;
  } catch (thrown) {
    if (!(thrown instanceof Enough)) {
      const error = asJobtailError(thrown);
      if (!error.policy.isRefusal) throw error;
      return { refusal: error.message };
    }
  } finally {
    // A download that breaks does not wait for its sink.
    await taken.catch(() => undefined);
    for (const one of comparisons) await one.close();
  }
  return { remoteBytes };
}

function isOver({ differsAt, untilDifferent, isEqualSoFar }: Comparison): boolean {
  return differsAt === undefined ? !isEqualSoFar : untilDifferent;
}

/** Undefined if a link, a pipe or the like stands in its place. */
async function openRegular(file: string): Promise<fs.FileHandle | undefined> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const handle = await fs.open(file, flags).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ELOOP' && error.code !== 'ENXIO') throw error;
  });
  if (handle === undefined || (await handle.stat()).isFile()) return handle ?? undefined;
  await handle.close();
  return undefined;
}

export function notRegular(file: string): string {
  return `${file} is no regular file, and is not followed`;
}
