/**
 * One complete pass over a job: it polls the live files to their end, proves them by their raw bytes, then syncs all
 * results; a result proven to be a live file is not downloaded again. The interface names no state of a job
 * (docs/dev/soap.md 3), so a file is complete after two polls in a row, with a pause, that bring nothing. If all
 * mirrors are verified and the job stays followed, one poll is enough.
 */
import { EXIT, JobtailError, type RequestRefusal } from '../../errors.ts';
import { type JobId, keyText, type LiveFileKey } from '../../job.ts';
import { listedOrNone } from '../../live-paths.ts';
import { isVerified } from '../../proven.ts';
import type { LiveFileRow } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import { type Clock, sleep } from '../../system/clock.ts';
import { needsAnotherPoll, type PollOutcome } from '../live/catch-up.ts';
import type { JobPolls, Polled } from '../poll/poll.ts';
import type { Listing, Remote } from '../ports/server.ts';
import type { DirectBytes } from '../ports/transfer.ts';
import type { Results, ResultsEnd } from '../results/results.ts';
import { reasonOf } from './comparison.ts';
import { isSource, type LiveProof, proveMirrors } from './mirror-proofs.ts';

export interface PassContext {
  readonly store: Store;
  readonly clock: Clock;
  readonly remote: Remote;
  readonly results: Results;
  /** Brings the raw bytes of live files that the service does not send. */
  readonly direct: DirectBytes | null;
  readonly mirrorDirectory: string;
  /** Between two polls. */
  readonly pauseMs: number;
}

interface CompletePassOptions extends PassContext {
  /** Whether the job is not followed any more after this pass. */
  readonly isLast: boolean;
  /** Whether the job service reports more to come, also after an unwatch. */
  readonly isActive?: boolean;
  /** Called when all that is left are results. */
  readonly onCompared?: () => void;
  readonly signal: AbortSignal;
}

interface OpenEnd extends LiveFileKey {
  readonly reason: string;
}

export interface PassSummary {
  readonly appended: number;
  readonly liveFiles: number;
  readonly verified: number;
  readonly openEnds: readonly OpenEnd[];
  readonly results: ResultsEnd | null;
  /** Whether the listing has no file, although live files have bytes: results may be missing. */
  readonly isListingEmpty: boolean;
}

/** What a command that requested a pass is answered. */
export type PassAnswer = { readonly summary: PassSummary } | RequestRefusal;

const MAX_POLLS = 12;
/** Of a job that stays followed: a command does not wait for its end. */
const MAX_GROWING_POLLS = 4;
const MAX_PROOFS = 3;
/** Live files that are compared beside each other, as far as places for calls are free. */
const COMPARED_BESIDE = 4;
/** A truncation must persist for five seconds: all polls of a pass together take longer. */
const WITNESS_PAUSE_MS = 1_000;

const UNFINISHED: Partial<Record<PollOutcome, string>> = {
  'incomplete-character': 'it ends inside a character',
  'raw-unavailable': 'the service does not show its first bytes, and there are no raw bytes',
  changing: 'it goes on changing',
  unclear: 'it goes on changing',
};

/** A file could not be compared at the end of its job, although the service responded to other calls of the pass. */
export class NotCompared extends JobtailError {
  constructor({ code, message, hint, retryAfterMs }: JobtailError) {
    super(code, message, { hint, retryAfterMs });
  }
}

/**
 * Rejects if the service fails and, after everything else is done, if this machine could not store a file, or with
 * `NotCompared`.
 */
export async function completePass(polls: JobPolls, options: CompletePassOptions): Promise<PassSummary> {
  const { store } = options;
  const { jobId } = polls;
  let polled = await pollToEnd(polls, options);
  let { appended } = polled;
  let { openEnds, failures, listed } = await compareAll(jobId, polled.outcomes, options);
  // A file that grew or was rewritten during the pass is polled again; a file that keeps growing has no end yet.
  const isTriedAgain = () => openEnds.length > failures.length && (options.isLast || polled.isQuiet);
  for (let proofs = 1; isTriedAgain() && proofs < MAX_PROOFS; proofs++) {
    polled = await pollToEnd(polls, options);
    appended += polled.appended;
    if (polled.appended === 0 && proofs > 1) break;
    ({ openEnds, failures, listed } = await compareAll(jobId, polled.outcomes, options));
  }
  options.onCompared?.();
  const results = store.jobs.get(jobId)?.results ? await syncResults(jobId, listed, options) : null;
  const ofMachine = [...polled.errors.values()].find(({ policy }) => policy.exitCode === EXIT.local);
  if (ofMachine !== undefined) throw ofMachine;
  // A last pass is made again for what may still be compared.
  if (options.isLast && failures[0] !== undefined) throw new NotCompared(failures[0]);
  const rows = store.liveFiles.ofJob(jobId);
  const isListingEmpty = results?.listed === 0 && rows.some(({ position }) => position > 0);
  return {
    appended,
    liveFiles: rows.length,
    verified: rows.length - openEnds.length,
    openEnds,
    results,
    isListingEmpty,
  };
}

/**
 * In the last pass, and in one of a job that is not followed, a result that is not what it was at its last fetch is
 * fetched again: the same content proves it, another one counts as a failure.
 * What was not there when it was requested is requested after another listing.
 */
async function syncResults(jobId: JobId, listed: Listing, options: CompletePassOptions) {
  const { store, results, remote, isLast, signal } = options;
  const end = await results.sync(jobId, { remote, isFinal: true, signal, ...(listed.length > 0 && { listed }) });
  const { inFlux, queued } = store.results.counts(jobId);
  const isOver = isLast || store.jobs.get(jobId)?.state !== 'watched';
  if (queued === 0 && (!isOver || inFlux === 0)) return end;
  const again = await results.sync(jobId, { remote, isFinal: true, onlyInFlux: true, signal });
  const sum = (of: 'fetched' | 'changed' | 'failed' | 'bytes' | 'tookMs') => end[of] + again[of];
  // No later pass proves these.
  const left = store.results.counts(jobId);
  return {
    ...again,
    fetched: sum('fetched'),
    changed: sum('changed'),
    failed: sum('failed') + (isOver ? left.inFlux + left.queued : 0),
    bytes: sum('bytes'),
    tookMs: sum('tookMs'),
  };
}

/** Instead of a pass over a deleted job: its files stay as they are. */
export function passOfDeleted(jobId: JobId, store: Store): PassSummary {
  store.results.endUnfinished(jobId, 'the job was deleted before it was fetched');
  const state = store.jobs.get(jobId)?.state;
  // Its results may be older than what was verified.
  const isEarly = state !== 'settled' && state !== 'ended';
  return summaryWithoutPass(jobId, store, 'the job was deleted before it was verified', isEarly);
}

/** The files of a job stay as they are, because they can no longer be compared. `isEarly`: no comparison counts. */
export function summaryWithoutPass(jobId: JobId, store: Store, reason: string, isEarly = false): PassSummary {
  const rows = store.liveFiles.ofJob(jobId);
  const open = rows.filter((row) => isEarly || !isVerified(row) || row.early);
  store.transaction(() => {
    for (const row of open) store.liveFiles.setComparison(row, { verified: null, unverified: reason, early: false });
  });
  const openEnds = open.map(({ taskId, file }) => ({ taskId, file, reason }));
  const counts = { appended: 0, liveFiles: rows.length, verified: rows.length - open.length };
  return { ...counts, openEnds, results: null, isListingEmpty: false };
}

/** `isQuiet`: whether two polls in a row returned nothing new. */
async function pollToEnd(polls: JobPolls, options: CompletePassOptions) {
  const { store, remote, signal, clock, isLast } = options;
  const rows = store.liveFiles.ofJob(polls.jobId);
  const maxPolls = rows.length === 0 ? 0 : MAX_POLLS;
  const maxGrowing = isLast ? MAX_POLLS : MAX_GROWING_POLLS;
  let { pauseMs } = options;
  let appended = 0;
  let outcomes: Polled['outcomes'] = new Map();
  let errors: Polled['errors'] = new Map();
  let quiet = !isLast && rows.every(({ verified, position }) => verified === position) ? 1 : 0;
  for (let count = 0, growing = 0; count < maxPolls && growing < maxGrowing && quiet < 2; count++) {
    if (count > 0) await sleep(clock, pauseMs, signal);
    const polled = await polls.poll({ remote, whole: remote, isFinal: true, signal });
    ({ outcomes, errors } = polled);
    const waits = [...outcomes.values()].some(needsAnotherPoll);
    quiet = polled.appended === 0 && !waits ? quiet + 1 : 0;
    growing += polled.appended > 0 ? 1 : 0;
    pauseMs = waits ? Math.max(options.pauseMs, WITNESS_PAUSE_MS) : options.pauseMs;
    appended += polled.appended;
  }
  return { appended, outcomes, errors, isQuiet: quiet >= 2 };
}

/**
 * Compares each mirror with its raw bytes, and saves the outcome. `failures`: comparisons that failed, and may succeed
 * later. Rejects if the service cannot be called.
 */
async function compareAll(jobId: JobId, outcomes: Polled['outcomes'], options: CompletePassOptions) {
  const { store, remote, mirrorDirectory, direct, isLast, isActive, signal } = options;
  const rows = store.liveFiles.ofJob(jobId);
  if (rows.length === 0) return { openEnds: [], failures: [], listed: [] };
  const listed = await listedOrNone(remote.listChangedFiles(jobId, signal));
  const reasons = new Map(rows.map((row) => [row, reasonWithout(row, outcomes.get(keyText(row)))]));
  const whole = rows.filter((row) => reasons.get(row) === undefined);
  const { capabilities } = store;
  const sources = new Set(rows.map(({ listedName }) => listedName));
  const absent = new Set([...outcomes].flatMap(([key, outcome]) => (outcome === 'absent' ? [key] : [])));
  const how = {
    remote,
    direct,
    jobId,
    signal,
    mirrorDirectory,
    capabilities,
    listed,
    absent,
    sources,
    beside: COMPARED_BESIDE,
  };
  const found = await proveMirrors(whole, how);
  for (const [index, row] of whole.entries()) {
    const one = found[index];
    if (one !== undefined) reasons.set(row, 'proof' in one ? reasonOf(one.proof, one.listedName) : one.message);
  }
  const state = store.jobs.get(jobId)?.state;
  const early = isActive === true || (!isLast && state !== 'settled' && state !== 'ended');
  store.transaction(() => {
    for (const [index, row] of whole.entries()) savePaths(row, found[index], outcomes.get(keyText(row)), store);
    for (const [row, unverified = null] of reasons)
      store.liveFiles.setComparison(row, { verified: unverified === null ? row.position : null, unverified, early });
  });
  return {
    openEnds: [...reasons].flatMap(([{ taskId, file }, reason]) =>
      reason === undefined ? [] : [{ taskId, file, reason }],
    ),
    listed,
    failures: found.flatMap((one) => ('policy' in one && one.policy.passes ? [one] : [])),
  };
}

/** Why a mirror is known to be incomplete before its bytes are compared. */
function reasonWithout({ error, position }: LiveFileRow, outcome: PollOutcome | undefined): string | undefined {
  if (error !== null) return error.message;
  return position === 0 && outcome !== undefined ? UNFINISHED[outcome] : undefined;
}

/** Saves what a comparison shows of a mirror besides its outcome. */
function savePaths(
  row: LiveFileRow,
  found: LiveProof | JobtailError | undefined,
  outcome: PollOutcome | undefined,
  store: Store,
): void {
  if (found === undefined || !('proof' in found)) return;
  const { proof } = found;
  // The committed bytes are intact, so the remote file was rewritten: the next poll compares all of it. A mismatch in
  // the uncommitted tail is repaired by the next poll. Of a file that does not exist, another one is listed.
  if (proof.outcome === 'different' && proof.at < row.position && outcome !== 'absent')
    store.liveFiles.save({ ...row, inode: null, modifiedNs: null });
  else if (isSource(found) && reasonOf(proof, found.listedName) === undefined)
    store.liveFiles.save({ ...row, listedName: found.listedName });
}
