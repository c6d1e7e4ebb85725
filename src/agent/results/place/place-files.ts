/**
 * Moves downloaded files to their places. A live file becomes a link, and an unchanged file is dropped. The others are
 * flushed together before any of them is renamed: a target is always a complete file of the server, or absent.
 */
import fs from 'node:fs/promises';
import path from 'node:path';
import { asJobtailError, JobtailError } from '../../../errors.ts';
import type { JobId } from '../../../job.ts';
import { inSlices } from '../../../slices.ts';
import type { LiveFileRow } from '../../../store/rows.ts';
import type { Clock } from '../../../system/clock.ts';
import { flushAll, makeDirectories } from '../../../system/directories.ts';
import { type FileCalls, type FileDigest, type WritePiece, writeNewFile } from '../../../system/files.ts';
import { inTheWay } from '../../../system/regular-files.ts';
import { reasonOf } from '../download/by-direct.ts';
import type { Ledger } from '../ledger.ts';
import type { DueResult } from '../plan.ts';
import type { LiveLinks } from './live-links.ts';
import { type Arrived, digestOf, FILE_MODE, partialPath } from './temporary-files.ts';

export type DownloadKind = 'first' | 'changed' | 'same';

interface PlacementOptions {
  readonly jobId: JobId;
  readonly mirrorDirectory: string;
  readonly onNetwork: boolean;
  readonly calls: FileCalls;
  readonly clock: Clock;
  readonly links: LiveLinks;
  readonly ledger: Ledger;
  readonly signal: AbortSignal;
  /** Called just before a rename. @throws JobtailError superseded, if another agent owns the job */
  readonly requireRight: () => void;
  readonly onFetched?: ((jobId: JobId, name: string, bytes: number, kind: DownloadKind) => void) | undefined;
}

export interface Arriving {
  readonly result: DueResult;
  readonly path: string;
  readonly digest?: FileDigest | undefined;
  readonly isSent?: boolean;
}

type Digested = Arriving & Arrived;

type Present = undefined | 'link' | { readonly bytes: number };

/** A directory that was checked is not checked again for this time. */
const CHECKED_MS = 1_000;

/** A link that the agent itself made: to a mirror beside `results/`. */
const OWN_LINK = /^(?:\.\.\/)+live\/-?[0-9]+\/(?:stdout|stderr|log|progress)\.log$/;

/** What file systems answer that have no modes or links: FAT, SMB, some of FUSE. */
const UNSUPPORTED = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'];

function passUnsupported(error: unknown): void {
  const { code = '' } = error as NodeJS.ErrnoException;
  if (!UNSUPPORTED.includes(code)) throw error;
}

export class Placement {
  readonly #options: PlacementOptions;
  /** When each directory was checked, by the monotonic clock. */
  readonly #checkedAt = new Map<string, number>();

  constructor(options: PlacementOptions) {
    this.#options = options;
  }

  /** The files whose targets can be written; the others fail before anything is downloaded. */
  async placeable(results: readonly DueResult[]) {
    const files: DueResult[] = [];
    let largestPresentBytes = 0;
    for await (const result of inSlices(results)) {
      await this.#attempt([{ result }], async () => {
        const present = await this.#presentAt(result.target);
        if (typeof present === 'object') largestPresentBytes = Math.max(largestPresentBytes, present.bytes);
        files.push(result);
      });
    }
    return { files, largestPresentBytes };
  }

  /** Writes a download to a temporary file beside its target; removes an incomplete one. */
  async receive({ target }: DueResult, download: (write: WritePiece) => Promise<unknown>): Promise<Arrived> {
    const file = partialPath(path.dirname(target));
    return { path: file, digest: await writeNewFile(this.#options.calls, file, FILE_MODE, download) };
  }

  async place(arriving: readonly Arriving[]): Promise<void> {
    const { onNetwork, calls, requireRight, signal } = this.#options;
    const fresh: Digested[] = [];
    for await (const one of inSlices(arriving)) {
      await this.#attempt([one], async () => {
        const digest = one.digest ?? (await digestOf(calls, one.path));
        if (digest === undefined) throw inTheWay(one.path, 'file');
        if (await this.#needsPlace({ ...one, digest })) fresh.push({ ...one, digest });
      });
    }
    const paths = fresh.map((arrived) => arrived.path);
    if (fresh.length > 0 && (await this.#attempt(fresh, () => flushAll(paths, onNetwork, signal)))) {
      for await (const arrived of inSlices(fresh)) {
        await this.#attempt([arrived], async () => {
          requireRight();
          await calls.rename(arrived.path, arrived.result.target);
          this.#fetched(arrived, true);
        });
      }
    }
    await this.#options.ledger.keepUp();
  }

  /** Returns false if the file system refuses links: then the file is to be downloaded. */
  async link(result: DueResult, live: LiveFileRow): Promise<boolean> {
    await this.#attempt([{ result }], async () => {
      await this.#presentAt(result.target);
      await this.#putLink(result, live);
    });
    await this.#options.ledger.keepUp();
    return !this.#options.links.areRefused;
  }

  /**
   * What is at a target. Creates missing directories. Anything but a file or a link of the agent is neither followed nor
   * replaced. @throws JobtailError `local-io` if the target or a directory above it is not to be used
   */
  async #presentAt(target: string): Promise<Present> {
    const { mirrorDirectory, calls, clock } = this.#options;
    const directory = path.dirname(target);
    const now = clock.monotonic();
    if (now - (this.#checkedAt.get(directory) ?? Number.NEGATIVE_INFINITY) >= CHECKED_MS) {
      await makeDirectories(calls, mirrorDirectory, directory);
      this.#checkedAt.set(directory, now);
    }
    const stat = await calls.lstat(target);
    if (stat === undefined) return undefined;
    if (stat.isFile()) return { bytes: stat.size };
    if (!stat.isSymbolicLink()) throw inTheWay(target, 'file');
    if (OWN_LINK.test(await calls.readlink(target))) return 'link';
    throw new JobtailError('local-io', `${target} is a link, and is not followed or replaced`, {
      hint: `move ${target} out of the way`,
    });
  }

  /** Removes a copy, unless another process changed it. */
  async makeWay({ row, target }: DueResult): Promise<void> {
    const { ledger, calls, requireRight } = this.#options;
    await this.#attempt([], async () => {
      if ((await digestOf(calls, target))?.sha256 !== row.sha256) return;
      requireRight();
      await calls.remove(target);
      ledger.forget(row.name);
    });
  }

  /** Discards or links a file that needs no place. Returns whether it still needs one. */
  async #needsPlace(arrived: Digested): Promise<boolean> {
    const { links, calls } = this.#options;
    const { result, path: file, digest } = arrived;
    const present = await this.#presentAt(result.target);
    const live = await links.match(arrived, result.row, result.parts);
    if (live !== undefined && (await this.#putLink(result, live))) {
      await calls.remove(file);
      return false;
    }
    // Read again: another process may have changed it.
    const isHere =
      typeof present === 'object' &&
      present.bytes === digest.bytes &&
      (await digestOf(calls, result.target))?.sha256 === digest.sha256;
    if (isHere) {
      await calls.remove(file);
      this.#fetched(arrived, false);
      return false;
    }
    try {
      await calls.chmod(file, FILE_MODE & ~process.umask());
    } catch (error) {
      passUnsupported(error);
    }
    return true;
  }

  /** Returns false if the file system refuses links. */
  async #putLink({ row, target }: DueResult, live: LiveFileRow): Promise<boolean> {
    const { links, ledger, requireRight } = this.#options;
    requireRight();
    const link = partialPath(path.dirname(target));
    if (!links.areRefused) await fs.symlink(links.textOf(live, target), link).catch(passUnsupported);
    links.areRefused ||= (await this.#options.calls.lstat(link)) === undefined;
    if (links.areRefused) return false;
    await fs.rename(link, target);
    links.link(row.name, live);
    ledger.linked(row, live, target);
    return true;
  }

  #fetched({ result: { row, target }, digest, isSent = false }: Digested, isPlaced: boolean): void {
    const { jobId, ledger, onFetched } = this.#options;
    const kind = row.sha256 === null ? 'first' : row.sha256 === digest.sha256 ? 'same' : 'changed';
    onFetched?.(jobId, row.name, digest.bytes, kind);
    // What no row has yet was placed by a sync that may have ended before it flushed the directory.
    ledger.fetched(isSent ? { ...row, hangs: 0 } : row, digest, isPlaced || kind !== 'same' ? target : undefined);
  }

  /** If `work` fails, these files fail and their temporary files are removed; others continue. */
  async #attempt(files: readonly Partial<Arriving>[], work: () => unknown): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (thrown) {
      const { ledger, calls } = this.#options;
      const error = asJobtailError(thrown);
      for (const { path: file, result } of files) {
        if (file !== undefined) await calls.remove(file);
        if (error.policy.ofOneFile === 'yes' && result !== undefined) ledger.failed(result.row, error, reasonOf(error));
      }
      if (error.policy.ofOneFile !== 'yes') throw error;
      return false;
    }
  }
}
