/**
 * One poll of one job: the questions of all its live files travel in one call, the answers go to each file's recipe,
 * and what was appended is committed in one transaction.
 */
import { asJobtailError, type JobtailError } from '../errors.ts';
import { type JobId, keyText } from '../job.ts';
import type { LiveFileRow, Trouble } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import type { Batch, BatchReader } from './batch.ts';
import { type Follow, type FollowContext, type FollowEnd, follow } from './live/follow.ts';
import { LiveFile, type LiveFileOptions } from './live/live-file.ts';
import type { Part, Remote } from './ports.ts';

export interface PollContext extends Omit<FollowContext, 'signal' | 'final'> {
  readonly store: Store;
  readonly batches: BatchReader;
  readonly liveFiles: Omit<LiveFileOptions, 'commit'>;
  readonly now: () => number;
}

export interface PollOptions {
  readonly remote: Remote;
  readonly final: boolean;
  readonly signal: AbortSignal;
}

/** What a poll brought. */
export interface Polled {
  /** Bytes appended to the mirrors of the job. */
  readonly appended: number;
  /** Entries of answers that were refused. */
  readonly refused: number;
  /** How each file stands, by `keyText`; a file that failed is not in it. */
  readonly ends: ReadonlyMap<string, FollowEnd>;
  /** The files that failed by themselves. */
  readonly errors: ReadonlyMap<string, JobtailError>;
}

/** One file on its way through the poll. */
interface Course {
  readonly name: string;
  readonly row: LiveFileRow;
  file?: LiveFile;
  steps?: Follow<FollowEnd>;
  /** The offset the recipe waits for; undefined once it has ended. */
  asks?: number | undefined;
  end?: FollowEnd;
  error?: JobtailError;
  readonly parts: Part[];
}

/** Polls the live files of a job. Throws if the service gave nothing for the job; what was appended is committed. */
export async function pollJob(jobId: JobId, context: PollContext, options: PollOptions): Promise<Polled> {
  const rows = context.store.liveFiles.ofJob(jobId);
  const courses = rows.map((row): Course => ({ name: keyText(row), row, parts: [] }));
  let refused = 0;
  let failure: unknown;
  try {
    for (const course of courses) await guard(course, () => begin(course, context, options));
    for (let begins = true; ; begins = false) {
      const asking = courses.filter((course) => course.asks !== undefined);
      if (asking.length === 0) break;
      const wanted = asking.map(({ row, asks }) => ({ taskId: row.taskId, file: row.file, offset: asks ?? 0 }));
      const batch = await context.batches.read(options.remote, { jobId, wanted, begins }, options.signal);
      refused += batch.refused;
      for (const course of asking) {
        const part = batch.parts.get(course.name);
        if (part !== undefined) course.parts.push(part);
      }
      for (const course of asking) await guard(course, () => resume(course, batch));
    }
  } catch (error) {
    failure = error;
  }
  await finish(courses, context);
  if (failure !== undefined) throw failure;
  return {
    appended: courses.reduce((sum, { file }) => sum + (file?.appended ?? 0), 0),
    refused,
    ends: new Map(courses.flatMap(({ name, end }) => (end === undefined ? [] : [[name, end]]))),
    errors: new Map(courses.flatMap(({ name, error }) => (error === undefined ? [] : [[name, error]]))),
  };
}

async function begin(course: Course, context: PollContext, options: PollOptions): Promise<void> {
  const commit = (row: LiveFileRow) => context.store.transaction(() => context.store.liveFiles.save(row));
  course.file = await LiveFile.open(course.row, { ...context.liveFiles, commit });
  course.steps = follow(course.file, { ...context, final: options.final, signal: options.signal });
  await advance(course, undefined);
}

async function resume(course: Course, batch: Batch): Promise<void> {
  const error = batch.errors.get(course.name);
  if (error !== undefined) throw error;
  await advance(course, batch.parts.get(course.name));
}

async function advance(course: Course, part: Part | undefined): Promise<void> {
  course.asks = undefined;
  const step = await course.steps?.next(part);
  if (step === undefined) return;
  if (step.done) course.end = step.value;
  else course.asks = step.value;
}

/** A failure of one file is its own; one that stops the agent, or the state itself, ends the poll. */
async function guard(course: Course, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (thrown) {
    const error = asJobtailError(thrown);
    course.asks = undefined;
    if (error.code === 'aborted' || error.code === 'store') throw error;
    course.error = error;
  }
}

/** Flushes what was appended, commits it in one transaction, and gives everything back. */
async function finish(courses: readonly Course[], { store, now }: PollContext): Promise<void> {
  const commits: (() => void)[] = [];
  for (const course of courses) {
    const { file, row } = course;
    for (const part of course.parts) await part.content.release();
    await file?.settle().catch((error: unknown) => {
      course.error ??= asJobtailError(error);
    });
    await file?.close();
    const error = troubleFrom(course.error, row.error, now());
    // Only an opened file may be saved whole: what failed to open may have committed a step of its own.
    if (file?.changed) {
      const grownAt = file.appended > 0 ? now() : file.row.grownAt;
      commits.push(() => store.liveFiles.save({ ...file.row, grownAt, error }));
    } else if (error !== null || row.error !== null) {
      commits.push(() => store.liveFiles.setError(row.jobId, row, error));
    }
  }
  if (commits.length > 0) store.transaction(() => commits.forEach((commit) => void commit()));
  for (const { file } of courses) file?.noteCommitted();
}

/** A failure as it is kept: since when it is known stays as long as it is the same. */
export function troubleFrom(error: JobtailError | undefined, before: Trouble | null, now: number): Trouble | null {
  if (error === undefined) return null;
  const { code, message } = error;
  const since = before?.code === code ? before.since : now;
  return { code, message, hint: error.hint ?? null, since };
}
