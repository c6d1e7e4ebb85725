/** Compares local files with a listed file while its bytes arrive: one download serves all of them. */
import fs from 'node:fs/promises';
import { commonLength } from '../../bytes.ts';
import { asJobtailError, type JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { inSlices } from '../../slices.ts';
import { READ } from '../../system/regular-files.ts';
import type { Remote } from '../ports.ts';

/**
 * equal: the local file equals the start of the remote file, or all of it if `bytes` is `remoteBytes`. different: `at` is
 * the offset of the first byte that differs. unproven: the files could not be compared; see `reason`.
 */
export type Proof =
  | { readonly outcome: 'equal'; readonly bytes: number; readonly remoteBytes: number }
  | { readonly outcome: 'different'; readonly bytes: number; readonly remoteBytes: number; readonly at: number }
  | { readonly outcome: 'unproven'; readonly bytes: number; readonly reason: string };

/** Local files kept open at a time; further ones are opened again for each piece of the listed file. */
const MAX_OPEN = 256;

export interface LocalFile {
  /** The length when the comparison was planned. */
  readonly bytes: number;
  /** The first bytes: a file that differs here is never opened. */
  readonly head: Buffer;
}

/** One local file in a comparison; it is read while the listed file arrives. */
export class Comparison {
  readonly #file: string;
  readonly #head: Buffer | undefined;
  /** Whether to stop at the first difference: then the length of the listed file stays unknown. */
  readonly untilDifferent: boolean;
  #handle: fs.FileHandle | undefined;
  #inode: number | undefined;
  bytes: number;
  differsAt: number | undefined;
  reason: string | undefined;
  failure: JobtailError | undefined;

  constructor(file: string, untilDifferent: boolean, local?: LocalFile) {
    this.#file = file;
    this.untilDifferent = untilDifferent;
    this.#head = local?.head;
    this.bytes = local?.bytes ?? 0;
  }

  async open(): Promise<void> {
    const handle = await openToRead(this.#file);
    if (handle === undefined) {
      this.reason = notRegular(this.#file);
      return;
    }
    this.#handle = handle;
    const { size, ino } = await handle.stat();
    // The larger length: a file that was truncated meanwhile must count as different.
    this.bytes = Math.max(this.bytes, size);
    this.#inode ??= ino;
    if (ino !== this.#inode) this.reason = `${this.#file} was replaced while it was compared`;
  }

  /** Compares the bytes at `from`; returns whether it needs the following ones. */
  async take(bytes: Buffer, from: number): Promise<boolean> {
    try {
      if (from === 0 && this.#head !== undefined) this.#compare(this.#head.subarray(0, bytes.length), bytes, from);
      if (this.isEqualSoFar && this.#handle === undefined) await this.open();
      if (!this.isEqualSoFar || this.#handle === undefined) return false;
      const local = Buffer.allocUnsafe(Math.min(bytes.length, Math.max(0, this.bytes - from)));
      const { bytesRead } = await this.#handle.read(local, 0, local.length, from);
      this.#compare(local.subarray(0, bytesRead), bytes, from);
      // The local file was truncated meanwhile.
      if (bytesRead < local.length) this.differsAt ??= from + bytesRead;
    } catch (thrown) {
      this.failure = asJobtailError(thrown);
    }
    const needsMore = this.isEqualSoFar && this.bytes > from + bytes.length;
    if (!needsMore) await this.close();
    return needsMore;
  }

  get isEqualSoFar(): boolean {
    return this.differsAt === undefined && this.reason === undefined && this.failure === undefined;
  }

  #compare(local: Buffer, bytes: Buffer, from: number): void {
    const common = commonLength(local, bytes);
    if (common < local.length) this.differsAt = from + common;
  }

  proof(compared: Compared): Proof {
    const { bytes, differsAt, reason } = this;
    if (reason !== undefined) return { outcome: 'unproven', bytes, reason };
    if ('refusal' in compared) return { outcome: 'unproven', bytes, reason: compared.refusal };
    const { remoteBytes } = compared;
    if (differsAt === undefined) return { outcome: 'equal', bytes, remoteBytes };
    return { outcome: 'different', bytes, remoteBytes, at: differsAt };
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

/** The received bytes of the listed file, or the refusal of the service. */
export type Compared = { readonly remoteBytes: number } | { readonly refusal: string };

class Enough extends Error {}

/**
 * Compares local files with the file that the service lists as `name`, in one download. A failure of a local
 * file is stored in its comparison; a failure of the service rejects.
 */
export async function compareWith(
  name: string,
  comparisons: readonly Comparison[],
  { remote, jobId, signal }: DownloadOptions,
): Promise<Compared> {
  let remoteBytes = 0;
  let reading = comparisons;
  const compare = async (bytes: Buffer) => {
    const still: Comparison[] = [];
    for await (const one of inSlices(reading)) {
      if (await one.take(bytes, remoteBytes)) still.push(one);
      if (still.length > MAX_OPEN) await one.close();
    }
    reading = still;
    remoteBytes += bytes.length;
    if (still.length === 0 && comparisons.every(isOver)) throw new Enough();
  };
  let taken: Promise<void> = Promise.resolve();
  try {
    await remote.downloadFile(jobId, name, (bytes) => (taken = compare(bytes)), signal);
    for (const one of comparisons) if (one.isEqualSoFar && one.bytes > remoteBytes) one.differsAt = remoteBytes;
  } catch (thrown) {
    if (!(thrown instanceof Enough)) {
      const error = asJobtailError(thrown);
      if (!error.policy.isRefusal) throw error;
      return { refusal: error.message };
    }
  } finally {
    // After a failed download, `compare` may still run.
    await taken.catch(() => undefined);
    for (const one of comparisons) await one.close();
  }
  return { remoteBytes };
}

/** Whether a comparison needs neither more bytes nor the length of the listed file. */
function isOver({ differsAt, untilDifferent, isEqualSoFar }: Comparison): boolean {
  return differsAt === undefined ? !isEqualSoFar : untilDifferent;
}

/** Undefined for a link, a directory, a named pipe and the like. */
async function openToRead(file: string): Promise<fs.FileHandle | undefined> {
  const handle = await fs.open(file, READ).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ELOOP' || error.code === 'ENXIO') return undefined;
    throw error;
  });
  if (handle === undefined || (await handle.stat()).isFile()) return handle;
  await handle.close();
  return undefined;
}

export function notRegular(file: string): string {
  return `${file} is not a regular file: it is not read`;
}

export async function proveFile(file: string, name: string, options: DownloadOptions): Promise<Proof> {
  const comparison = new Comparison(file, false);
  await comparison.open();
  const nothing = { remoteBytes: 0 };
  const compared = comparison.reason === undefined ? await compareWith(name, [comparison], options) : nothing;
  if (comparison.failure !== undefined) throw comparison.failure;
  return comparison.proof(compared);
}
