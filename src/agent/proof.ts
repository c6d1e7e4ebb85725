/** Holds a local file against the raw bytes of the service: the proof that a mirror or a result is what it claims. */
import { constants } from 'node:fs';
import fs from 'node:fs/promises';
import { commonLength } from '../chunk.ts';
import { asJobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import type { LiveFileRow } from '../store/rows.ts';
import { mirrorPath } from './mirror.ts';
import type { Remote } from './ports.ts';
import { candidatesAmong, refusesFile } from './raw-bytes.ts';

/**
 * equal: the local bytes are the remote ones, or the beginning of them (`remoteBytes` says how many there are).
 * different: the first byte that is not the same is at `at`. unproven: the raw bytes could not be had, see `reason`.
 */
export type Proof =
  | { readonly outcome: 'equal'; readonly bytes: number; readonly remoteBytes: number }
  | { readonly outcome: 'different'; readonly bytes: number; readonly remoteBytes: number; readonly at: number }
  | { readonly outcome: 'unproven'; readonly bytes: number; readonly reason: string };

export interface ProofOptions {
  readonly remote: Remote;
  readonly jobId: JobId;
  readonly signal: AbortSignal;
}

/** Compares a local file with the file the service lists as `name`. */
export async function proveFile(file: string, name: string, { remote, jobId, signal }: ProofOptions): Promise<Proof> {
  const handle = await fs.open(file, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const { size } = await handle.stat();
    let remoteBytes = 0;
    let at: number | undefined;
    await remote.downloadFile(
      jobId,
      name,
      async (bytes) => {
        if (at === undefined && remoteBytes < size) {
          const local = Buffer.allocUnsafe(Math.min(bytes.length, size - remoteBytes));
          const { bytesRead } = await handle.read(local, 0, local.length, remoteBytes);
          const common = commonLength(local.subarray(0, bytesRead), bytes);
          if (common < local.length) at = remoteBytes + common;
        }
        remoteBytes += bytes.length;
      },
      signal,
    );
    if (at === undefined && size > remoteBytes) at = remoteBytes;
    return at === undefined
      ? { outcome: 'equal', bytes: size, remoteBytes }
      : { outcome: 'different', bytes: size, remoteBytes, at };
  } catch (thrown) {
    const error = asJobtailError(thrown);
    if (!refusesFile(error)) throw error;
    const { size } = await handle.stat();
    return { outcome: 'unproven', bytes: size, reason: error.message };
  } finally {
    await handle.close();
  }
}

export interface LiveProof {
  readonly proof: Proof;
  /** The listed name it was held against. */
  readonly listedName: string | null;
}

/** Compares a live mirror with the listed file that is its source: the one whose beginning it is. */
export async function proveMirror(
  row: LiveFileRow,
  mirrorDirectory: string,
  listed: readonly string[],
  options: ProofOptions,
): Promise<LiveProof> {
  const file = mirrorPath(mirrorDirectory, row.jobId, row);
  let best: LiveProof | undefined;
  for (const name of candidatesAmong(listed, row.relativePath, row.listedName)) {
    const proof = await proveFile(file, name, options);
    const found = { proof, listedName: name };
    if (proof.outcome === 'equal') return found;
    if (best === undefined || best.proof.outcome === 'unproven') best = found;
  }
  if (best !== undefined) return best;
  const bytes = await lengthOf(file);
  if (bytes === 0) return { proof: { outcome: 'equal', bytes, remoteBytes: 0 }, listedName: null };
  return { proof: { outcome: 'unproven', bytes, reason: 'the service lists no file that fits' }, listedName: null };
}

async function lengthOf(file: string): Promise<number> {
  try {
    return (await fs.lstat(file)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
    throw error;
  }
}
