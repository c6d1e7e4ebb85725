/** Holds a local file against the raw bytes of the service: the proof that a mirror or a result is what it claims. */
import { constants } from 'node:fs';
import fs from 'node:fs/promises';
import { commonLength } from '../../bytes.ts';
import { asJobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import type { LiveFileRow } from '../../store/rows.ts';
import { namesThatMayBe } from '../live/append/listed-files.ts';
import { mirrorPath } from '../live/mirror/mirror.ts';
import type { Remote, Sink } from '../ports.ts';

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
  /** Ends the download at the first difference; `remoteBytes` then are those that came. */
  readonly untilDifferent?: boolean;
}

/** Ends a download of which no more is needed. */
class Enough extends Error {}

/** Compares a local file with the file the service lists as `name`. */
export async function proveFile(file: string, name: string, options: ProofOptions): Promise<Proof> {
  const { remote, jobId, signal, untilDifferent = false } = options;
  const handle = await openRegular(file);
  if (handle === undefined)
    return { outcome: 'unproven', bytes: 0, reason: `${file} is no regular file, and is not followed` };
  let [size, remoteBytes] = [0, 0];
  let at: number | undefined;
  const compare: Sink = async (bytes) => {
    if (at === undefined && remoteBytes < size) {
      const local = Buffer.allocUnsafe(Math.min(bytes.length, size - remoteBytes));
      const { bytesRead } = await handle.read(local, 0, local.length, remoteBytes);
      const common = commonLength(local.subarray(0, bytesRead), bytes);
      if (common < local.length) at = remoteBytes + common;
    }
    remoteBytes += bytes.length;
    if (at !== undefined && untilDifferent) throw new Enough();
  };
  try {
    size = (await handle.stat()).size;
    await remote.downloadFile(jobId, name, compare, signal);
    if (at === undefined && size > remoteBytes) at = remoteBytes;
  } catch (thrown) {
    if (!(thrown instanceof Enough)) {
      const error = asJobtailError(thrown);
      if (!error.policy.isRefusal) throw error;
      return { outcome: 'unproven', bytes: size, reason: error.message };
    }
  } finally {
    await handle.close();
  }
  return at === undefined
    ? { outcome: 'equal', bytes: size, remoteBytes }
    : { outcome: 'different', bytes: size, remoteBytes, at };
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

export interface LiveProof {
  readonly proof: Proof;
  /** The listed name it was held against; null if it is not the only one that has the bytes of the mirror. */
  readonly listedName: string | null;
}

/** Compares a live mirror with the listed file that is its source: the one that is known to be it, or those whose beginning it is. */
export async function proveMirror(
  row: LiveFileRow,
  mirrorDirectory: string,
  listed: readonly string[],
  options: ProofOptions,
): Promise<LiveProof> {
  const file = mirrorPath(mirrorDirectory, row.jobId, row);
  const bytes = await lengthOf(file);
  if (bytes < row.position && row.rotation === null)
    return unproven(bytes, `${row.position - bytes} of its bytes are gone: ${row.position} were mirrored`);
  if (bytes === 0) return { proof: { outcome: 'equal', bytes, remoteBytes: 0 }, listedName: null };
  const fitting = await namesThatMayBe(listed, row.relativePath, row.listedName);
  const names = row.listedName !== null && fitting[0] === row.listedName ? fitting.slice(0, 1) : fitting;
  const found: { readonly proof: Proof; readonly listedName: string }[] = [];
  for (const listedName of names) {
    const proof = await proveFile(file, listedName, { ...options, untilDifferent: names.length > 1 });
    found.push({ proof, listedName });
  }
  const equal = found.filter(({ proof }) => proof.outcome === 'equal');
  const [first] = equal.length > 0 ? equal : found;
  if (first === undefined) return unproven(bytes, 'the service lists no file that fits');
  if (equal.length <= 1) return first;
  // Several files begin like the mirror; one that also ends with it is all that can be asked for.
  const whole = equal.find(({ proof }) => proof.outcome === 'equal' && proof.remoteBytes === proof.bytes);
  return { proof: (whole ?? first).proof, listedName: null };
}

function unproven(bytes: number, reason: string): LiveProof {
  return { proof: { outcome: 'unproven', bytes, reason }, listedName: null };
}

async function lengthOf(file: string): Promise<number> {
  try {
    return (await fs.lstat(file)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
    throw error;
  }
}
