/**
 * The result files of a job. The listing is full each time and says neither size nor time (docs/servers.md 4.1), so a
 * ledger keeps what was fetched: a file is fetched when it is first listed, and looked at again at intervals that
 * stretch while it does not change.
 */
import path from 'node:path';
import type { JobId } from '../../job.ts';
import { systemClock } from '../../system/clock.ts';
import { makeDirectories } from '../../system/directories.ts';
import { DiskReserve, Throttle } from '../../system/disk-room.ts';
import { fileCalls } from '../../system/files.ts';
import type { ResultsContext, ResultsPass } from './context.ts';
import { clearStaging } from './download/by-direct.ts';
import { Ledger } from './ledger.ts';
import { ignoresCase } from './listing/selection.ts';
import { LiveLinks } from './place/live-links.ts';
import { clearPartials } from './place/temporary-files.ts';
import { distinct, planLook } from './plan.ts';
import { Progress } from './progress.ts';
import { Look } from './sync.ts';

/** Where the results of a job are; a contract with those who read them. */
export function resultsDirectory(mirrorDirectory: string, jobId: JobId): string {
  return path.join(mirrorDirectory, jobId, 'results');
}

/** What one look found and did. */
export interface ResultsEnd {
  /** Names in the listing. */
  readonly listed: number;
  /** Files that came, changed or not, and those of them that are new or changed. */
  readonly fetched: number;
  readonly changed: number;
  /** Files that should have come and did not. */
  readonly failed: number;
  /** Names that are unsafe, and files that the configuration leaves out. */
  readonly refused: number;
  readonly leftOut: number;
  /** Bytes that came. */
  readonly bytes: number;
  readonly tookMs: number;
}

export class Results {
  readonly #context: ResultsContext;
  readonly #throttle: Throttle;
  readonly #cleared = new Set<JobId>();

  constructor(context: ResultsContext) {
    this.#context = context;
    this.#throttle = new Throttle(context.options.bandwidthLimit ?? null, context.clock ?? systemClock);
  }

  /** One look at a job's results: lists, then fetches what is due. A file that fails by itself stops no other. */
  async sync(jobId: JobId, pass: ResultsPass): Promise<ResultsEnd> {
    const { store, mirrorDirectory, options, now, onRefused, onProgress } = this.#context;
    const startedAt = now();
    const directory = resultsDirectory(mirrorDirectory, jobId);
    const context = this.#lookContext();
    const { calls, onNetwork } = context;
    await this.#clear(jobId, directory);
    const listed = await pass.remote.listChangedFiles(jobId, pass.signal);

    if (listed.length > 0) await makeDirectories(mirrorDirectory, directory);
    const foldsCase = await ignoresCase(calls, directory);

    const left = await distinct(listed);
    const links = new LiveLinks({
      ...{ mirrorDirectory, calls },
      liveFiles: store.liveFiles.ofJob(jobId),
      linked: store.results.links(jobId).filter(({ name }) => left.has(name)),
    });
    const ledger = new Ledger({ store, now, onNetwork });
    const { intervalMs } = options;
    const plan = await planLook({
      ...{ jobId, left, ledger, links, directory, intervalMs, foldsCase },
      rows: store.results.ofJob(jobId),
      patterns: options,
      final: pass.final,
      now: startedAt,
    });
    if (plan.refusals.fresh.length > 0) onRefused?.(jobId, plan.refusals);

    const progress = new Progress({ store, jobId, now, onProgress }, plan.due.length);
    const look = new Look({ ...context, jobId, directory, pass, links, ledger, progress });
    await allInTurn([
      async () => {
        for (const link of plan.links) await look.link(link);
        await look.fetchAll(plan.due);
      },
      () => ledger.flush(),
      () => progress.end(),
    ]);
    const { refused, leftOut } = store.results.counts(jobId);
    const bytes = progress.bytes;
    return { listed: listed.length, ...look.tally, refused, leftOut, bytes, tookMs: now() - startedAt };
  }

  /** Gives back what a direct transfer lent for a job that is over. What cannot be given back now is, a little later. */
  async endTransfer(jobId: JobId, { remote, signal }: Pick<ResultsPass, 'remote' | 'signal'>): Promise<void> {
    await this.#context.direct?.end(jobId, remote, signal).catch(() => {});
  }

  /** A job that is given up. */
  forgetJob(jobId: JobId): void {
    this.#cleared.delete(jobId);
    this.#context.direct?.forgetJob(jobId);
  }

  /** The context, complete. */
  #lookContext() {
    const { clock = systemClock, minFreeBytes = 0, parallel = 1, onNetwork = false, mirrorDirectory } = this.#context;
    const reserve = new DiskReserve(mirrorDirectory, minFreeBytes);
    const calls = fileCalls(onNetwork);
    return { ...this.#context, onNetwork, calls, clock, reserve, parallel, throttle: this.#throttle };
  }

  /** Removes what a kill left behind, once. */
  async #clear(jobId: JobId, directory: string): Promise<void> {
    if (this.#cleared.has(jobId)) return;
    await clearPartials(directory);
    // What a direct transfer left to be resumed is of no use where none is wanted any more.
    if (this.#context.direct === undefined) await clearStaging(path.dirname(directory));
    this.#cleared.add(jobId);
  }
}

/** Does all of them, whether those before failed or not. Rejects with the first failure. */
async function allInTurn(steps: readonly (() => void | Promise<void>)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const step of steps) {
    try {
      await step();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}
