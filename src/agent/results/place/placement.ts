/**
 * Files that arrived take their places. A file that is a live file becomes a link, one that is here already is dropped,
 * and the others are flushed together before any of them takes its name: a target is at every moment a whole file of
 * the server or not there.
 */
import { asJobtailError, type JobtailError } from '../../../errors.ts';
import { printable } from '../../../printable.ts';
import { Slices } from '../../../slices.ts';
import type { LiveFileRow, ResultRow } from '../../../store/rows.ts';
import { inTheWay } from '../../../system/directories.ts';
import { flushAll } from '../../../system/flush.ts';
import type { FileDigest } from '../../ports.ts';
import type { LookOptions } from '../context.ts';
import { afterFetch, afterLink, postponed } from '../ledger.ts';
import type { DueResult } from '../plan.ts';
import { digestOf } from './digest.ts';
import { Targets } from './targets.ts';
import { discard, FILE_MODE, placeLink } from './temporary-files.ts';

/** A whole file of the server under a temporary name. */
export interface Arriving {
  readonly result: DueResult;
  readonly path: string;
  /** If it is known already. */
  readonly digest?: FileDigest | undefined;
}

interface Arrived extends Arriving {
  readonly digest: FileDigest;
}

export class Placement {
  readonly #options: LookOptions;
  readonly #tally = { fetched: 0, changed: 0, failed: 0 };

  constructor(options: LookOptions) {
    this.#options = options;
  }

  get tally(): { readonly fetched: number; readonly changed: number; readonly failed: number } {
    return this.#tally;
  }

  /** Those of which the place can be taken; the others fail here, before anything is fetched. */
  async free(results: readonly DueResult[]): Promise<DueResult[]> {
    const targets = this.#targets();
    const slices = new Slices();
    const free: DueResult[] = [];
    for (const result of results) {
      if (await this.#attempt([{ result }], () => targets.look(result.target))) free.push(result);
      await slices.next();
    }
    return free;
  }

  /** Gives files that arrived their places, together. */
  async settle(arriving: readonly Arriving[]): Promise<void> {
    const { ledger, onNetwork, calls } = this.#options;
    const targets = this.#targets();
    const slices = new Slices();
    const fresh: Arrived[] = [];
    for (const one of arriving) {
      await this.#attempt([one], async () => {
        const arrived = { ...one, digest: one.digest ?? (await digestOf(calls, one.path)) };
        if (!isDigested(arrived)) throw inTheWay(one.path, 'file');
        if (await this.#isNew(arrived, targets)) fresh.push(arrived);
      });
      await slices.next();
    }
    const paths = fresh.map(({ path }) => path);
    if (fresh.length > 0 && (await this.#attempt(fresh, () => flushAll(paths, onNetwork)))) {
      for (const arrived of fresh) {
        await this.#attempt([arrived], async () => {
          await calls.rename(arrived.path, arrived.result.target);
          this.#settled(arrived, true);
        });
        await slices.next();
      }
    }
    await ledger.keepUp();
  }

  /** Puts a link to a mirror in the place of a result. */
  async link(result: DueResult, live: LiveFileRow): Promise<void> {
    const { ledger } = this.#options;
    await this.#attempt([{ result }], async () => {
      await this.#targets().look(result.target);
      await this.#putLink(result, live);
    });
    await ledger.keepUp();
  }

  /** Takes down that a file did not come. */
  failed(row: ResultRow, error: JobtailError): void {
    const { ledger, now, progress } = this.#options;
    this.#tally.failed += 1;
    progress.done();
    ledger.add(postponed(row, 'failed', printable(error.message), now()));
  }

  /** Takes down that a file is not wanted as it is. */
  leftOut(row: ResultRow, reason: string): void {
    const { ledger, now, progress } = this.#options;
    progress.done();
    ledger.add(postponed(row, 'left-out', reason, now()));
  }

  #targets(): Targets {
    return new Targets(this.#options.mirrorDirectory, this.#options.calls);
  }

  /** Whether a file is to take its place; one that is a live file, or is here already, is settled at once. */
  async #isNew(arrived: Arrived, targets: Targets): Promise<boolean> {
    const { links, progress, calls } = this.#options;
    const { result, path, digest } = arrived;
    const present = await targets.look(result.target);
    const live = await links.match({ file: path, ...digest }, result.row, result.parts);
    if (live !== undefined) {
      await discard(path);
      await this.#putLink(result, live);
      progress.done();
      return false;
    }
    // Read, not believed: somebody may have changed it here.
    const isHere =
      typeof present === 'object' &&
      present.bytes === digest.bytes &&
      (await digestOf(calls, result.target))?.sha256 === digest.sha256;
    if (isHere) {
      await discard(path);
      this.#settled(arrived, false);
      return false;
    }
    await calls.chmod(path, FILE_MODE);
    return true;
  }

  async #putLink({ row, target }: DueResult, live: LiveFileRow): Promise<void> {
    const { links, ledger, now } = this.#options;
    await placeLink(links.textOf(live, target), target);
    links.link(row.name, live);
    ledger.add(afterLink(row, live, now()), target);
  }

  #settled({ result, digest }: Arrived, changed: boolean): void {
    const { jobId, ledger, options, now, progress, onFetched } = this.#options;
    const { row, target } = result;
    onFetched?.(jobId, row.name, digest.bytes, changed);
    this.#tally.fetched += 1;
    this.#tally.changed += changed ? 1 : 0;
    progress.done();
    ledger.add(afterFetch(row, digest, options.intervalMs, now()), changed ? target : undefined);
  }

  /** Does something for some files. If it fails, so do they, and what arrived of them is removed; others go on. */
  async #attempt(files: readonly Partial<Arriving>[], work: () => unknown): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (thrown) {
      const error = asJobtailError(thrown);
      for (const { path, result } of files) {
        if (path !== undefined) await discard(path);
        if (error.policy.ofOneFile === 'yes' && result !== undefined) this.failed(result.row, error);
      }
      if (error.policy.ofOneFile !== 'yes') throw error;
      return false;
    }
  }
}

function isDigested(arriving: Arriving): arriving is Arrived {
  return arriving.digest !== undefined;
}
