/** Jobs of either protocol (docs/dev/soap.md 10.2) within limits. Each element may be missing, nil, or repeated. */
import { JobtailError } from '../../errors.ts';
import { type JobId, parseJobId, parseTaskId, type TaskId } from '../../job.ts';
import { type JobInformation, type JobTime, jobTimeOf, type TaskInformation } from '../../job-information.ts';
import { type Fields, fieldsOf, itemsOf, type Value } from './values.ts';

const MAX_JOBS = 100_000;
const MAX_TASKS_OF_JOB = 10_000;
/** Characters of all that is kept, with the overhead of each text. */
const MAX_CHARACTERS = 128 * 1024 * 1024;
/** Most of a response is not kept, so a list may be much longer. */
export const MAX_JOBS_BYTES = 512 * 1024 * 1024;

const MAX_TEXT_CHARACTERS = 4_096;
const CHARACTERS_PER_TEXT = 64;

export class JobRecords {
  readonly #asked: JobId | undefined;
  readonly #jobs = new Map<JobId, JobInformation>();
  #characters = 0;

  /** `asked`: the requested job, because a single record need not contain its id. */
  constructor(asked?: JobId) {
    this.#asked = asked;
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

  /** @throws JobtailError malformed */
  add(value: Value): void {
    const fields = fieldsOf(value);
    if (fields === null) return;
    const id = parseJobId(this.#text(fields, 'id')) ?? this.#asked;
    const isFull = this.#characters >= MAX_CHARACTERS || this.#jobs.size >= MAX_JOBS;
    if (id === undefined || this.#jobs.has(id) || isFull) return;
    this.#jobs.set(id, {
      id,
      ...this.#shared(fields),
      creationTime: this.#time(fields, 'creationtime'),
      submitTime: this.#time(fields, 'submittime'),
      tasks: this.#tasks(fields),
    });
  }

  #tasks(fields: Fields): readonly TaskInformation[] {
    const tasks = new Map<TaskId, TaskInformation>();
    for (const item of itemsOf(fields.get('tasks'))) {
      if (tasks.size >= MAX_TASKS_OF_JOB) break;
      const task = fieldsOf(item);
      const id = task === null ? undefined : parseTaskId(this.#text(task, 'id'));
      if (task === null || id === undefined || tasks.has(id)) continue;
      tasks.set(id, { id, ...this.#shared(task), errorMessage: this.#text(task, 'errormessage') });
    }
    return [...tasks.values()];
  }

  #shared(fields: Fields) {
    return {
      name: this.#text(fields, 'name'),
      state: this.#text(fields, 'state'),
      startTime: this.#time(fields, 'starttime'),
      endTime: this.#time(fields, 'endtime'),
    };
  }

  #text(fields: Fields, name: string): string | null {
    const [text] = [fields.get(name)].flat();
    if (typeof text !== 'string' || text.trim() === '' || this.#characters >= MAX_CHARACTERS) return null;
    // A copy: a slice would keep the whole text.
    const kept = Buffer.from(text.slice(0, MAX_TEXT_CHARACTERS).trim()).toString();
    this.#characters += kept.length + CHARACTERS_PER_TEXT;
    return kept;
  }

  #time(fields: Fields, name: string): JobTime | null {
    const text = this.#text(fields, name);
    return text === null ? null : jobTimeOf(text);
  }
}
