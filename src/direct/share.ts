/**
 * NetworkShare: the job's directory on the cluster is mounted here (spec 2.2). It is read as it is, but never beyond the
 * mount: a link on the share may lead to any file of this machine.
 */
import { createHash, randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import fs from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DirectArrival, DirectFile, DirectOrder, DirectTransfer, FileDigest } from '../agent/ports.ts';
import { JobtailError } from '../errors.ts';
import { writeAll } from '../write-all.ts';
import { prepareDirectory } from './staging.ts';

export interface ShareTransferOptions {
  /** Local paths by paths of the server. A path that none of them covers is taken as it is. */
  readonly roots: Readonly<Record<string, string>>;
}

const READ_BYTES = 1024 * 1024;
/** Handed over together. */
const MANY_FILES = 500;
const MANY_BYTES = 32 * 1024 * 1024;
/** A file that changes while it is read is read again, so often. */
const MOST_READS = 3;

export class ShareTransfer implements DirectTransfer {
  readonly #roots: Readonly<Record<string, string>>;

  constructor({ roots }: ShareTransferOptions) {
    this.#roots = roots;
  }

  async fetch<File extends DirectFile>(order: DirectOrder<File>): Promise<void> {
    const { directory, files } = order;
    const share = await this.#shareOf(order.method.sharedBasepath);
    await prepareDirectory(directory);
    const options = { ...order, ...paceOf(order), root: share.root };
    let arrivals: DirectArrival<File>[] = [];
    let bytes = 0;
    const handOver = async () => {
      await order.onFiles(arrivals);
      arrivals = [];
      bytes = 0;
    };
    for (const file of files) {
      const arrived = path.join(directory, randomBytes(8).toString('hex'));
      const copied = await copy(path.join(share.base, ...file.parts), arrived, options);
      if (copied === 'too-large') order.onTooLarge(file);
      if (typeof copied === 'string') continue;
      arrivals.push({ file, path: arrived, digest: copied });
      bytes += copied.bytes;
      if (arrivals.length >= MANY_FILES || bytes >= MANY_BYTES) await handOver();
    }
    await handOver();
    order.onWay('share');
  }

  /** Where the job's directory is here, and what must not be left. */
  async #shareOf(basePath: string | null): Promise<{ readonly base: string; readonly root: string }> {
    if (basePath === null || !path.posix.isAbsolute(basePath) || basePath.includes('\0')) {
      throw new JobtailError('unexpected-answer', 'the transfer method of the service names no path of a share', {
        hint: 'report it to the operators of the service; results come by SOAP',
      });
    }
    const there = path.posix.normalize(basePath).replace(/\/$/, '');
    const covering = Object.keys(this.#roots)
      .map((root) => ({ root, end: path.posix.normalize(root).replace(/\/$/, '') }))
      .filter(({ end }) => there === end || there.startsWith(`${end}/`))
      .sort((a, b) => b.end.length - a.end.length)[0];
    const local = covering === undefined ? undefined : this.#roots[covering.root];
    const base = local === undefined ? there : path.join(local, there.slice(covering?.end.length));
    try {
      return { base: await fs.realpath(base), root: await fs.realpath(local ?? base) };
    } catch {
      throw new JobtailError('local-io', `the share ${base} is not mounted here`, {
        hint: 'mount it, or say in results.shareRoots where it is',
      });
    }
  }
}

interface CopyOptions {
  readonly root: string;
  readonly maxFileBytes: number | null;
  /** Called with the bytes of each piece; waits where the bandwidth is limited. */
  readonly onPiece: (bytes: number) => Promise<void>;
  readonly signal: AbortSignal;
}

/** Copies one file; one that is not there, leads out of the share, or does not hold still is passed over. */
async function copy(
  source: string,
  target: string,
  options: CopyOptions,
): Promise<FileDigest | 'too-large' | 'passed-over'> {
  const from = await openWithin(options.root, source);
  if (from === undefined) return 'passed-over';
  try {
    for (let reads = 0; reads < MOST_READS; reads++) {
      const before = await from.stat({ bigint: true });
      if (!before.isFile()) return 'passed-over';
      if (options.maxFileBytes !== null && before.size > options.maxFileBytes) return 'too-large';
      const digest = await copyOnce(from, target, options);
      const after = await from.stat({ bigint: true });
      const isSame = after.mtimeNs === before.mtimeNs && after.size === before.size;
      if (isSame && BigInt(digest.bytes) === after.size) return digest;
    }
    await fs.rm(target, { force: true });
    return 'passed-over';
  } finally {
    await from.close();
  }
}

async function copyOnce(from: fs.FileHandle, target: string, { onPiece, signal }: CopyOptions): Promise<FileDigest> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;
  const to = await fs.open(target, flags, 0o600);
  try {
    const buffer = Buffer.allocUnsafe(READ_BYTES);
    const hash = createHash('sha256');
    for (let at = 0; ; ) {
      if (signal.aborted) throw new JobtailError('aborted', 'the transfer was stopped');
      const { bytesRead } = await from.read(buffer, 0, buffer.length, at);
      if (bytesRead === 0) return { bytes: at, sha256: hash.digest('hex') };
      hash.update(buffer.subarray(0, bytesRead));
      await writeAll(to, buffer.subarray(0, bytesRead), at);
      at += bytesRead;
      await onPiece(bytesRead);
    }
  } finally {
    await to.close();
  }
}

/** Opens a file for reading if it lies within the root once links are followed: what is open cannot be swapped. */
async function openWithin(root: string, file: string): Promise<fs.FileHandle | undefined> {
  const handle = await fs.open(file, constants.O_RDONLY | constants.O_NONBLOCK).catch(() => undefined);
  if (handle === undefined) return undefined;
  // Where it cannot be said, it may be anywhere.
  const real = await fs
    .readlink(`/proc/self/fd/${handle.fd}`)
    .catch(() => fs.realpath(file))
    .catch(() => '');
  if (real.startsWith(root === '/' ? root : `${root}/`)) return handle;
  await handle.close();
  return undefined;
}

/** Reports the bytes of all files together, and holds them to the limit. */
function paceOf({ bytesPerSecond, onBytes, signal }: Pick<DirectOrder, 'bytesPerSecond' | 'onBytes' | 'signal'>) {
  let bytes = 0;
  const startedMs = performance.now();
  return {
    async onPiece(more: number): Promise<void> {
      bytes += more;
      onBytes(bytes);
      if (bytesPerSecond === null) return;
      const earlyMs = startedMs + (bytes / bytesPerSecond) * 1000 - performance.now();
      if (earlyMs > 0) await sleep(earlyMs, undefined, { signal }).catch(() => {});
    },
  };
}
