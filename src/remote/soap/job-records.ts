/**
 * SubmittedJobInfoExt (docs/interface.md 10.2) while it arrives: what is wanted of it is kept, within limits, and the rest
 * passed over. Nothing is taken on trust: each element may be missing, nil, or there twice, and then the first counts.
 */
import { characterStart } from '../../bytes.ts';
import { GrowingBuffer } from '../../growing-buffer.ts';
import { type JobId, parseJobId, parseTaskId, type TaskId } from '../../job.ts';
import { type JobInformation, type JobTime, jobTimeOf, type TaskInformation } from '../../job-information.ts';
import type { Lifted } from '../content/lifted.ts';

const OF_JOB: ReadonlySet<string> = new Set([
  'id',
  'name',
  'state',
  'creationTime',
  'submitTime',
  'startTime',
  'endTime',
]);
const TASK = 'tasks/SubmittedTaskInfoExt';
const OF_TASK: ReadonlySet<string> = new Set(
  ['id', 'name', 'state', 'startTime', 'endTime', 'errorMessage'].map((name) => `${TASK}/${name}`),
);

export interface RecordLimits {
  readonly jobs: number;
  readonly tasksOfJob: number;
  /** Bytes of all that is kept; a text costs some besides its own. */
  readonly bytes: number;
}

/** More of a text is cut off. */
const LONGEST_TEXT = 4_096;
const BYTES_PER_TEXT = 64;

type Texts = Map<string, string>;

export class JobRecords implements Lifted {
  readonly #limits: RecordLimits;
  readonly #asked: JobId | undefined;
  readonly #jobs = new Map<JobId, JobInformation>();
  readonly #path: string[] = [];
  readonly #text = new GrowingBuffer();
  #ofJob: Texts = new Map();
  #ofTask: Texts = new Map();
  #tasks = new Map<TaskId, TaskInformation>();
  #bytes = 0;

  /** `asked`: the job of which there is to be one record; it need not say so itself. */
  constructor(limits: RecordLimits, asked?: JobId) {
    this.#limits = limits;
    this.#asked = asked;
  }

  /** Each job once. */
  get jobs(): readonly JobInformation[] {
    return [...this.#jobs.values()];
  }

  begin(): void {
    this.#ofJob = new Map();
    this.#tasks = new Map();
  }

  readonly element = {
    open: (name: string): void => {
      this.#path.push(name);
      this.#text.clear();
    },
    close: (): void => {
      const at = this.#path.join('/');
      const name = this.#path.pop() ?? '';
      if (OF_JOB.has(at)) this.#keep(this.#ofJob, name);
      else if (OF_TASK.has(at)) this.#keep(this.#ofTask, name);
      else if (at === TASK) this.#endTask();
      this.#text.clear();
    },
  };

  bytes(bytes: Buffer): void {
    const room = LONGEST_TEXT - this.#text.length;
    const fits = bytes.length <= room ? bytes.length : characterStart(bytes, room);
    if (room > 0) this.#text.append(bytes.subarray(0, fits));
  }

  end(): void {
    const texts = this.#ofJob;
    const id = parseJobId(texts.get('id')) ?? this.#asked;
    if (id === undefined || this.#jobs.has(id) || this.#isFull || this.#jobs.size >= this.#limits.jobs) return;
    this.#jobs.set(id, {
      id,
      name: texts.get('name') ?? null,
      state: texts.get('state') ?? null,
      creationTime: timeOf(texts.get('creationTime')),
      submitTime: timeOf(texts.get('submitTime')),
      startTime: timeOf(texts.get('startTime')),
      endTime: timeOf(texts.get('endTime')),
      tasks: [...this.#tasks.values()],
    });
  }

  async flush(): Promise<void> {}

  get #isFull(): boolean {
    return this.#bytes >= this.#limits.bytes;
  }

  #endTask(): void {
    const texts = this.#ofTask;
    this.#ofTask = new Map();
    const id = parseTaskId(texts.get('id'));
    if (id === undefined || this.#tasks.has(id) || this.#tasks.size >= this.#limits.tasksOfJob) return;
    this.#tasks.set(id, {
      id,
      name: texts.get('name') ?? null,
      state: texts.get('state') ?? null,
      startTime: timeOf(texts.get('startTime')),
      endTime: timeOf(texts.get('endTime')),
      errorMessage: texts.get('errorMessage') ?? null,
    });
  }

  /** An empty text says as little as none. */
  #keep(texts: Texts, name: string): void {
    const bytes = this.#text.length;
    const text = this.#text.view().toString().trim();
    if (text === '' || texts.has(name) || this.#isFull) return;
    this.#bytes += bytes + BYTES_PER_TEXT;
    texts.set(name, text);
  }
}

const timeOf = (text: string | undefined): JobTime | null => (text === undefined ? null : jobTimeOf(text));
