/**
 * One call for many live files, taken apart when it fails: one unreadable file can fail the call for all
 * (docs/servers.md 1.7), and some servers refuse a long request (docs/servers.md 6.3).
 */
import { asJobtailError, type ErrorCode, type JobtailError } from '../../errors.ts';
import { type JobId, keyText } from '../../job.ts';
import { ByJob } from '../by-job.ts';
import type { HabitStore } from '../live/text/encoding.ts';
import type { Part, PartRequest, Remote } from '../ports.ts';

/** What one round brought, by `keyText`: a part, an error of that file alone, or neither (the file does not exist). */
export interface Batch {
  readonly parts: Map<string, Part>;
  readonly errors: Map<string, JobtailError>;
  refused: number;
}

/** One question of a poll: at its beginning for all files of the job, later for those of which more is wanted. */
export interface Round {
  readonly jobId: JobId;
  readonly wanted: readonly PartRequest[];
  readonly begins: boolean;
}

const LIMIT_HABIT = 'batch-limit';

export class BatchReader {
  readonly #habits: HabitStore;
  #limit: number;
  /** A length that failed as a whole the last time, while its halves went through. */
  #tooLong: number | undefined;
  /** Files that failed a call by themselves. */
  readonly #poisoned = new ByJob<true>();
  /** Jobs of which every file failed, with the number of the file to be tried next. */
  readonly #broken = new Map<JobId, number>();

  constructor(habits: HabitStore) {
    this.#habits = habits;
    this.#limit = Number(habits.get(LIMIT_HABIT) ?? Number.POSITIVE_INFINITY);
  }

  /** Reads all that is wanted; throws if it is the beginning of a poll and no file of the job could be read. */
  async read(remote: Remote, { jobId, wanted, begins }: Round, signal: AbortSignal): Promise<Batch> {
    const call: Call = { remote, jobId, signal, batch: { parts: new Map(), errors: new Map(), refused: 0 } };
    const { batch } = call;
    try {
      const turn = this.#broken.get(jobId);
      if (turn === undefined || !begins) await this.#readSlices(call, wanted);
      else await this.#readBroken(call, wanted, turn);
    } catch (error) {
      for (const part of batch.parts.values()) await part.content.release();
      throw error;
    }
    const [first] = batch.errors.values();
    const broken = begins && first !== undefined && batch.errors.size === wanted.length;
    for (const request of wanted) {
      const name = keyText(request);
      if (!broken && batch.errors.has(name)) this.#poisoned.set(jobId, name, true);
      else this.#poisoned.delete(jobId, name);
    }
    if (broken) {
      this.#broken.set(jobId, 0);
      throw first;
    }
    return batch;
  }

  forgetJob(jobId: JobId): void {
    this.#poisoned.forgetJob(jobId);
    this.#broken.delete(jobId);
  }

  /** All of the job failed last time: one call, for another file each time, shows whether it still does. */
  async #readBroken(call: Call, wanted: readonly PartRequest[], turn: number): Promise<void> {
    this.#broken.set(call.jobId, turn + 1);
    const tried = wanted.slice(turn % wanted.length).slice(0, 1);
    await readOnce(call, tried);
    this.#broken.delete(call.jobId);
    await this.#readSlices(
      call,
      wanted.filter((request) => !tried.includes(request)),
    );
  }

  async #readSlices(call: Call, wanted: readonly PartRequest[]): Promise<void> {
    const alone = wanted.filter((request) => this.#poisoned.get(call.jobId, keyText(request)));
    const together = wanted.filter((request) => !alone.includes(request));
    const slices = [...inSlices(together, this.#limit), ...inSlices(alone, 1)];
    for (const slice of slices) await this.#divide(call, slice);
  }

  async #divide(call: Call, wanted: readonly PartRequest[]): Promise<void> {
    const { batch } = call;
    try {
      await readOnce(call, wanted);
      if (wanted.length >= (this.#tooLong ?? Number.POSITIVE_INFINITY)) this.#tooLong = undefined;
    } catch (thrown) {
      const error = asJobtailError(thrown);
      if (!error.policy.isDivisible) throw error;
      const [only, ...others] = wanted;
      if (only === undefined) return;
      if (others.length === 0) {
        batch.errors.set(keyText(only), error);
        return;
      }
      const errorsBefore = batch.errors.size;
      const half = Math.ceil(wanted.length / 2);
      await this.#divide(call, wanted.slice(0, half));
      await this.#divide(call, wanted.slice(half));
      if (batch.errors.size === errorsBefore) this.#learnLimit(half, wanted.length, error.code);
    }
  }

  /** The halves went through where the whole did not: it is too long if it says so, or if that comes twice in a row. */
  #learnLimit(half: number, whole: number, code: ErrorCode): void {
    if (code === 'request-too-long' || this.#tooLong === whole) {
      this.#limit = Math.min(this.#limit, half);
      this.#habits.set(LIMIT_HABIT, String(this.#limit));
    }
    this.#tooLong = whole;
  }
}

interface Call {
  readonly remote: Remote;
  readonly jobId: JobId;
  readonly signal: AbortSignal;
  readonly batch: Batch;
}

async function readOnce({ remote, jobId, signal, batch }: Call, wanted: readonly PartRequest[]): Promise<void> {
  const { parts, refused } = await remote.readParts(jobId, wanted, signal);
  for (const part of parts) batch.parts.set(keyText(part), part);
  batch.refused += refused;
}

function inSlices<T>(items: readonly T[], most: number): T[][] {
  const slices: T[][] = [];
  const size = Math.min(most, Math.max(1, items.length));
  for (let start = 0; start < items.length; start += size) slices.push(items.slice(start, start + size));
  return slices;
}
