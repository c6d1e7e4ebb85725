/**
 * One call for many live files, taken apart when it fails: one unreadable file can fail the call for all (field
 * notes 1), and some servers refuse a long request (field notes 6).
 */
import { asJobtailError, type ErrorCode, type JobtailError } from '../errors.ts';
import { type JobId, keyText } from '../job.ts';
import type { HabitStore } from './encoding.ts';
import type { Part, PartRequest, Remote } from './ports.ts';

/** What one round brought, by `keyText`: a part, an error of that file alone, or neither (the file does not exist). */
export interface Batch {
  readonly parts: Map<string, Part>;
  readonly errors: Map<string, JobtailError>;
  refused: number;
}

const LIMIT_HABIT = 'batch-limit';
/** Failures that may be the fault of one of several files, or of their number. */
const DIVISIBLE = new Set<ErrorCode>([
  'fault',
  'http-status',
  'request-too-long',
  'answer-too-large',
  'malformed',
  'unexpected-answer',
]);

export class BatchReader {
  readonly #habits: HabitStore;
  #limit: number;
  /** A length that failed whole once, while its halves went through. */
  #tooLong: number | undefined;
  /** Files that failed a call by themselves, and jobs of which every file did. */
  readonly #poisoned = new Set<string>();
  readonly #broken = new Set<JobId>();

  constructor(habits: HabitStore) {
    this.#habits = habits;
    this.#limit = Number(habits.get(LIMIT_HABIT) ?? Number.POSITIVE_INFINITY);
  }

  /** Reads all of `wanted`; throws if no file of the job could be read. */
  async read(remote: Remote, jobId: JobId, wanted: readonly PartRequest[], signal: AbortSignal): Promise<Batch> {
    const call: Call = { remote, jobId, signal, batch: { parts: new Map(), errors: new Map(), refused: 0 } };
    const { batch } = call;
    try {
      await this.#readSlices(call, wanted);
    } catch (error) {
      await release(batch);
      throw error;
    }
    const [first] = batch.errors.values();
    const broken = first !== undefined && batch.errors.size === wanted.length;
    for (const request of wanted) {
      const poisoned = !broken && batch.errors.has(keyText(request));
      remember(this.#poisoned, `${jobId}/${keyText(request)}`, poisoned);
    }
    remember(this.#broken, jobId, broken);
    if (broken) throw first;
    return batch;
  }

  async #readSlices(call: Call, wanted: readonly PartRequest[]): Promise<void> {
    const alone = wanted.filter((request) => this.#poisoned.has(`${call.jobId}/${keyText(request)}`));
    const together = wanted.filter((request) => !alone.includes(request));
    for (const slice of [...inSlices(together, this.#limit), ...inSlices(alone, 1)]) {
      // All of the job failed last time: one call is enough to see whether it still does.
      if (this.#broken.has(call.jobId)) await readOnce(call, slice);
      else await this.#divide(call, slice);
    }
  }

  async #divide(call: Call, wanted: readonly PartRequest[]): Promise<void> {
    const { batch } = call;
    try {
      await readOnce(call, wanted);
    } catch (thrown) {
      const error = asJobtailError(thrown);
      if (!DIVISIBLE.has(error.code)) throw error;
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

  /** The halves went through where the whole did not: it was too long, or it was chance, which does not come twice. */
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

function remember<T>(set: Set<T>, item: T, holds: boolean): void {
  if (holds) set.add(item);
  else set.delete(item);
}

async function release(batch: Batch): Promise<void> {
  for (const part of batch.parts.values()) await part.content.release();
}

function inSlices<T>(items: readonly T[], most: number): T[][] {
  const slices: T[][] = [];
  const size = Math.min(most, Math.max(1, items.length));
  for (let start = 0; start < items.length; start += size) slices.push(items.slice(start, start + size));
  return slices;
}
