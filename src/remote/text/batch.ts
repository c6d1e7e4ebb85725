/**
 * One call for many live files, taken apart when it fails: one unreadable file can fail the call for all
 * (docs/dev/servers.md 1.7), and some servers refuse a long request (docs/dev/servers.md 6.3).
 */

import type { Content, Part, PartRequest, Remote } from '../../agent/ports/server.ts';
import { startsAlike } from '../../bytes.ts';
import { asJobtailError, type JobtailError } from '../../errors.ts';
import { BEHIND_EVERY_END, type JobId, keyText } from '../../job.ts';
import { slicesOf } from '../../slices.ts';

/**
 * The responses of one round, by `keyText`: a part, an error of that file alone, or neither (the file does not exist).
 * Both: the service reads the file, but cannot send its text; the part is empty, and has `isBeginning`.
 */
export interface PartBatch {
  readonly parts: Map<string, Part>;
  readonly errors: Map<string, JobtailError>;
  refused: number;
}

/** What a round of a poll requests: first all files of the job, later those that need more. */
interface RoundRequest {
  readonly wanted: readonly PartRequest[];
  readonly isFirst: boolean;
}

/** How many files one call may request: fewer once the service refused a call as too long. */
export interface BatchLimit {
  files: number;
}

/** For so long: a proxy between may refuse a call for a moment. */
const BELIEVED_MS = 10 * 60_000;

export class PassingLimit implements BatchLimit {
  readonly #nowMs: () => number;
  #files = Number.POSITIVE_INFINITY;
  #since = 0;

  /** `nowMs`: the monotonic clock. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  get files(): number {
    return this.#nowMs() - this.#since < BELIEVED_MS ? this.#files : Number.POSITIVE_INFINITY;
  }

  set files(files: number) {
    this.#files = files;
    this.#since = this.#nowMs();
  }
}

/** A file that makes a call fail does so slowly: quarters find it by half as many failed calls as halves. */
const SLICES_AFTER_FAILURE = 4;

/** While the service responds to nothing of a job, a poll ends after so many failed files, or one that failed before. */
const MAX_UNREADABLE = 2;

/** Texts that are the same for so long may be of one file. */
const SAME_START_BYTES = 4 * 1024;

const NONE: ReadonlySet<string> = new Set();

export class BatchReader {
  readonly #jobId: JobId;
  readonly #limit: BatchLimit;
  /** Files that failed a call by themselves; those that failed last come last. */
  #poisoned: ReadonlySet<string> = NONE;
  /** Whether a call failed, when the job was last read, as it does for one file or where nothing is answered. */
  #isDoubtful = false;

  constructor(jobId: JobId, limit: BatchLimit) {
    this.#jobId = jobId;
    this.#limit = limit;
  }

  /** Requests all parts; throws in the first round of a poll if no file of the job could be read. */
  async read(remote: Remote, { wanted, isFirst }: RoundRequest, signal: AbortSignal): Promise<PartBatch> {
    const batch: PartBatch = { parts: new Map(), errors: new Map(), refused: 0 };
    const readOnce = async (requests: readonly PartRequest[]) => {
      const { parts, refused, beginning } = await remote.readParts(this.#jobId, requests, signal);
      for (const part of parts) batch.parts.set(keyText(part), part);
      batch.refused += refused;
      round.hasResponse = true;
      return beginning;
    };
    const sized: Round['sized'] = (requests) => remote.divide?.(this.#jobId, requests) ?? [requests];
    const round: Round = { readOnce, sized, batch, isFirst, hasResponse: false };
    try {
      // Only if the service responds to a short call, a text may be what it fails at.
      if (this.#isDoubtful && isFirst)
        for (const { content } of await withoutText(round, wanted.slice(0, 1))) await content.release();
      this.#isDoubtful = false;
      await this.#readSlices(round, wanted);
      if (isFirst && !round.hasResponse) for (const error of batch.errors.values()) throw error;
    } catch (error) {
      this.#isDoubtful ||= isDoubtful(asJobtailError(error));
      for (const part of batch.parts.values()) await part.content.release();
      throw error;
    } finally {
      const poisoned = new Set(this.#poisoned);
      for (const name of wanted.map(keyText)) {
        if (round.hasResponse || batch.errors.has(name)) poisoned.delete(name);
        if (batch.errors.has(name)) poisoned.add(name);
      }
      // Thousands of jobs have none.
      this.#poisoned = poisoned.size === 0 ? NONE : poisoned;
    }
    return batch;
  }

  async #readSlices(round: Round, wanted: readonly PartRequest[], files = this.#limit.files): Promise<void> {
    const poisoned = this.#poisoned;
    const alone = [...poisoned].flatMap((name) => wanted.filter((request) => keyText(request) === name));
    const together = alone.length === 0 ? wanted : wanted.filter((request) => !poisoned.has(keyText(request)));
    const slices = [...slicesOf(together, files).flatMap(round.sized), ...slicesOf(alone, 1)];
    for (const slice of slices) await this.#readDivided(round, slice);
  }

  async #readDivided(round: Round, wanted: readonly PartRequest[]): Promise<void> {
    const { parts, errors } = round.batch;
    try {
      const beginning = await round.readOnce(wanted);
      if (beginning !== undefined) await this.#readCut(round, wanted, beginning);
    } catch (thrown) {
      const error = asJobtailError(thrown);
      if (!error.policy.isDivisible && !(isDoubtful(error) && round.hasResponse)) throw error;
      this.#isDoubtful ||= isDoubtful(error);
      const left = wanted.filter((request) => !parts.has(keyText(request)));
      const [only, ...others] = left;
      if (only === undefined) return;
      if (others.length === 0) {
        errors.set(keyText(only), error);
        // If the service responds without the text, only that is too long to be sent.
        const [part] = round.isFirst ? await withoutText(round, [only]) : [];
        if (part) parts.set(keyText(only), { ...part, offset: only.offset, isBeginning: true });
        const isEnough = errors.size >= MAX_UNREADABLE || this.#poisoned.has(keyText(only));
        if (isEnough && round.isFirst && !round.hasResponse) throw error;
        return;
      }
      const errorsBefore = errors.size;
      const size = Math.ceil(left.length / SLICES_AFTER_FAILURE);
      for (const slice of slicesOf(left, size)) await this.#readDivided(round, slice);
      // All slices succeeded.
      if (errors.size === errorsBefore && error.code === 'request-too-long')
        this.#limit.files = Math.min(this.#limit.files, size);
    }
  }

  /**
   * Finds the file of a text that was cut, without another call for that text. A service responds in an order of its own,
   * so it is the first file that has a name now: if each other one comes whole, or begins otherwise.
   */
  async #readCut(round: Round, wanted: readonly PartRequest[], content: Content): Promise<void> {
    const { parts, errors } = round.batch;
    const missing = wanted.filter((request) => !parts.has(keyText(request)));
    let isFound = false;
    try {
      const named = await withoutText(round, missing);
      for (const part of named) await part.content.release();
      const name = missing.length === 1 ? missing.map(keyText)[0] : named.map(keyText)[0];
      const request = missing.find((one) => keyText(one) === name);
      if (request === undefined) return await this.#readSlices(round, missing, 1);
      const others = missing.filter((one) => one !== request);
      await this.#readSlices(round, others);
      const start = await content.read(0, SAME_START_BYTES);
      for (const other of others.map(keyText))
        if (errors.has(other) || (await beginsAlike(parts.get(other), start)))
          return await this.#readSlices(round, [request]);
      isFound = true;
      const { taskId, file, offset } = request;
      const relativePath = named[0]?.relativePath ?? null;
      parts.set(keyText(request), { taskId, file, offset, relativePath, content, isBeginning: true });
    } finally {
      if (!isFound) await content.release();
    }
  }
}

/** No response, a broken connection, or a proxy that waited too long: the cause may be one heavy text, or an outage. */
const isDoubtful = ({ policy }: JobtailError) => policy.ofOneFile === 'perhaps' && !policy.isDivisible;

interface Round {
  /** Resolves with the beginning of a text that was cut. */
  readonly readOnce: (wanted: readonly PartRequest[]) => Promise<Content | undefined>;
  /** The requests in calls that the service takes. */
  readonly sized: (wanted: readonly PartRequest[]) => readonly (readonly PartRequest[])[];
  readonly batch: PartBatch;
  readonly isFirst: boolean;
  /** Whether the service responded to a call: if another gets no response, the files of that are the cause. */
  hasResponse: boolean;
}

/** The parts of files after their ends, in the order of the response; a file that has none is left out. */
async function withoutText({ readOnce, batch }: Round, wanted: readonly PartRequest[]): Promise<Part[]> {
  try {
    await (await readOnce(wanted.map((request) => ({ ...request, offset: BEHIND_EVERY_END }))))?.release();
  } catch (thrown) {
    if (!asJobtailError(thrown).policy.isDivisible) throw thrown;
  }
  const names = new Set(wanted.map(keyText));
  const found = [...batch.parts.values()].filter((part) => names.has(keyText(part)));
  const empty: Part[] = [];
  for (const part of found) {
    batch.parts.delete(keyText(part));
    if (part.content.length === 0) empty.push(part);
    else await part.content.release();
  }
  return empty;
}

async function beginsAlike(part: Part | undefined, start: Buffer): Promise<boolean> {
  if (part === undefined || part.content.length === 0) return false;
  return startsAlike(await part.content.read(0, start.length), start);
}
