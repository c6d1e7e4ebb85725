/** The jobs of the simulated cluster: directories below `<directory>/jobs`, tasks as real processes in them. */
import { mkdir, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { JobtailError } from '../../src/errors.ts';
import { type JobId, LIVE_FILE_NAMES, type LiveFileName, parseJobId, type TaskId } from '../../src/job.ts';
import { Ids } from './ids.ts';
import { type JobSpec, LIVE_FILE_PATHS, type TaskSpec } from './specs.ts';
import { type TaskExit, TaskProcess } from './task-process.ts';
import { type EndState, type JobState, TaskRun } from './task-run.ts';

export class SubmittedTask {
  readonly taskId: TaskId;
  readonly specificationId: string;
  readonly name: string;
  /** Between the directory of the specification and the task's; empty if there is nothing between them. */
  readonly subdirectory: string;
  /** The task's directory, absolute. */
  readonly directory: string;
  /** Absolute paths of the live files; they need not exist. */
  readonly files: Readonly<Record<LiveFileName, string>>;
  readonly run: TaskRun;
  readonly #spec: TaskSpec;

  constructor(spec: TaskSpec, ids: Pick<SubmittedTask, 'taskId' | 'specificationId' | 'name'>, place: TaskPlace) {
    this.taskId = ids.taskId;
    this.specificationId = ids.specificationId;
    this.name = ids.name;
    this.subdirectory = spec.subdirectory ?? '';
    this.directory = join(place.jobDirectory, ids.specificationId, this.subdirectory);
    const paths = LIVE_FILE_NAMES.map((name) => [
      name,
      join(this.directory, spec.liveFiles?.[name] ?? LIVE_FILE_PATHS[name]),
    ]);
    this.files = Object.fromEntries(paths) as Record<LiveFileName, string>;
    this.#spec = spec;
    this.run = new TaskRun({ clock: place.clock, launch: () => this.#launch() });
  }

  /** How the process ended; undefined while it runs or if there is none. */
  get exit(): TaskExit | undefined {
    return this.run.process?.exit;
  }

  /** Of the process; the service reports `run.state`. */
  get state(): 'no-process' | 'running' | 'ended' {
    if (this.run.process === undefined) return 'no-process';
    return this.exit === undefined ? 'running' : 'ended';
  }

  /** Makes its directory: those of a job are there before the first of its tasks starts. */
  async prepare(): Promise<void> {
    await mkdir(this.directory, { recursive: true });
  }

  async #launch(): Promise<TaskProcess | undefined> {
    await mkdir(this.directory, { recursive: true });
    const { command } = this.#spec;
    if (command === undefined) return undefined;
    const { stdout, stderr } = this.files;
    return TaskProcess.start({ command, directory: this.directory, stdout, stderr });
  }
}

interface TaskPlace {
  readonly jobDirectory: string;
  /** Milliseconds. */
  readonly clock: () => number;
}

type JobBeginning = Pick<SubmittedJob, 'jobId' | 'owner' | 'name' | 'ageSeconds' | 'directory' | 'tasks'>;

export class SubmittedJob {
  readonly jobId: JobId;
  readonly owner: string;
  readonly name: string;
  /** The job's directory, absolute. */
  readonly directory: string;
  /** Seconds that are subtracted from its reported times. */
  readonly ageSeconds: number;
  readonly createdAtMs: number;
  /** The file system's time of submission in nanoseconds; undefined while the job is held. */
  submittedAtNs: bigint | undefined;
  submittedAtMs: number | undefined;
  readonly #tasks: SubmittedTask[];
  readonly #clock: () => number;

  constructor(spec: JobBeginning, clock: () => number) {
    this.jobId = spec.jobId;
    this.owner = spec.owner;
    this.name = spec.name;
    this.ageSeconds = spec.ageSeconds;
    this.directory = spec.directory;
    this.#tasks = [...spec.tasks];
    this.#clock = clock;
    this.createdAtMs = clock();
  }

  get tasks(): readonly SubmittedTask[] {
    return this.#tasks;
  }

  /** By its tasks; it runs from the start of the first to the end of the last one. */
  get state(): JobState {
    if (this.submittedAtMs === undefined) return 'Configuring';
    const states = this.tasks.map(({ run }) => run.state);
    if (states.length === 0) return 'Submitted';
    if (this.endedAtMs === undefined) return this.startedAtMs === undefined ? 'Queued' : 'Running';
    return (['Canceled', 'Failed'] as const).find((state) => states.includes(state)) ?? 'Finished';
  }

  get startedAtMs(): number | undefined {
    const started = this.tasks.flatMap(({ run }) => run.startedAtMs ?? []);
    return started.length === 0 ? undefined : Math.min(...started);
  }

  /** When the last task ended; undefined before. */
  get endedAtMs(): number | undefined {
    const ended = this.tasks.flatMap(({ run }) => run.endedAtMs ?? []);
    return ended.length === 0 || ended.length < this.tasks.length ? undefined : Math.max(...ended);
  }

  /** Submits a held job: starts its processes. */
  async submit(): Promise<void> {
    if (this.submittedAtNs !== undefined) throw new JobtailError('usage', `job ${this.jobId} is already submitted`);
    for (const task of this.tasks) await task.prepare();
    // A file's time and not the clock's: file times are coarser and may lie a little in the past.
    const mark = join(this.directory, '.submitted');
    await writeFile(mark, '');
    this.submittedAtNs = (await stat(mark, { bigint: true })).mtimeNs;
    await rm(mark);
    this.submittedAtMs = this.#clock();
    for (const task of this.tasks) await task.run.submit();
  }

  /** Gives a task to the job, which starts like the others. */
  async add(task: SubmittedTask): Promise<void> {
    this.#tasks.push(task);
    if (this.submittedAtMs !== undefined) await task.run.submit();
  }

  /** Ends what has not ended, processes included, in this state. */
  async end(state: EndState, message?: string): Promise<void> {
    await Promise.all(this.tasks.map(({ run }) => run.end(state, message)));
  }

  /** Queues all tasks again, under their ids; their output goes on in the same files. */
  async requeue(): Promise<void> {
    if (this.submittedAtMs === undefined) throw new JobtailError('usage', `job ${this.jobId} is not submitted`);
    await Promise.all(this.tasks.map(({ run }) => run.requeue()));
  }

  /** Ends all processes with everything they started. */
  async kill(): Promise<void> {
    await Promise.all(this.tasks.map(({ run }) => run.kill()));
  }
}

export class Cluster {
  /** `<directory>/jobs`, without symbolic links in it. */
  readonly directory: string;
  readonly #clock: () => number;
  readonly #jobs = new Map<JobId, SubmittedJob>();
  readonly #ids = new Ids();

  /** `clock`: in milliseconds; the times of jobs go by it. */
  private constructor(directory: string, clock: () => number) {
    this.directory = directory;
    this.#clock = clock;
  }

  static async open(directory: string, clock: () => number): Promise<Cluster> {
    const jobs = join(directory, 'jobs');
    await mkdir(jobs, { recursive: true });
    return new Cluster(await realpath(jobs), clock);
  }

  get jobs(): readonly SubmittedJob[] {
    return [...this.#jobs.values()];
  }

  job(id: string): SubmittedJob | undefined {
    const jobId = parseJobId(id);
    return jobId === undefined ? undefined : this.#jobs.get(jobId);
  }

  /** Creates a job and, unless it is held, starts it. An id that is none or is taken is a `usage` error. */
  async submit(spec: JobSpec, defaultOwner: string): Promise<SubmittedJob> {
    const jobId = this.#ids.job(spec.jobId);
    const { owner = defaultOwner, name = `job ${jobId}`, ageSeconds = 0 } = spec;
    const directory = join(this.directory, jobId);
    const tasks = spec.tasks.map((task, index) => this.#createTask(task, index, directory));
    const job = new SubmittedJob({ jobId, owner, name, ageSeconds, directory, tasks }, this.#clock);
    this.#jobs.set(jobId, job);
    await mkdir(directory, { recursive: true });
    if (spec.held !== true) await job.submit();
    return job;
  }

  /** Gives one more task to a job. */
  async addTask(job: SubmittedJob, spec: TaskSpec): Promise<void> {
    await job.add(this.#createTask(spec, job.tasks.length, job.directory));
  }

  /** Ends every process of every job. */
  async close(): Promise<void> {
    await Promise.all(this.jobs.map((job) => job.kill()));
  }

  #createTask(spec: TaskSpec, index: number, jobDirectory: string): SubmittedTask {
    const taskId = this.#ids.task(spec.taskId);
    const { specificationId = this.#ids.specification(), name = `task ${index + 1}` } = spec;
    return new SubmittedTask(spec, { taskId, specificationId, name }, { jobDirectory, clock: this.#clock });
  }
}
