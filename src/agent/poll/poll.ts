/**
 * The polls of one job. Its live files are polled together: what they wait for is one call, and each goes on with its
 * response (file-poll.ts), until none waits. Then one transaction commits all that was appended. At most a thousand files
 * are polled together, because each may have an open mirror.
 */
import { JobtailError } from '../../errors.ts';
import { type JobId, keyText, type LiveFileKey } from '../../job.ts';
import { slicesOf } from '../../slices.ts';
import type { LiveFileRow } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import { storedErrorFrom } from '../failures.ts';
import type { PollOutcome } from '../live/catch-up.ts';
import { FileMemory } from '../live/memory.ts';
import type { LiveFileOptions } from '../live/mirror/mirror.ts';
import type { RawBytes } from '../live/raw-bytes.ts';
import type { BytesRequest, LiveResponses, LiveSource, PollCalls } from '../ports/live-source.ts';
import { FilePoll, type FileWaits } from './file-poll.ts';

/** What all polls of all jobs share. */
export interface PollContext {
  readonly store: Store;
  readonly rawBytes: RawBytes;
  readonly liveFiles: LiveFileOptions;
  readonly sourceOf: (jobId: JobId) => LiveSource;
  readonly commitTogether: Commit;
  /** Wall clock, in milliseconds. */
  readonly now: () => number;
  /** Monotonic clock, in milliseconds. */
  readonly monotonic: () => number;
  /** Live files of a job that are polled together; `MAX_TOGETHER` if it is left out. */
  readonly maxTogether?: number | undefined;
}

/** Resolves when what `write` writes is on the disk, at most `withinMs` from now; jobs that end together share a commit. */
type Commit = (write: () => void, withinMs?: number) => Promise<void>;

interface PollOptions extends PollCalls {
  /** A complete pass (`sync`, the end of a job): raw bytes are fetched without the pauses between downloads. */
  readonly isFinal: boolean;
  /** Waits until requests are allowed; nothing is opened before. Called for each group of files. */
  readonly waitForTurn?: () => Promise<void>;
  /** Called with the number of bytes that a group of files got, also if the poll fails then. */
  readonly onAppended?: (bytes: number) => void;
}

export interface Polled {
  appended: number;
  refused: number;
  /** By `keyText`, except of files that failed. */
  readonly outcomes: Map<string, PollOutcome>;
  readonly errors: Map<string, JobtailError>;
}

/** Maximum live files that are polled together: the system allows a process some thousands of open files. */
export const MAX_TOGETHER = 1_000;
/** Maximum mirrors that are flushed at a time, each in a thread of the few that this process has. */
const MAX_FLUSHES = 4;

export class JobPolls {
  readonly jobId: JobId;
  readonly #context: PollContext;
  readonly #source: LiveSource;
  /** By `keyText`, of each live file that was polled. */
  readonly #memories = new Map<string, FileMemory>();

  constructor(jobId: JobId, context: PollContext) {
    this.jobId = jobId;
    this.#context = context;
    this.#source = context.sourceOf(jobId);
  }

  /** Throws if a group of files could not be polled; what was appended until then is committed. */
  async poll({ waitForTurn, ...options }: PollOptions): Promise<Polled> {
    const { store, maxTogether = MAX_TOGETHER } = this.#context;
    const polled: Polled = { appended: 0, refused: 0, outcomes: new Map(), errors: new Map() };
    if (!store.liveFiles.hasAny(this.jobId)) return polled;
    // Thousands of jobs may wait: none of them has its rows in memory meanwhile.
    await waitForTurn?.();
    const groups = slicesOf(store.liveFiles.ofJob(this.jobId), maxTogether);
    for (const [index, rows] of groups.entries()) {
      if (index > 0) await waitForTurn?.();
      await this.#pollTogether(rows, index === 0, options, polled);
    }
    return polled;
  }

  /** Adds to `polled` what it brings. */
  async #pollTogether(
    rows: readonly LiveFileRow[],
    isFirst: boolean,
    { isFinal, onAppended, ...calls }: Omit<PollOptions, 'waitForTurn'>,
    polled: Polled,
  ): Promise<void> {
    const { rawBytes, liveFiles, monotonic } = this.#context;
    const onePoll = { source: this.#source, rawBytes, liveFiles, isFinal, signal: calls.signal, monotonic };
    const files = rows.map((row) => new FilePoll(row, this.#memoryOf(row), onePoll));
    try {
      await pollFiles(files, {
        send: async (wanted, isFirstCall) => {
          const responses = await this.#source.bytes(wanted, calls, isFirst && isFirstCall);
          polled.refused += responses.refused;
          return responses;
        },
        commit: async () => {
          for (const file of files) await file.commitAppended();
        },
      });
    } finally {
      await this.#finish(files);
      const appended = files.reduce((sum, { mirror }) => sum + (mirror?.appended ?? 0), 0);
      polled.appended += appended;
      if (appended > 0) onAppended?.(appended);
    }
    for (const { name, outcome, error } of files) {
      if (outcome !== undefined) polled.outcomes.set(name, outcome);
      if (error !== undefined) polled.errors.set(name, error);
    }
  }

  #memoryOf(key: LiveFileKey): FileMemory {
    const name = keyText(key);
    const memory = this.#memories.get(name) ?? new FileMemory(this.#context.monotonic);
    this.#memories.set(name, memory);
    return memory;
  }

  /** Flushes what was appended, releases everything, and commits in one transaction. */
  async #finish(files: readonly FilePoll[]): Promise<void> {
    const { store, now, commitTogether } = this.#context;
    const writes: (() => void)[] = [];
    for (const slice of slicesOf(files, MAX_FLUSHES)) await Promise.all(slice.map((file) => file.close()));
    for (const file of files) {
      const { mirror, row } = file;
      // A poll that broke off shows nothing about a file that waited.
      const isOpen = file.outcome === undefined && file.error === undefined;
      const error = isOpen ? row.error : storedErrorFrom(file.error, row.error, now());
      // A mirror that failed to open may have committed a step of its rotation, so only its error is saved.
      if (mirror?.changed) {
        const grownAt = mirror.appended > 0 ? now() : mirror.row.grownAt;
        const after = { ...mirror.row, grownAt, error };
        writes.push(() => store.liveFiles.save(after));
      } else if (error !== null || row.error !== null) {
        writes.push(() => store.liveFiles.setError(row.jobId, row, error));
      }
    }
    if (writes.length > 0) await commitTogether(() => writes.forEach((write) => void write()));
  }
}

interface RoundOptions {
  readonly send: (wanted: readonly BytesRequest[], isFirst: boolean) => Promise<LiveResponses>;
  /** Commits what was appended so far. */
  readonly commit: () => Promise<void>;
}

interface Waiting<Value> {
  /** Index of the file. */
  readonly place: number;
  readonly resume: (value: Value) => void;
  readonly fail: (error: Error) => void;
}

/**
 * Polls files together. A file runs until it waits; when each of them waits or has ended, it is their turn again. Loads
 * come first: one call carries what they wait for. Then files that wait for a commit go on one at a time, because each may
 * download a whole file. Their order is that of `files`, whichever mirror was opened first. Rejects, after each file has
 * ended, with the first failure that ends the poll.
 */
async function pollFiles(files: readonly FilePoll[], { send, commit }: RoundOptions): Promise<void> {
  const loading: (Waiting<LiveResponses> & { readonly request: BytesRequest })[] = [];
  const committing: Waiting<void>[] = [];
  const failures: unknown[] = [];
  /** Files that neither wait nor have ended. */
  let running = files.length;
  let onNoneRuns = () => {};
  const stopsRunning = () => {
    running -= 1;
    if (running === 0) onNoneRuns();
  };
  const wait = <Value>(place: number, add: (one: Waiting<Value>) => void) =>
    new Promise<Value>((resolve, reject) => {
      const goOn = (settle: () => void) => {
        running += 1;
        settle();
      };
      add({ place, resume: (value) => goOn(() => resolve(value)), fail: (error) => goOn(() => reject(error)) });
      stopsRunning();
    });
  const waitsOf = (place: number): FileWaits => ({
    load: (request) => wait(place, (one) => loading.push({ ...one, request })),
    waitForCommit: () => wait(place, (one) => committing.push(one)),
  });
  const byPlace = (a: { readonly place: number }, b: { readonly place: number }) => a.place - b.place;
  const polls = files.map((file, place) =>
    file
      .run(waitsOf(place))
      .catch((error: unknown) => failures.push(error))
      .finally(stopsRunning),
  );
  for (let isFirst = true; ; isFirst = false) {
    if (running > 0) await new Promise<void>((resolve) => (onNoneRuns = resolve));
    if (failures.length > 0 || loading.length + committing.length === 0) break;
    try {
      if (loading.length > 0) {
        const wanted = loading.sort(byPlace).map(({ request }) => request);
        const responses = await send(wanted, isFirst);
        for (const { resume } of loading.splice(0)) resume(responses);
      } else {
        await commit();
        committing.sort(byPlace).shift()?.resume();
      }
    } catch (error) {
      failures.push(error);
    }
  }
  for (const { fail } of [...loading, ...committing]) fail(pollFailed());
  await Promise.all(polls);
  if (failures.length > 0) throw failures[0];
}

const pollFailed = () => new JobtailError('aborted', 'the poll failed');
