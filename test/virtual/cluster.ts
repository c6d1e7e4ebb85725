/** The jobs of the simulated cluster: what their tasks write, all that their files ever held, and what is reported. */
import type { Listing } from '../../src/agent/ports/server.ts';
import { type JobId, LIVE_FILE_NAMES, type LiveFileName, type TaskId } from '../../src/job.ts';
import { type JobInformation, type JobTime, jobTimeOf, phaseOf } from '../../src/job-information.ts';

/** How a release of the middleware writes times. */
export type Spelling = 'milliseconds' | 'seconds' | 'ticks' | 'another zone' | 'no zone';

/** What a listed result is. Links are no files; an unreadable file and a bad name can never come. */
export type ResultKind = 'file' | 'link to a directory' | 'dead link' | 'unreadable' | 'bad name';

/** One live file: the contents it had, of which the last one grows. */
export class SimulatedFile {
  readonly contents: Buffer[] = [];
  /** How often the agent was shown another content than before. */
  changesShown = 0;
  /** Whether a response with texts had one of it: without, nothing tells the agent that it exists. */
  hasEntry = false;
  /** Bytes that the text shows, if it is behind the raw bytes. */
  shownBytes: number | undefined;
  /** It ever was: to the agent, the text and the raw bytes are two contents that take turns. */
  wasBehind = false;
  #shown = -1;
  readonly #name: string;
  #lines = 0;

  constructor(name: string) {
    this.#name = name;
  }

  get content(): Buffer | undefined {
    return this.contents.at(-1);
  }

  append(lines: number): void {
    if (this.contents.length === 0) this.contents.push(Buffer.alloc(0));
    const added = Array.from({ length: lines }, () => this.#line());
    this.contents[this.contents.length - 1] = Buffer.concat([this.content ?? Buffer.alloc(0), ...added]);
  }

  /** The file begins anew, with other bytes. */
  rewrite(lines: number): void {
    this.contents.push(Buffer.alloc(0));
    this.append(lines);
  }

  /** The agent is sent a part of it. */
  show(): void {
    const now = this.contents.length;
    if (now !== this.#shown) this.changesShown += 1;
    this.#shown = now;
  }

  /** No two contents have a line in common. */
  #line(): Buffer {
    this.#lines += 1;
    return Buffer.from(`${this.#name} ${this.contents.length}: řádek ${this.#lines} of the příliš long output\n`);
  }
}

class SimulatedTask {
  readonly id: TaskId;
  readonly files: Readonly<Record<LiveFileName, SimulatedFile>>;

  constructor(id: TaskId, jobId: JobId) {
    this.id = id;
    const file = (name: LiveFileName) => new SimulatedFile(`${jobId}/${id}/${name}`);
    this.files = { stdout: file('stdout'), stderr: file('stderr'), log: file('log'), progress: file('progress') };
  }
}

/** A result: its contents, the last one as it is now; and when it was written. */
export interface SimulatedResult {
  readonly kind: ResultKind;
  readonly contents: Buffer[];
  writtenAt: number;
}

interface Run {
  readonly startedAt: number;
  endedAt: number | null;
}

/** What a report has of a job. */
interface Report {
  readonly state: string;
  readonly submittedAt: number | null;
  readonly run: number;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  readonly tasks: readonly TaskId[];
}

export class SimulatedJob {
  readonly id: JobId;
  /** Whether the list names it: that of another user is reported only alone. */
  readonly isListed: boolean;
  /** Whether reports name its tasks. */
  readonly namesTasks: boolean;
  /** Whether the listing names its live files. */
  readonly listsLiveFiles: boolean;
  state = 'Configuring';
  submittedAt: number | null = null;
  readonly tasks: SimulatedTask[] = [];
  readonly results = new Map<string, SimulatedResult>();
  /** Starts of the job, the last one at the end. */
  readonly runs: Run[] = [];
  /** The runs by their start times, as they were reported. */
  readonly runsByText = new Map<string, number>();
  readonly #reports: (Report & { readonly at: number })[] = [];
  #reportedAt = 0;

  constructor(id: JobId, options: Partial<Pick<SimulatedJob, 'isListed' | 'namesTasks' | 'listsLiveFiles'>> = {}) {
    this.id = id;
    this.isListed = options.isListed ?? true;
    this.namesTasks = options.namesTasks ?? true;
    this.listsLiveFiles = options.listsLiveFiles ?? true;
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
    this.write(0, 'stdout', 1);
    for (const [name, { kind }] of this.results) this.result(name, kind, now);
    this.to(state, now);
  }

  addTask(): void {
    this.tasks.push(new SimulatedTask(`${Number(this.id) * 10 + this.tasks.length}` as TaskId, this.id));
  }

  write(task: number, name: LiveFileName, lines: number): void {
    this.tasks[task % this.tasks.length]?.files[name].append(lines);
  }

  result(name: string, kind: ResultKind, now: number, content?: Buffer): void {
    const result = this.results.get(name) ?? { kind, contents: [], writtenAt: now };
    result.contents.push(content ?? Buffer.from(`${this.id} ${name} written at ${now}\n`.repeat(3)));
    result.writtenAt = now;
    this.results.set(name, result);
  }

  /** A live file that exists. */
  liveFile(taskId: string, name: string): SimulatedFile | undefined {
    const file = this.tasks.find(({ id }) => id === taskId)?.files[name as LiveFileName];
    return file?.content === undefined ? undefined : file;
  }

  /** By its listed name. */
  liveFileAt(name: string): SimulatedFile | undefined {
    const [, taskId = '', file = ''] = /^\/?([0-9]+)\/([a-z]+)\.txt$/.exec(name) ?? [];
    return this.liveFile(taskId, file);
  }

  /** The bytes of a live file or a result, by its listed name. */
  contentAt(name: string): Buffer | undefined {
    return this.isDeleted ? undefined : (this.liveFileAt(name)?.content ?? this.results.get(name)?.contents.at(-1));
  }

  /** The listed names; and the times of results, if they are listed. */
  listing(timeOf: ((ms: number) => string) | undefined): Listing {
    const live = this.listsLiveFiles ? [...this.liveFiles()].map(([task, name]) => `/${task}/${name}.txt`) : [];
    const names = [...live, ...this.results.keys()];
    const stamps = [...this.results].map(([name, { writtenAt }]) => [name, timeOf?.(writtenAt) ?? ''] as const);
    return timeOf === undefined ? names : Object.assign(names, { stamps: new Map(stamps) });
  }

  /** All live files that exist. */
  *liveFiles(): Generator<readonly [taskId: TaskId, name: LiveFileName, file: SimulatedFile, content: Buffer]> {
    for (const { id, files } of this.tasks)
      for (const name of LIVE_FILE_NAMES) {
        const { content } = files[name];
        if (content !== undefined) yield [id, name, files[name], content];
      }
  }

  get #report(): Report {
    const { startedAt = null, endedAt = null } = this.runs.at(-1) ?? {};
    const tasks = this.namesTasks ? this.tasks.map(({ id }) => id) : [];
    const { state, submittedAt } = this;
    return { state, submittedAt, run: this.runs.length, startedAt, endedAt, tasks };
  }

  /** Keeps what is reported from now on; `now` is wall time. */
  noteReport(now: number): void {
    this.#reports.push({ at: now, ...this.#report });
  }

  /** The report as it was at a moment, but never an older one than before; undefined if the job was not there. */
  reportLate(at: number): Report | undefined {
    this.#reportedAt = Math.max(this.#reportedAt, at);
    return this.#reports.findLast((report) => report.at <= this.#reportedAt);
  }

  /** Of a report, by default of the job as it is. `clockMs`: how far the clock of the cluster is ahead. */
  information(report: Report = this.#report, spelling: Spelling = 'milliseconds', clockMs = 0): JobInformation {
    const time = (ms: number | null) => (ms === null ? null : spelled(ms + clockMs, spelling));
    const { state, tasks } = report;
    const times = { startTime: time(report.startedAt), endTime: time(report.endedAt) };
    if (times.startTime !== null) this.runsByText.set(times.startTime.text, report.run);
    return {
      ...{ id: this.id, name: `job ${this.id}`, state },
      ...{ creationTime: null, submitTime: time(report.submittedAt), ...times },
      tasks: tasks.map((id) => ({ id, name: null, state, ...times, errorMessage: null })),
    };
  }
}

/** Formats times as a release of the middleware does. */
function spelled(ms: number, spelling: Spelling): JobTime {
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
