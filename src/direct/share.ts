/**
 * NetworkShare: the job's directory on the cluster is mounted here (docs/dev/soap.md 2.2). Only the configuration
 * names the mounts. The server names a path, and a link on the share may lead to any file of this machine, so a file is
 * opened only if it is below such a root after following links.
 */

import { randomBytes } from 'node:crypto';
import type { Stats } from 'node:fs';
import fs from 'node:fs/promises';
import path from 'node:path';
import type {
  ClusterList,
  DirectArrival,
  DirectFile,
  DirectRequest,
  DirectTransfer,
  Irregular,
} from '../agent/ports/transfer.ts';
import { JobtailError, stopped } from '../errors.ts';
import { LinkedAbort } from '../linked-abort.ts';
import { isWithin, reasonAgainstRoot } from '../share-root.ts';
import { systemClock, Throttle } from '../system/clock.ts';
import { EXACT, fileCalls, writeNewFile } from '../system/files.ts';
import { READ } from '../system/regular-files.ts';
import { prepareDirectory } from './directories.ts';
import { unacceptable } from './failures.ts';

export interface ShareTransferOptions {
  /** Local paths by paths of the server. Paths outside of them are not read. */
  readonly roots: Readonly<Record<string, string>>;
  /** Paths that no root may contain or be in. */
  readonly guarded: readonly string[];
  readonly idleMs?: number;
}

/** Maximum time of one call to the share; then the service sends the files. */
const IDLE_MS = 60_000;
const READ_BYTES = 1024 * 1024;
/** Files are passed on so often: each time costs a flush, and a kill loses only what was not passed on. */
const BATCH_MS = 2_000;
/** A file that changes while it is read is read again, up to this number. */
const MAX_READS = 3;
const MAX_SHOWN = 200;
/** As Linux: a path with more links leads nowhere. */
const MAX_LINKS = 40;

export function shareTransfer({ idleMs = IDLE_MS, ...options }: ShareTransferOptions): DirectTransfer {
  const hung = new Set<string>();
  const answerOf = (root: string, signal: AbortSignal) => answerWithin({ root, idleMs, hung, signal });
  return {
    async fetch(request: DirectRequest) {
      const covered = coveredPath(request.method.sharedBasepath, options.roots);
      const answer = answerOf(covered.root.here, request.signal);
      const share = await answer(() => openShare(covered, options));
      await prepareDirectory(request.directory);
      request.onReached();
      const throttle = new Throttle(request.bytesPerSecond, systemClock);
      let written = 0;
      const onPiece = async (bytes: number) => {
        written += bytes;
        request.onBytes(written);
        await throttle.pay(bytes, request.signal);
      };
      let arrivals: DirectArrival[] = [];
      let handedOverAt = performance.now();
      for (const file of request.files) {
        const found = await answer(() => follow(file.parts, share));
        const open = () => (found?.stat?.isFile() ? openWithin(share.root, found.at) : Promise.resolve(undefined));
        const from = await answer(open, (late) => late?.close());
        const irregular = found === undefined ? undefined : irregularOf(found);
        if (irregular !== undefined) request.onIrregular(file, irregular);
        if (from === undefined) continue;
        // One that cannot be read keeps none of the others; the service may send it.
        const arrived = await copy(file, from, request, { answer, onPiece })
          .catch((thrown: unknown) => {
            if (!(thrown instanceof Unread)) throw thrown;
          })
          .finally(() => {
            const closing = from.close();
            closing.catch(() => {});
            return answer(() => closing);
          });
        if (arrived) arrivals.push(arrived);
        if (arrivals.length === 0 || performance.now() - handedOverAt < BATCH_MS) continue;
        await request.onFiles(arrivals);
        arrivals = [];
        handedOverAt = performance.now();
      }
      if (arrivals.length > 0) await request.onFiles(arrivals);
    },
    async list({ method, signal }) {
      const covered = coveredPath(method.sharedBasepath, options.roots);
      const answer = answerOf(covered.root.here, signal);
      const { base } = await answer(() => openShare(covered, options));
      return await listBelow(base, answer);
    },
  };
}

/** Waits for a call to a share; `onLate` takes a value that comes after that. */
type Answer = <Value>(call: () => Promise<Value>, onLate?: (value: Value) => unknown) => Promise<Value>;

interface AnswerOptions {
  readonly root: string;
  readonly idleMs: number;
  /** Roots with a call that did not return: it keeps a thread of this process, so no other call is made meanwhile. */
  readonly hung: Set<string>;
  readonly signal: AbortSignal;
}

/** A call to a mount whose server is gone may never return. */
function answerWithin({ root, idleMs, hung, signal }: AnswerOptions): Answer {
  const silent = () =>
    new JobtailError('interrupted', `the share ${root} did not answer for ${idleMs / 1000} s`, {
      hint: 'check the mount and its file server',
    });
  return async (call, onLate = () => {}) => {
    if (signal.aborted) throw stopped();
    if (hung.has(root)) throw silent();
    const wait = new LinkedAbort(signal, stopped).within(idleMs, silent);
    const calling = call();
    try {
      return await new Promise((resolve, reject) => {
        wait.signal.addEventListener('abort', () => reject(wait.signal.reason));
        calling.then(resolve, reject);
      });
    } catch (error) {
      const returned = () => void hung.delete(root);
      if (wait.signal.aborted) calling.then(onLate).then(returned, returned);
      if (wait.signal.aborted && !signal.aborted) hung.add(root);
      throw error;
    } finally {
      wait.release();
    }
  };
}

/** A file that is removed meanwhile is left out. Names are bytes: one that is not UTF-8 has U+FFFD in its place. */
async function listBelow(base: string, answer: Answer): Promise<ClusterList> {
  const files: { readonly name: string; readonly bytes: number }[] = [];
  let links = 0;
  const directories = [{ directory: Buffer.from(base), name: '' }];
  // Those that are found meanwhile, too.
  for (const { directory, name: prefix } of directories) {
    const reading = answer(() => fs.readdir(directory, { withFileTypes: true, encoding: 'buffer' }));
    const entries = prefix === '' ? await reading : ((await unlessGone(reading)) ?? []);
    for (const entry of entries) {
      const file = Buffer.concat([directory, Buffer.from('/'), entry.name]);
      const name = `${prefix}${entry.name.toString()}`;
      if (entry.isSymbolicLink()) links += 1;
      else if (entry.isDirectory()) directories.push({ directory: file, name: `${name}/` });
      else {
        const stat = await unlessGone(answer(() => fs.lstat(file)));
        if (stat?.isFile()) files.push({ name, bytes: stat.size });
      }
    }
  }
  return { files, links };
}

async function unlessGone<Value>(call: Promise<Value>): Promise<Value | undefined> {
  return await call.catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
    throw error;
  });
}

interface Root {
  readonly there: string;
  readonly here: string;
}

/** The longest root that covers a path of the server. */
export function coveringRoot(basePath: string, roots: ShareTransferOptions['roots']): Root | undefined {
  const covering = Object.entries(roots)
    .map(([there, here]) => ({ there: withoutSlash(there), here }))
    .filter(({ there }) => isWithin(there || '/', withoutSlash(basePath) || '/'));
  return covering.sort((a, b) => b.there.length - a.there.length)[0];
}

const withoutSlash = (directory: string) => path.posix.normalize(directory).replace(/\/$/, '');

/** The real path of a root. @throws JobtailError if it is missing or not allowed */
export async function openRoot(root: string, guarded: readonly string[]): Promise<string> {
  const real = await fs.realpath(root).catch(() => {
    throw notMounted(root);
  });
  const found = await Promise.all(guarded.map((file) => fs.realpath(file).catch(() => file)));
  const reason = reasonAgainstRoot(real, [...guarded, ...found]);
  if (reason === undefined) return real;
  const led = real === root ? '' : `, which leads to ${real},`;
  throw new JobtailError('config', `the share ${root}${led} is not read: ${reason}`, {
    hint: 'name a directory with files of the cluster and nothing else in results.shareRoots',
  });
}

function notMounted(directory: string): JobtailError {
  return new JobtailError('local-io', `the share ${directory} is not mounted here`, {
    hint: 'mount it, or correct its path in results.shareRoots',
  });
}

interface Share {
  /** The real paths of the job's directory and of its root, and the root's path on the cluster. */
  readonly base: string;
  readonly root: string;
  readonly there: string;
}

interface CoveredPath {
  readonly basePath: string;
  readonly root: Root;
}

function coveredPath(basePath: string | null, roots: ShareTransferOptions['roots']): CoveredPath {
  if (basePath === null || !path.posix.isAbsolute(basePath) || /\p{Cc}/u.test(basePath)) {
    throw unacceptable('the transfer method of the service names no path of a share');
  }
  const root = coveringRoot(basePath, roots);
  if (root === undefined) throw notCovered(basePath);
  return { basePath, root };
}

async function openShare(
  { basePath, root: { here, there } }: CoveredPath,
  { guarded }: Pick<ShareTransferOptions, 'guarded'>,
): Promise<Share> {
  const root = await openRoot(here, guarded);
  const local = path.join(root, withoutSlash(basePath).slice(there.length));
  const base = await fs.realpath(local).catch(() => {
    throw notMounted(local);
  });
  if (isWithin(root, base)) return { base, root, there };
  throw new JobtailError('unexpected-answer', `the share ${local} leads out of ${root}, and is not read`, {
    hint: 'if that is meant, name the directory that it leads to in results.shareRoots',
  });
}

export function notCovered(basePath: string): JobtailError {
  const shown = basePath.length > MAX_SHOWN ? `${basePath.slice(0, MAX_SHOWN)}...` : basePath;
  return new JobtailError('config', `the service names the share ${shown}, and results.shareRoots does not cover it`, {
    hint: 'if it is mounted here, set results.shareRoots: {PATH OF THE CLUSTER: PATH OF THIS MACHINE}',
  });
}

class Unread extends JobtailError {}

/** Copies one file; undefined for anything else, and for a file that is too large or keeps changing. */
async function copy(
  file: DirectFile,
  from: fs.FileHandle,
  { directory, maxFileBytes, onTooLarge }: DirectRequest,
  { answer, onPiece }: { readonly answer: Answer; readonly onPiece: (bytes: number) => Promise<void> },
): Promise<DirectArrival | undefined> {
  for (let reads = 0; reads < MAX_READS; reads++) {
    const before = await answer(() => from.stat(EXACT));
    if (!before.isFile()) return undefined;
    if (maxFileBytes !== null && before.size > maxFileBytes) return void onTooLarge(file);
    const arrived = path.resolve(directory, randomBytes(8).toString('hex'));
    const digest = await writeNewFile(fileCalls(true), arrived, 0o600, async (write) => {
      const buffer = Buffer.allocUnsafe(READ_BYTES);
      // One that grows as fast as it is read has no end.
      for (let at = 0; at < before.size; ) {
        const read = () => from.read(buffer, 0, Math.min(buffer.length, Number(before.size) - at), at);
        const { bytesRead } = await answer(read).catch((cause: unknown) => {
          if (cause instanceof JobtailError) throw cause;
          throw new Unread('local-io', 'a file of the share cannot be read', { cause });
        });
        if (bytesRead === 0) return;
        at += bytesRead;
        await write(buffer.subarray(0, bytesRead));
        await onPiece(bytesRead);
      }
    });
    const after = await answer(() => from.stat(EXACT));
    const isSame = after.mtimeNs === before.mtimeNs && after.size === before.size;
    if (isSame && BigInt(digest.bytes) === after.size) return { file, path: arrived, digest };
    await fs.rm(arrived, { force: true });
  }
  return undefined;
}

/** Where a path leads; `stat` is undefined if nothing is there. */
interface FoundPath {
  readonly at: string;
  readonly stat: Stats | undefined;
  readonly isLink: boolean;
}

/**
 * Follows links as the cluster does: an absolute one is a path there. Undefined if that leads out of the root, or if it
 * cannot be determined now: only the cluster can follow it then.
 */
async function follow(parts: readonly string[], { base, root, there }: Share): Promise<FoundPath | undefined> {
  const left = [...parts];
  let at = base;
  let stat: Stats | undefined;
  let isLink = false;
  for (let links = 0; left.length > 0; ) {
    at = path.join(at, left.shift() ?? '');
    if (!isWithin(root, at)) return undefined;
    try {
      stat = await fs.lstat(at);
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'ENOENT' ? { at, stat: undefined, isLink } : undefined;
    }
    if (!stat.isSymbolicLink()) continue;
    isLink ||= left.length === 0;
    if (++links > MAX_LINKS) return { at, stat: undefined, isLink };
    const to = await fs.readlink(at).catch(() => undefined);
    // Not UTF-8.
    if (to === undefined || to.includes('\uFFFD')) return undefined;
    const isAbsolute = to.startsWith('/');
    if (isAbsolute && !isWithin(there || '/', to)) return undefined;
    at = isAbsolute ? root : path.dirname(at);
    left.unshift(...(isAbsolute ? to.slice(there.length) : to).split('/'));
  }
  return { at, stat, isLink };
}

/** What is there and cannot be copied; undefined if it is a file, or missing. */
function irregularOf({ stat, isLink }: FoundPath): Irregular | undefined {
  if (stat === undefined) return isLink ? 'a link to a missing file' : undefined;
  if (stat.isDirectory()) return isLink ? 'a link to a directory' : 'a directory';
  if (stat.isFIFO()) return 'a named pipe';
  return stat.isSocket() ? 'a socket' : stat.isFile() ? undefined : 'a device';
}

/** Opens a path without links, which `follow` returned; undefined if it is not within the root any more. */
async function openWithin(root: string, file: string): Promise<fs.FileHandle | undefined> {
  const handle = await fs.open(file, READ).catch(() => undefined);
  if (handle === undefined) return undefined;
  // An open file cannot be swapped any more. With an unknown path, it may be anywhere.
  const opened = await fs
    .readlink(`/proc/self/fd/${handle.fd}`)
    .catch(() => fs.realpath(file))
    .catch(() => '');
  if (isWithin(root, opened)) return handle;
  await handle.close();
  return undefined;
}
