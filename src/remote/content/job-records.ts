/**
 * Parses SubmittedJobInfoExt (docs/dev/soap.md 10.2) while it arrives, by either protocol, within limits. Each element
 * may be missing, nil, or repeated; then the first counts.
 */
import { characterStart, GrowingBuffer } from '../../bytes.ts';
import { JobtailError } from '../../errors.ts';
import { type JobId, parseJobId, parseTaskId, type TaskId } from '../../job.ts';
import { type JobInformation, type JobTime, jobTimeOf, type TaskInformation } from '../../job-information.ts';
import type { Lifted } from './lifted.ts';

const OF_JOB: ReadonlySet<string> = new Set([
  'id',
  'name',
  'state',
  'creationtime',
  'submittime',
  'starttime',
  'endtime',
]);
const OF_TASK: ReadonlySet<string> = new Set(['id', 'name', 'state', 'starttime', 'endtime', 'errormessage']);

const MAX_JOBS = 100_000;
const MAX_TASKS_OF_JOB = 10_000;
/** Bytes of all that is kept, with the overhead of each text. */
const MAX_BYTES = 128 * 1024 * 1024;
/** Most of a response is not kept, so a list may be much longer. */
export const MAX_JOBS_BYTES = 512 * 1024 * 1024;

interface JobRecordsOptions {
  /** The name of each element of `tasks`. */
  readonly task: string;
  /** The requested job: a single record need not contain its id. */
  readonly asked?: JobId;
}

const MAX_TEXT_CHARACTERS = 4_096;
const BYTES_PER_TEXT = 64;

type Texts = Map<string, string>;

export class JobRecords implements Lifted {
  readonly #asked: JobId | undefined;
  readonly #task: string;
  readonly #jobs = new Map<JobId, JobInformation>();
  readonly #path: string[] = [];
  readonly #text = new GrowingBuffer();
  #ofJob: Texts = new Map();
  #ofTask: Texts = new Map();
  #tasks = new Map<TaskId, TaskInformation>();
  #bytes = 0;

  constructor({ task, asked }: JobRecordsOptions) {
    this.#asked = asked;
    this.#task = `tasks/${task.toLowerCase()}`;
  }

  get jobs(): readonly JobInformation[] {
    return [...this.#jobs.values()];
  }

  /** The requested job. @throws JobtailError not-found, and that of `unexpected` for another job */
  only(unexpected: (what: string) => JobtailError): JobInformation {
    const [job] = this.#jobs.values();
    if (job === undefined) {
      throw new JobtailError('not-found', `the service has no job ${this.#asked}`, {
        hint: 'check the job id, and whether the job belongs to auth.username',
      });
    }
    if (job.id !== this.#asked) throw unexpected(`it is about the job ${job.id}`);
    return job;
  }

  begin(): void {
    this.#ofJob = new Map();
    this.#tasks = new Map();
  }

  /** The case of names is ignored. */
  readonly element = {
    open: (name: string): void => {
      this.#path.push(name.toLowerCase());
      this.#text.clear();
    },
    close: (): void => {
      const at = this.#path.join('/');
      const name = this.#path.pop() ?? '';
      if (at === this.#task) this.#endTask();
      else if (at === `${this.#task}/${name}` && OF_TASK.has(name)) this.#keep(this.#ofTask, name);
      else if (OF_JOB.has(at)) this.#keep(this.#ofJob, name);
      this.#text.clear();
    },
  };

  bytes(bytes: Buffer): void {
    const room = MAX_TEXT_CHARACTERS - this.#text.length;
    const fits = bytes.length <= room ? bytes.length : characterStart(bytes, room);
    if (room > 0) this.#text.append(bytes.subarray(0, fits));
  }

  end(): void {
    const texts = this.#ofJob;
    const id = parseJobId(texts.get('id')) ?? this.#asked;
    if (id === undefined || this.#jobs.has(id) || this.#isFull || this.#jobs.size >= MAX_JOBS) return;
    this.#jobs.set(id, {
      id,
      name: texts.get('name') ?? null,
      state: texts.get('state') ?? null,
      creationTime: timeOf(texts.get('creationtime')),
      submitTime: timeOf(texts.get('submittime')),
      startTime: timeOf(texts.get('starttime')),
      endTime: timeOf(texts.get('endtime')),
      tasks: [...this.#tasks.values()],
    });
  }

  async flush(): Promise<void> {}

  get #isFull(): boolean {
    return this.#bytes >= MAX_BYTES;
  }

  #endTask(): void {
    const texts = this.#ofTask;
    this.#ofTask = new Map();
    const id = parseTaskId(texts.get('id'));
    if (id === undefined || this.#tasks.has(id) || this.#tasks.size >= MAX_TASKS_OF_JOB) return;
    this.#tasks.set(id, {
      id,
      name: texts.get('name') ?? null,
      state: texts.get('state') ?? null,
      startTime: timeOf(texts.get('starttime')),
      endTime: timeOf(texts.get('endtime')),
      errorMessage: texts.get('errormessage') ?? null,
    });
  }

  #keep(texts: Texts, name: string): void {
    const bytes = this.#text.length;
    const text = this.#text.view().toString().trim();
    if (text === '' || texts.has(name) || this.#isFull) return;
    this.#bytes += bytes + BYTES_PER_TEXT;
    texts.set(name, text);
  }
}

const timeOf = (text: string | undefined): JobTime | null => (text === undefined ? null : jobTimeOf(text));
