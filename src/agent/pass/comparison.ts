/** Compares a local file with a listed file while its bytes arrive. */
import fs from 'node:fs/promises';
import { commonLength } from '../../bytes.ts';
import { asJobtailError, JobtailError, type NoFile } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { READ } from '../../system/regular-files.ts';
import type { Remote, Sink } from '../ports/server.ts';
import type { DirectBytes } from '../ports/transfer.ts';

/**
 * equal: the local file equals the start of the remote file, or all of it if `bytes` is `remoteBytes`. different: `at` is
 * the offset of the first byte that differs. unproven: the files could not be compared; see `reason`.
 */
export type Proof =
  | { readonly outcome: 'equal'; readonly bytes: number; readonly remoteBytes: number }
  | { readonly outcome: 'different'; readonly bytes: number; readonly remoteBytes: number; readonly at: number }
  | {
      readonly outcome: 'unproven';
      readonly bytes: number;
      readonly reason: string;
      /** What the server reports in the place of the file. */
      readonly inPlace?: NoFile | undefined;
    };

export interface DownloadOptions {
  readonly remote: Remote;
  /** Brings the raw bytes that the service refuses or fails to send; null or left out: nothing does. */
  readonly direct?: DirectBytes | null | undefined;
  readonly jobId: JobId;
  readonly signal: AbortSignal;
}

/** Why a comparison does not verify the local file; undefined: it has all bytes of the remote file, and no other. */
export function reasonOf(proof: Proof, name: string | null): string | undefined {
  if (proof.outcome === 'unproven') return proof.reason;
  if (proof.outcome === 'different') return `byte ${proof.at} differs${name === null ? '' : ` from ${name}`}`;
  const more = proof.remoteBytes - proof.bytes;
  if (more > 0) return proof.bytes === 0 ? 'the server has bytes of it' : `the server has ${more} bytes more of it`;
  return undefined;
}

/** Thrown by a sink that needs no further byte: it ends the download, and is no failure. */
export class Enough extends JobtailError {
  constructor() {
    super('aborted', 'enough of the file came');
  }
}

/** Compares a local file with the file that the service lists as `name`; as `compareFile`. */
export async function proveFile(
  file: string,
  name: string,
  { remote, direct, jobId, signal }: DownloadOptions,
  untilDifferent = false,
): Promise<Proof> {
  const by = (from: { readonly downloadFile: Remote['downloadFile'] }) =>
    compareFile(file, (sink) => from.downloadFile(jobId, name, sink, signal), untilDifferent);
  const first = by(remote);
  const isLeft = await first.then(
    (proof) => proof.outcome === 'unproven' && proof.inPlace !== 'nothing',
    (thrown: unknown) => thrown instanceof JobtailError && thrown.policy.ofOneFile !== 'no',
  );
  if (!isLeft || direct?.isOpen(jobId) !== true) return first;
  const second = await by(direct).catch((thrown: unknown) => {
    if (signal.aborted) throw thrown;
  });
  // The failure of the service is the reason, also if the other way fails.
  return second === undefined || second.outcome === 'unproven' ? first : second;
}

/**
 * Compares a local file with what `bring` passes on. `untilDifferent`: it ends at the first difference. Rejects if
 * `bring` does, unless the service refuses the file, or if the local file cannot be read.
 */
export async function compareFile(
  file: string,
  bring: (sink: Sink) => Promise<unknown>,
  untilDifferent = false,
): Promise<Proof> {
  const handle = await openToRead(file);
  if (handle === undefined) return unproven(`${file} is not a regular file: it is not read`);
  let remoteBytes = 0;
  let at: number | undefined;
  let taken: Promise<void> = Promise.resolve();
  try {
    const { size: bytes } = await handle.stat();
    const compare = async (piece: Buffer) => {
      const from = remoteBytes;
      remoteBytes += piece.length;
      if (at !== undefined) return;
      const local = Buffer.allocUnsafe(Math.min(piece.length, Math.max(0, bytes - from)));
      const { bytesRead } = await handle.read(local, 0, local.length, from);
      const common = commonLength(local.subarray(0, bytesRead), piece);
      // Also if the local file was truncated meanwhile.
      if (common < local.length) at = from + common;
      // What is longer than an empty file is another one.
      if (untilDifferent && (at !== undefined || bytes === 0)) throw new Enough();
    };
    try {
      await bring((piece) => (taken = compare(piece)));
    } catch (thrown) {
      const { policy, message, inPlace } = asJobtailError(thrown);
      if (policy.isRefusal) return { ...unproven(message, bytes), inPlace };
      if (!(thrown instanceof Enough)) throw thrown;
    }
    if (bytes > remoteBytes) at ??= remoteBytes;
    return at === undefined
      ? { outcome: 'equal', bytes, remoteBytes }
      : { outcome: 'different', bytes, remoteBytes, at };
  } finally {
    // After a failed download, `compare` may still run.
    await taken.catch(() => undefined);
    await handle.close();
  }
}

export const unproven = (reason: string, bytes = 0) => ({ outcome: 'unproven', bytes, reason }) as const;

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
