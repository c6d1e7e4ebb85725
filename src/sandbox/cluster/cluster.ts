/** The jobs of the simulated cluster: directories below `<directory>/jobs`, tasks as real processes in them. */
import { mkdir, realpath, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { JobtailError } from '../../errors.ts';
import { type JobId, LIVE_FILE_NAMES, type LiveFileName, parseJobId, parseTaskId, type TaskId } from '../../job.ts';
import { type TaskExit, TaskProcess } from './task-process.ts';

export interface TaskSpec {
  /** submittedTaskInfoId, 64-bit decimal; the next free one by default. */
  readonly taskId?: string;
  /** The id that listed names begin with; it differs from the task id by default (docs/servers.md 4.2). */
  readonly specificationId?: string;
  /** argv, no shell, run in the task's directory. Without it the task has no process: a test writes the files. */
  readonly command?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Names of the live files in the task's directory, where they differ from the defaults. */
  readonly liveFiles?: Partial<Record<LiveFileName, string>>;
}

export interface JobSpec {
  /** submittedJobInfoId, 64-bit decimal; the next free one by default. */
  readonly jobId?: string;
  /** User name; the first user by default. */
  readonly owner?: string;
  /** The job is created but not submitted until `submit()`: its listing is nil, its processes do not run. */
  readonly held?: boolean;
  readonly tasks: readonly TaskSpec[];
}

/** The defaults of `TaskSpec.liveFiles`. stdout and stderr are written by the process's own streams. */
const LIVE_FILE_PATHS: Readonly<Record<LiveFileName, string>> = {
  stdout: 'stdout.txt',
  stderr: 'stderr.txt',
  log: 'task.log',
  progress: 'progress.txt',
};

export class SubmittedTask {
  readonly taskId: TaskId;
  readonly specificationId: string;
  /** The task's directory, absolute. */
  readonly directory: string;
  /** Absolute paths of the live files; they need not exist. */
  readonly files: Readonly<Record<LiveFileName, string>>;
  readonly #spec: TaskSpec;
  #process: TaskProcess | undefined;

  constructor(spec: TaskSpec, taskId: TaskId, specificationId: string, jobDirectory: string) {
    this.taskId = taskId;
    this.specificationId = specificationId;
    this.directory = join(jobDirectory, specificationId);
    const paths = LIVE_FILE_NAMES.map((name) => [
      name,
      join(this.directory, spec.liveFiles?.[name] ?? LIVE_FILE_PATHS[name]),
    ]);
    this.files = Object.fromEntries(paths) as Record<LiveFileName, string>;
    this.#spec = spec;
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** How the process ended; undefined while it runs or if there is none. */
  get exit(): TaskExit | undefined {
    return this.#process?.exit;
  }

  get state(): 'no-process' | 'running' | 'ended' {
    if (this.#process === undefined) return 'no-process';
    return this.#process.exit === undefined ? 'running' : 'ended';
  }

  /** Resolves when the process has ended; at once if there is none. */
  async exited(): Promise<TaskExit | undefined> {
    return this.#process?.exited;
  }

  async start(): Promise<void> {
    const { command, env } = this.#spec;
    if (command === undefined) return;
    const { stdout, stderr } = this.files;
    this.#process = await TaskProcess.start({ command, env, directory: this.directory, stdout, stderr });
  }

  async kill(): Promise<void> {
    await this.#process?.kill();
  }
}

export class SubmittedJob {
  readonly jobId: JobId;
  readonly owner: string;
  /** The job's directory, absolute. */
  readonly directory: string;
  readonly tasks: readonly SubmittedTask[];
  /** The file system's time of submission in nanoseconds; undefined while the job is held. */
  submittedAtNs: bigint | undefined;

  constructor(jobId: JobId, owner: string, directory: string, tasks: readonly SubmittedTask[]) {
    this.jobId = jobId;
    this.owner = owner;
    this.directory = directory;
    this.tasks = tasks;
  }

  /** The only task, for tests with one. */
  get task(): SubmittedTask {
    const [task] = this.tasks;
    if (task === undefined || this.tasks.length > 1)
      throw new JobtailError('usage', 'the job has not exactly one task');
    return task;
  }

  /** Submits a held job: starts its processes. */
  async submit(): Promise<void> {
    if (this.submittedAtNs !== undefined) throw new JobtailError('usage', `job ${this.jobId} is already submitted`);
    for (const { directory } of this.tasks) await mkdir(directory, { recursive: true });
    // A file's time and not the clock's: file times are coarser and may lie a little in the past.
    const mark = join(this.directory, '.submitted');
    await writeFile(mark, '');
    this.submittedAtNs = (await stat(mark, { bigint: true })).mtimeNs;
    for (const task of this.tasks) await task.start();
  }

  /** Resolves when all processes have ended. */
  async finished(): Promise<void> {
    await Promise.all(this.tasks.map((task) => task.exited()));
  }

  /** Ends all processes with everything they started. */
  async kill(): Promise<void> {
    await Promise.all(this.tasks.map((task) => task.kill()));
  }
}

export class Cluster {
  /** `<directory>/jobs`, without symbolic links in it. */
  readonly directory: string;
  readonly #jobs = new Map<JobId, SubmittedJob>();
  readonly #taskIds = new Set<string>();
  #nextId = 500;

  private constructor(directory: string) {
    this.directory = directory;
  }

  static async open(directory: string): Promise<Cluster> {
    const jobs = join(directory, 'jobs');
    await mkdir(jobs, { recursive: true });
    return new Cluster(await realpath(jobs));
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
    const jobId = parseJobId(spec.jobId ?? this.#freeId((id) => this.#jobs.has(id as JobId)));
    if (jobId === undefined) throw new JobtailError('usage', `the job id "${spec.jobId}" is no 64-bit number`);
    if (this.#jobs.has(jobId)) throw new JobtailError('usage', `job ${jobId} exists already`);
    const directory = join(this.directory, jobId);
    const tasks = spec.tasks.map((task) => this.#createTask(task, directory));
    const job = new SubmittedJob(jobId, spec.owner ?? defaultOwner, directory, tasks);
    this.#jobs.set(jobId, job);
    await mkdir(directory, { recursive: true });
    if (spec.held !== true) await job.submit();
    return job;
  }

  /** Ends every process of every job. */
  async close(): Promise<void> {
    await Promise.all(this.jobs.map((job) => job.kill()));
  }

  #createTask(spec: TaskSpec, directory: string): SubmittedTask {
    const taskId = parseTaskId(spec.taskId ?? this.#freeId((id) => this.#taskIds.has(id)));
    if (taskId === undefined) throw new JobtailError('usage', `the task id "${spec.taskId}" is no 64-bit number`);
    if (this.#taskIds.has(taskId)) throw new JobtailError('usage', `task ${taskId} exists already`);
    this.#taskIds.add(taskId);
    return new SubmittedTask(spec, taskId, spec.specificationId ?? this.#freeId(() => false), directory);
  }

  #freeId(taken: (id: string) => boolean): string {
    do this.#nextId += 1;
    while (taken(String(this.#nextId)));
    return String(this.#nextId);
  }
}
