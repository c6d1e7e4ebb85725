/**
 * One complete pass over a job: its live files to their end, all results, then proof by raw bytes. The interface names
 * no state of a job (spec 3), so the end is where two polls in a row, with a pause, brought nothing.
 */
import type { JobId, LiveFileKey } from '../job.ts';
import type { LiveFileRow } from '../store/rows.ts';
import { sleep } from './clock.ts';
import { type PollContext, pollJob } from './poll.ts';
import type { Clock, Remote } from './ports.ts';
import { proveMirror } from './proof.ts';
import type { Results } from './results.ts';

export interface FinalPassOptions {
  readonly poll: PollContext;
  readonly results: Results;
  readonly mirrorDirectory: string;
  readonly remote: Remote;
  readonly clock: Clock;
  /** The pause before the second look. */
  readonly pauseMs: number;
  readonly signal: AbortSignal;
}

/** A live file that the pass could not bring to its end, or not prove. */
export interface OpenEnd extends LiveFileKey {
  readonly reason: string;
}

/** What a complete pass found. */
export interface PassSummary {
  readonly appended: number;
  readonly liveFiles: number;
  readonly verified: number;
  readonly openEnds: readonly OpenEnd[];
  readonly results: { readonly fetched: number; readonly changed: number; readonly failed: number } | null;
}

const MOST_POLLS = 12;
const MOST_PROOFS = 3;

export async function completePass(jobId: JobId, options: FinalPassOptions): Promise<PassSummary> {
  const { store } = options.poll;
  let appended = await pollToEnd(jobId, options);
  const results = store.jobs.get(jobId)?.results
    ? await options.results.sync(jobId, { remote: options.remote, final: true, signal: options.signal })
    : null;
  let openEnds = await proveAll(jobId, options);
  // A file that grew or was rewritten during the pass gets another chance; one that goes on growing has no end yet.
  for (let proofs = 1; openEnds.length > 0 && proofs < MOST_PROOFS; proofs++) {
    const more = await pollToEnd(jobId, options);
    appended += more;
    if (more === 0 && proofs > 1) break;
    openEnds = await proveAll(jobId, options);
  }
  const liveFiles = store.liveFiles.ofJob(jobId).length;
  return { appended, liveFiles, verified: liveFiles - openEnds.length, openEnds, results };
}

/** Polls until two polls in a row brought nothing; the bytes appended. Throws what a file met that stops it. */
async function pollToEnd(jobId: JobId, options: FinalPassOptions): Promise<number> {
  let appended = 0;
  for (let polls = 0, quiet = 0; polls < MOST_POLLS && quiet < 2; polls++) {
    if (polls > 0) await sleep(options.clock, options.pauseMs, options.signal);
    const polled = await pollJob(jobId, options.poll, { remote: options.remote, final: true, signal: options.signal });
    const waits = [...polled.ends.values()].includes('witness');
    quiet = polled.appended === 0 && !waits ? quiet + 1 : 0;
    appended += polled.appended;
  }
  return appended;
}

/** Proves each mirror; what is proven is kept as `verified`, what is not is returned with the reason. */
async function proveAll(jobId: JobId, options: FinalPassOptions): Promise<OpenEnd[]> {
  const { store } = options.poll;
  const openEnds: OpenEnd[] = [];
  const listed = await options.remote.listChangedFiles(jobId, options.signal);
  for (const row of store.liveFiles.ofJob(jobId)) {
    const reason = row.error?.message ?? (await proveOne(row, listed, options));
    if (reason !== undefined) openEnds.push({ taskId: row.taskId, file: row.file, reason });
  }
  return openEnds;
}

async function proveOne(
  row: LiveFileRow,
  listed: readonly string[],
  options: FinalPassOptions,
): Promise<string | undefined> {
  const { store } = options.poll;
  const { remote, signal } = options;
  const { proof, listedName } = await proveMirror(row, options.mirrorDirectory, listed, {
    remote,
    jobId: row.jobId,
    signal,
  });
  switch (proof.outcome) {
    case 'unproven':
      return proof.reason;
    case 'different':
      // Nobody touched the mirror, so the file was rewritten before its last bytes: compare all of it next time.
      store.transaction(() => store.liveFiles.save({ ...row, inode: null, modifiedNs: null, verified: null }));
      return `byte ${proof.at} is not the one of ${listedName}`;
    case 'equal':
      if (proof.remoteBytes > proof.bytes) return `it has ${proof.remoteBytes - proof.bytes} bytes more by now`;
      store.transaction(() =>
        store.liveFiles.save({ ...row, verified: proof.bytes, listedName: listedName ?? row.listedName }),
      );
      return undefined;
  }
}
