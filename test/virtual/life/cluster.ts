/** The jobs of a generated history as they are on the cluster, and what the middleware reports of them. */
import type { JobId, LiveFileName, TaskId } from '../../../src/job.ts';
import { type JobInformation, type JobTime, jobTimeOf, phaseOf } from '../../../src/job-information.ts';
import type { ResultKind, Spelling } from './steps.ts';

/** A live file, which only grows. */
export class LifeFile {
  content: Buffer = Buffer.alloc(0);
  /** Bytes that the text shows, if it is behind the raw bytes. */
  shownBytes: number | undefined;
  readonly #name: string;
  #lines = 0;

  constructor(name: string) {
    this.#name = name;
  }

  append(lines: number): void {
    const added = Array.from({ length: lines }, () => `${this.#name} line ${++this.#lines}\n`);
    this.content = Buffer.concat([this.content, Buffer.from(added.join(''))]);
  }
}

interface LifeTask {
  readonly id: TaskId;
  readonly files: Map<LiveFileName, LifeFile>;
}

export interface LifeResult {
  readonly kind: ResultKind;
  content: Buffer;
  writtenAt: number;
}

interface Run {
  startedAt: number | null;
  endedAt: number | null;
}

interface Report {
  readonly at: number;
  readonly state: string;
  readonly submittedAt: number | null;
  readonly run: number;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  readonly tasks: readonly TaskId[];
}

export class LifeJob {
  readonly id: JobId;
  /** Whether the list names it: that of another user is reported only alone. */
  readonly isListed: boolean;
  /** Whether reports name its tasks. */
  readonly namesTasks: boolean;
  /** Whether the listing names its live files. */
  readonly listsLiveFiles: boolean;
  state = 'Configuring';
  submittedAt: number | null = null;
  readonly tasks: LifeTask[] = [];
  readonly results = new Map<string, LifeResult>();
  /** Last change of a file. */
  changedAt = 0;
  /** Starts of the job, the last one at the end. */
  readonly runs: Run[] = [];
  /** The runs by their start times, as they were reported. */
  readonly runsByText = new Map<string, number>();
  #reports: Report[] = [];
  #reportedAt = 0;

  constructor(id: JobId, options: Pick<LifeJob, 'isListed' | 'namesTasks' | 'listsLiveFiles'>) {
    this.id = id;
    this.isListed = options.isListed;
    this.namesTasks = options.namesTasks;
    this.listsLiveFiles = options.listsLiveFiles;
  }

  get isOver(): boolean {
    return phaseOf(this.state) === 'over';
  }

  get isDeleted(): boolean {
    return this.state === 'Deleted';
  }

  /** Never submitted: it stays as it is. */
  get isIdle(): boolean {
    return this.submittedAt === null;
  }

  get endedAt(): number | null {
    return this.runs.at(-1)?.endedAt ?? null;
  }

  to(state: string, now: number): void {
    this.state = state;
    if (state !== 'Configuring') this.submittedAt ??= now;
    if (state === 'Running') {
      this.runs.push({ startedAt: now, endedAt: null });
      if (this.tasks.length === 0) this.addTask();
    }
    const run = this.runs.at(-1);
    if (run !== undefined && this.isOver) run.endedAt ??= now;
    this.noteReport(now);
  }

  /** Ends as jobs do: with a last line, and its results written once more. */
  end(state: string, now: number): void {
    this.write(0, 'stdout', 1, now);
    for (const [name, { kind }] of this.results) this.result(name, kind, now);
    this.to(state, now);
  }

  addTask(): void {
    this.tasks.push({ id: `${Number(this.id) * 10 + this.tasks.length}` as TaskId, files: new Map() });
  }

  write(task: number, name: LiveFileName, lines: number, now: number): void {
    const { id, files } = this.tasks[task % this.tasks.length] as LifeTask;
    const file = files.get(name) ?? new LifeFile(`${id}/${name}`);
    files.set(name, file);
    file.append(lines);
    this.changedAt = now;
  }

  result(name: string, kind: ResultKind, now: number): void {
    const before = this.results.get(name);
    const content = Buffer.from(`${this.id} ${name} written at ${now}\n`.repeat(3));
    this.results.set(name, { kind: before?.kind ?? kind, content, writtenAt: now });
    this.changedAt = now;
  }

  liveFile(taskId: string, name: string): LifeFile | undefined {
    return this.tasks.find(({ id }) => id === taskId)?.files.get(name as LiveFileName);
  }

  /** All live files that exist. */
  *liveFiles(): Generator<readonly [TaskId, LiveFileName, LifeFile]> {
    for (const { id, files } of this.tasks) for (const [name, file] of files) yield [id, name, file];
  }

  /** Keeps what is reported from now on; `now` is wall time. */
  noteReport(now: number): void {
    const { startedAt = null, endedAt = null } = this.runs.at(-1) ?? {};
    const tasks = this.namesTasks ? this.tasks.map(({ id }) => id) : [];
    const { state, submittedAt } = this;
    this.#reports.push({ at: now, state, submittedAt, run: this.runs.length, startedAt, endedAt, tasks });
  }

  /** The report as it was at a moment, but never an older one than before; undefined if the job was not there. */
  reportLate(at: number): Report | undefined {
    this.#reportedAt = Math.max(this.#reportedAt, at);
    return this.#reports.findLast((report) => report.at <= this.#reportedAt);
  }
}

/** Formats times as a release of the middleware does. */
export function spelled(ms: number, spelling: Spelling): JobTime {
  const at = new Date(ms).toISOString();
  const ofZone = (hours: number) => new Date(ms + hours * 3_600_000).toISOString().slice(0, 19);
  const texts: Readonly<Record<Spelling, string>> = {
    milliseconds: at,
    seconds: `${new Date(ms - (ms % 1_000)).toISOString().slice(0, 19)}Z`,
    ticks: at.replace(/Z$/, '0000Z'),
    'another zone': `${ofZone(9)}+09:00`,
    'no zone': ofZone(1),
  };
  return jobTimeOf(texts[spelling]);
}

/** The information of a report. `clockMs`: how far the clock of the cluster is ahead. */
export function informationOf(job: LifeJob, report: Report, spelling: Spelling, clockMs: number): JobInformation {
  const time = (ms: number | null) => (ms === null ? null : spelled(ms + clockMs, spelling));
  const { state, tasks } = report;
  const times = { startTime: time(report.startedAt), endTime: time(report.endedAt) };
  if (times.startTime !== null) job.runsByText.set(times.startTime.text, report.run);
  return {
    ...{ id: job.id, name: `job ${job.id}`, state },
    ...{ creationTime: null, submitTime: time(report.submittedAt), ...times },
    tasks: tasks.map((id) => ({ id, name: null, state, ...times, errorMessage: null })),
  };
}
