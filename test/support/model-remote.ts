/** A service in memory: files by their bytes, jobs by their information, and what it hands out of them. */

import { type DecodingOptions, readDecoder } from '../../simulator/operations/decoding.ts';
import type {
  Content,
  JobService,
  Part,
  PartRequest,
  Parts,
  Remote,
  Sink,
  TransferMethod,
} from '../../src/agent/ports/server.ts';
import { characterStart } from '../../src/bytes.ts';
import { asJobtailError, JobtailError } from '../../src/errors.ts';
import { type JobId, keyText, type TaskId } from '../../src/job.ts';
import { type JobInformation, jobTimeOf } from '../../src/job-information.ts';

/** As a service that reads its own ext4. */
const MAX_OFFSET = 2 ** 44;

export class ModelRemote implements Remote {
  /** The live files that exist, by `keyText`. */
  readonly files = new Map<string, Buffer>();
  /** How many bytes of a file are seen at present, where it is not all of it. */
  readonly staleSizes = new Map<string, number>();
  /** Live files that fail every call they are in. */
  readonly poisoned = new Set<string>();
  decoding: DecodeBytesOptions = {};
  /** Makes the text in its own way. */
  decodeWith: ((bytes: Buffer, offset: number) => string) | undefined;
  /** Whether whole files can be listed and downloaded. */
  rawAccess = true;
  /** Stands before the directories of tasks, so that their paths cannot be known without the listing. */
  prefix = '';
  /** Longer texts cannot be sent, and how that fails. */
  maxTextBytes = Number.POSITIVE_INFINITY;
  tooLong: 'http-status' | 'timeout' = 'http-status';
  /** On longer files, raw downloads hang. */
  maxRawBytes = Number.POSITIVE_INFINITY;
  /** Fails the next calls, one error each. */
  readonly failures: JobtailError[] = [];
  /** The date of each listed file; empty if the service lists none. */
  date = '';
  /** Runs before each call is answered; what it does to the files is seen by the call. */
  beforeCall: () => void | Promise<void> = () => {};
  /** Called with each request for a part, after `beforeCall`. */
  onPartRequest: (request: PartRequest) => void = () => {};
  /** Called before each download. */
  onDownload: (path: string, signal: AbortSignal) => void | Promise<void> = () => {};
  /** Contents that were handed out and not given back. */
  held = 0;
  calls = 0;
  listings = 0;
  textBytes = 0;
  rawBytes = 0;

  async readParts(_jobId: JobId, wanted: readonly PartRequest[], signal: AbortSignal): Promise<Parts> {
    await this.#begin(signal);
    for (const request of wanted) this.onPartRequest(request);
    if (wanted.some((request) => this.poisoned.has(keyText(request))))
      throw new JobtailError('fault', 'one of the files cannot be read');
    if (wanted.some(({ offset }) => offset > MAX_OFFSET)) throw new JobtailError('fault', 'no place in a file');
    const limits = wanted.map(({ enoughBytes = Number.POSITIVE_INFINITY }) => enoughBytes);
    const enough = limits.includes(Number.POSITIVE_INFINITY) ? Number.POSITIVE_INFINITY : Math.min(...limits);
    const texts = wanted.map((request) => {
      const bytes = this.#seen(keyText(request));
      return bytes && Buffer.from(this.show(bytes, request.offset), 'utf8');
    });
    if (texts.some((text) => (text?.length ?? 0) > this.maxTextBytes))
      throw new JobtailError(this.tooLong, 'a problem');
    const parts: Part[] = [];
    for (const [index, request] of [...wanted.entries()].reverse()) {
      const text = texts[index];
      if (text === undefined) continue;
      const { taskId, file, offset } = request;
      const isCut = text.length > enough;
      const content = new MemoryContent(isCut ? text.subarray(0, characterStart(text, enough)) : text, this);
      this.textBytes += content.length;
      if (isCut) return { parts, refused: 0, beginning: content };
      parts.push({ taskId, file, offset, relativePath: `/${file}.txt`, content });
    }
    return { parts, refused: 0 };
  }

  /** The text of a file with these bytes, asked for from the offset on. */
  show(bytes: Buffer, offset: number): string {
    return this.decodeWith?.(bytes, offset) ?? decodeBytes(bytes, offset, this.decoding);
  }

  async listChangedFiles(_jobId: JobId, signal: AbortSignal): Promise<readonly string[]> {
    this.listings += 1;
    await this.#begin(signal);
    if (!this.rawAccess) return [];
    const names = [...this.files.keys()].map((name) => `/${this.prefix}${name}.txt`);
    return this.date === '' ? names : Object.assign(names, { stamps: new Map(names.map((name) => [name, this.date])) });
  }

  async downloadFile(_jobId: JobId, path: string, sink: Sink, signal: AbortSignal): Promise<number> {
    await this.onDownload(path, signal);
    await this.#begin(signal);
    const isThere = this.rawAccess && path.startsWith(`/${this.prefix}`);
    const bytes = isThere ? this.#seen(path.slice(1 + this.prefix.length, -'.txt'.length)) : undefined;
    if (bytes === undefined) throw new JobtailError('not-found', 'no such file');
    if (bytes.length > this.maxRawBytes) throw new JobtailError('timeout', 'it hangs');
    try {
      for (let at = 0; at < bytes.length; at += 1000) await sink(bytes.subarray(at, at + 1000));
    } catch (thrown) {
      throw asJobtailError(thrown);
    }
    this.rawBytes += bytes.length;
    return bytes.length;
  }

  async getTransferMethod(): Promise<TransferMethod | null> {
    return null;
  }

  async endTransfer(): Promise<void> {}

  async #begin(signal: AbortSignal): Promise<void> {
    await this.beforeCall();
    if (signal.aborted) throw new JobtailError('aborted', 'it was stopped');
    this.calls++;
    const failure = this.failures.shift();
    if (failure !== undefined) throw failure;
  }

  #seen(name: string): Buffer | undefined {
    const bytes = this.files.get(name);
    const stale = this.staleSizes.get(name);
    return bytes === undefined || stale === undefined ? bytes : bytes.subarray(0, stale);
  }
}

/** A job of which nothing is reported but this. */
export function jobOf(id: string, state: string | null, more: Partial<JobInformation> = {}): JobInformation {
  const times = { creationTime: null, submitTime: null, startTime: null, endTime: null };
  return { id: id as JobId, name: `job ${id}`, state, ...times, tasks: [], ...more };
}

/** Tasks of which only the ids are reported. */
export function tasksOf(...ids: readonly string[]): JobInformation['tasks'] {
  const nothing = { name: null, state: null, startTime: null, endTime: null, errorMessage: null };
  return ids.map((id) => ({ id: id as TaskId, ...nothing }));
}

export const at = (ms: number) => jobTimeOf(new Date(ms).toISOString());

export class ModelJobService implements JobService {
  readonly jobs = new Map<string, JobInformation>();
  /** Jobs that no list names. */
  readonly unlisted = new Set<string>();
  /** What every call fails with. */
  failure: JobtailError | undefined;
  questions = 0;

  set(job: JobInformation): void {
    this.jobs.set(job.id, job);
  }

  async listJobs(): Promise<readonly JobInformation[]> {
    if (this.failure !== undefined) throw this.failure;
    return [...this.jobs.values()].filter(({ id }) => !this.unlisted.has(id));
  }

  async getJob(jobId: JobId): Promise<JobInformation> {
    this.questions += 1;
    if (this.failure !== undefined) throw this.failure;
    const job = this.jobs.get(jobId);
    if (job === undefined) throw new JobtailError('not-found', `there is no job ${jobId}`);
    return job;
  }
}

export interface DecodeBytesOptions extends DecodingOptions {
  /** Lengths of the reads, for short reads; the last one goes to the end. By default one read takes everything. */
  readonly readLengths?: Iterable<number>;
}

/** The text handed out for a file with `bytes` when it is asked for from `offset` on; empty if that is past the end. */
export function decodeBytes(bytes: Buffer, offset: number, options: DecodeBytesOptions = {}): string {
  const decoder = readDecoder(options);
  let position = offset;
  let text = '';
  for (const length of options.readLengths ?? []) {
    text += decoder.decode(bytes.subarray(position, position + length));
    position += length;
  }
  return text + decoder.decode(bytes.subarray(position)) + decoder.end();
}

/** Counts the contents that were not given back. */
export interface Holder {
  held: number;
}

/** A content in memory. */
export class MemoryContent implements Content {
  readonly length: number;
  readonly #bytes: Buffer;
  readonly #holder: Holder;
  #released = false;

  constructor(bytes: Buffer, holder: Holder = { held: 0 }) {
    this.#bytes = bytes;
    this.length = bytes.length;
    this.#holder = holder;
    holder.held++;
  }

  async read(start: number, end: number): Promise<Buffer> {
    if (this.#released) throw new Error('read after release');
    return this.#bytes.subarray(start, end);
  }

  async release(): Promise<void> {
    if (this.#released) throw new Error('released twice');
    this.#released = true;
    // As a file is closed: who does not wait for it, holds it longer.
    await new Promise((resolve) => setImmediate(resolve));
    this.#holder.held--;
  }
}
