/**
 * One poll of one job: the questions of all its live files travel in one call, the answers go to each file's recipe,
 * and what was appended is committed in one transaction.
 */
import type { JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import type { Trouble } from '../../store/rows.ts';
import type { FollowEnd } from '../live/steps.ts';
import type { Batch } from './batch.ts';
import { Course } from './file-poll.ts';
import type { PollContext, PollOptions } from './poll-context.ts';

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

/** Polls the live files of a job. Throws if the service gave nothing for the job; what was appended is committed. */
export async function pollJob(jobId: JobId, context: PollContext, options: PollOptions): Promise<Polled> {
  const rows = context.store.liveFiles.ofJob(jobId);
  if (rows.length > 0) await options.begin?.();
  const courses = rows.map((row) => new Course(row, context, options));
  const answers: Batch[] = [];
  let failure: unknown;
  try {
    for (const course of courses) await course.begin();
    for (let asking = courses; ; ) {
      asking = asking.filter((course) => course.asks !== undefined);
      if (asking.length === 0) break;
      answers.push(await ask(jobId, asking, { context, options, begins: answers.length === 0 }));
    }
  } catch (error) {
    failure = error;
  }
  await finish(courses, context);
  if (failure !== undefined) throw failure;
  return {
    appended: courses.reduce((sum, { file }) => sum + (file?.appended ?? 0), 0),
    refused: answers.reduce((sum, { refused }) => sum + refused, 0),
    ends: new Map(courses.flatMap(({ name, end }) => (end === undefined ? [] : [[name, end]]))),
    errors: new Map(courses.flatMap(({ name, error }) => (error === undefined ? [] : [[name, error]]))),
  };
}

interface Asking {
  readonly context: PollContext;
  readonly options: PollOptions;
  readonly begins: boolean;
}

/** One round of questions and answers. */
async function ask(jobId: JobId, asking: readonly Course[], { context, options, begins }: Asking): Promise<Batch> {
  const wanted = asking.map((course) => course.request());
  const batch = await context.batches.read(options.remote, { jobId, wanted, begins }, options.signal);
  // All of them first: the poll may end within the course of any.
  for (const course of asking) course.take(batch);
  for (const course of asking) await course.resume(batch);
  return batch;
}

/** Flushes what was appended, commits it in one transaction, and gives everything back. */
async function finish(courses: readonly Course[], { store, now, commit }: PollContext): Promise<void> {
  const writes: (() => void)[] = [];
  for (const course of courses) {
    await course.close();
    const { file, row } = course;
    const error = troubleFrom(course.error, row.error, now());
    // Only an opened file may be saved whole: what failed to open may have committed a step of its own.
    if (file?.changed) {
      const grownAt = file.appended > 0 ? now() : file.row.grownAt;
      writes.push(() => store.liveFiles.save({ ...file.row, grownAt, error }));
    } else if (error !== null || row.error !== null) {
      writes.push(() => store.liveFiles.setError(row.jobId, row, error));
    }
  }
  const write = () => writes.forEach((each) => void each());
  if (writes.length > 0) await (commit?.(write) ?? store.transaction(write));
  for (const { file } of courses) file?.noteCommitted();
}

/** A failure as it is kept: since when it is known stays as long as it is the same. */
export function troubleFrom(error: JobtailError | undefined, before: Trouble | null, now: number): Trouble | null {
  if (error === undefined) return null;
  const { code, message } = error;
  const since = before?.code === code ? before.since : now;
  return { code, message, hint: error.hint ?? null, since };
}
