/**
 * One complete pass over a job: its live files to their end, proof by raw bytes, then all results: what is proven to be
 * a live file is not fetched with them. The interface names no state of a job (docs/interface.md 3), so the end is
 * where two polls in a row, with a pause, brought nothing. Of a job that is followed further, the first of them may be
 * one before this pass: that nothing came since its mirrors were proven is known.
 */
import { EXIT, JobtailError } from '../../errors.ts';
import { type JobId, keyText, type LiveFileKey } from '../../job.ts';
import type { LiveFileRow } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import { type Clock, sleep } from '../../system/clock.ts';
import { listedFiles } from '../live/append/listed-files.ts';
import { type FollowEnd, wantsAnotherLook } from '../live/steps.ts';
import type { JobPolls, Polled } from '../poll/poll.ts';
import type { JobService, Remote } from '../ports.ts';
import type { Results, ResultsEnd } from '../results/results.ts';
import type { LiveProof } from './candidate.ts';
import { isDeleted } from './deleted-jobs.ts';
import { proveMirrors } from './mirror-proofs.ts';

export interface CompletePassOptions {
  readonly store: Store;
  readonly results: Results;
  readonly mirrorDirectory: string;
  readonly remote: Remote;
  /** Reports the state of the job; null if there is no such service. */
  readonly jobService: JobService | null;
  readonly clock: Clock;
  /** The pause before the second look. */
  readonly pauseMs: number;
  /** Nobody looks again after this pass. */
  readonly isLast: boolean;
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
  readonly results: ResultsEnd | null;
}

const MOST_POLLS = 12;
const MOST_PROOFS = 3;
/** A file that looks shorter has to look so for five seconds: as many polls as there are must not be over before. */
const WITNESS_PAUSE_MS = 1_000;

/** Why a mirror that has nothing yet is not at its end. */
const UNFINISHED: Partial<Record<FollowEnd, string>> = {
  tail: 'it ends inside a character',
  raw: 'it begins with bytes that are not UTF-8, and its raw bytes are not to be had',
  different: 'it goes on changing',
  unclear: 'it goes on changing',
};

/**
 * Rejects if the service is not to be had, and, once everything else is done, if this machine could not take a file: an
 * end without it would be none.
 */
export async function completePass(polls: JobPolls, options: CompletePassOptions): Promise<PassSummary> {
  const { store } = options;
  const { jobId } = polls;
  if (await isDeleted(jobId, options)) {
    await options.results.linkToMirrors(jobId);
    return summaryOfDeleted(jobId, store);
  }
  let polled = await pollToEnd(polls, options);
  let { appended } = polled;
  let openEnds = await proveAll(jobId, polled.ends, options);
  // A file that grew or was rewritten during the pass gets another chance; one that goes on growing has no end yet.
  for (let proofs = 1; openEnds.length > 0 && proofs < MOST_PROOFS; proofs++) {
    polled = await pollToEnd(polls, options);
    appended += polled.appended;
    if (polled.appended === 0 && proofs > 1) break;
    openEnds = await proveAll(jobId, polled.ends, options);
  }
  const results = store.jobs.get(jobId)?.results
    ? await options.results.sync(jobId, { remote: options.remote, final: true, signal: options.signal })
    : null;
  const [failure] = [...polled.errors.values()].filter(({ policy }) => policy.exitCode === EXIT.local);
  if (failure !== undefined) throw failure;
  const liveFiles = store.liveFiles.ofJob(jobId).length;
  return { appended, liveFiles, verified: liveFiles - openEnds.length, openEnds, results };
}

/** A deleted job: its files stay as they are, and nothing of them can be compared any more. */
function summaryOfDeleted(jobId: JobId, store: Store): PassSummary {
  const rows = store.liveFiles.ofJob(jobId);
  const open = rows.filter(({ verified, position }) => verified !== position);
  const openEnds = open.map(({ taskId, file }) => ({
    taskId,
    file,
    reason: 'the job was deleted before it was verified',
  }));
  return { appended: 0, liveFiles: rows.length, verified: rows.length - open.length, openEnds, results: null };
}

/**
 * Polls until two polls in a row brought nothing; the bytes appended, and how each file stands in the end. Without live
 * files there is nothing to wait for.
 */
async function pollToEnd(polls: JobPolls, options: CompletePassOptions): Promise<Omit<Polled, 'refused'>> {
  const { store, remote, signal, clock, isLast } = options;
  const rows = store.liveFiles.ofJob(polls.jobId);
  const mostPolls = rows.length === 0 ? 0 : MOST_POLLS;
  const quietBefore = !isLast && rows.every(({ verified, position }) => verified === position) ? 1 : 0;
  let { pauseMs } = options;
  let appended = 0;
  let ends: Polled['ends'] = new Map();
  let errors: Polled['errors'] = new Map();
  for (let count = 0, quiet = quietBefore; count < mostPolls && quiet < 2; count++) {
    if (count > 0) await sleep(clock, pauseMs, signal);
    const polled = await polls.poll({ remote, final: true, signal });
    if (polled.failure !== undefined) throw polled.failure;
    ({ ends, errors } = polled);
    const waits = [...ends.values()].some(wantsAnotherLook);
    quiet = polled.appended === 0 && !waits ? quiet + 1 : 0;
    pauseMs = waits ? Math.max(options.pauseMs, WITNESS_PAUSE_MS) : options.pauseMs;
    appended += polled.appended;
  }
  return { appended, ends, errors };
}

/**
 * Proves each mirror; what is proven is kept as `verified`, what is not is returned with the reason. Rejects if the
 * service is not to be had, and, once all others are kept, if a mirror could not be compared.
 */
async function proveAll(jobId: JobId, ends: Polled['ends'], options: CompletePassOptions): Promise<OpenEnd[]> {
  const { store, remote, mirrorDirectory, signal } = options;
  const rows = store.liveFiles.ofJob(jobId);
  if (rows.length === 0) return [];
  const listed = await listedFiles(remote, jobId, signal);
  const owners = new Map(rows.map((row) => [row.listedName, keyText(row)]));
  const reasons = new Map(rows.map((row) => [row, reasonAgainst(row, ends.get(keyText(row)))]));
  const whole = rows.filter((row) => reasons.get(row) === undefined);
  // A listed file that is proven to be another live file is not this one.
  const mayBe = (name: string, row: LiveFileRow) => [undefined, keyText(row)].includes(owners.get(name));
  const found = await proveMirrors(whole, { remote, jobId, signal, mirrorDirectory, listed, mayBe });
  store.transaction(() => {
    for (const [index, row] of whole.entries()) {
      const one = found[index];
      if (one !== undefined && !(one instanceof JobtailError)) reasons.set(row, concluded(row, one, store));
    }
  });
  const failure = found.find((one) => one instanceof JobtailError);
  if (failure !== undefined) throw failure;
  return rows.flatMap((row) => {
    const reason = reasons.get(row);
    return reason === undefined ? [] : [{ taskId: row.taskId, file: row.file, reason }];
  });
}

/** Why a mirror cannot be whole, before its bytes are compared. */
function reasonAgainst({ error, inexact, position }: LiveFileRow, end: FollowEnd | undefined): string | undefined {
  if (error !== null) return error.message;
  if (position === 0 && end !== undefined && end in UNFINISHED) return UNFINISHED[end];
  const bytes = inexact.reduce((sum, { length }) => sum + length, 0);
  return bytes === 0 ? undefined : `${bytes} bytes are not those of the file: the service hands out no raw bytes`;
}

/** Keeps what a proof says of a mirror; why it is open, if it is. */
function concluded(row: LiveFileRow, { proof, listedName }: LiveProof, store: Store): string | undefined {
  switch (proof.outcome) {
    case 'unproven':
      return proof.reason;
    case 'different':
      // Nobody touched the mirror, so the file was rewritten before its last bytes: compare all of it next time. What a
      // kill left behind the position was never promised, and the next poll mends it.
      if (proof.at < row.position) store.liveFiles.save({ ...row, inode: null, modifiedNs: null, verified: null });
      return `byte ${proof.at} is not the one of ${listedName}`;
    case 'equal':
      if (proof.remoteBytes > proof.bytes) return `it has ${proof.remoteBytes - proof.bytes} bytes more by now`;
      store.liveFiles.save({ ...row, verified: proof.bytes, listedName: listedName ?? row.listedName });
      return undefined;
  }
}
