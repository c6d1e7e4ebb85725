/** The jobs of the simulated cluster: what their tasks write, and all that their files ever held. */
import type { JobId, LiveFileName, TaskId } from '../../src/job.ts';
import { LIVE_FILE_NAMES } from '../../src/job.ts';
import { type JobInformation, jobTimeOf } from '../../src/job-information.ts';
import type { Chance } from './chance.ts';

/** One live file: the contents it had, of which the last one grows. */
export class SimulatedFile {
  readonly contents: Buffer[] = [];
  /** How often the agent was shown another content than before. */
  changesShown = 0;
  /** The last answer left it out. */
  isHidden = false;
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

  /** An answer leaves it out: of a file that is not there, no answer has more. */
  hide(): void {
    this.isHidden = true;
  }

  /** The agent is sent a part of it. */
  show(): void {
    this.isHidden = false;
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
interface SimulatedResult {
  readonly contents: Buffer[];
  writtenAt: number;
}

const OVER = ['Finished', 'Failed', 'Canceled', 'Deleted'];

export class SimulatedJob {
  readonly id: JobId;
  state = 'Queued';
  startedAt: number | null = null;
  endedAt: number | null = null;
  readonly tasks: SimulatedTask[] = [];
  readonly results = new Map<string, SimulatedResult>();

  constructor(id: JobId) {
    this.id = id;
  }

  get isOver(): boolean {
    return OVER.includes(this.state);
  }

  addTask(): void {
    this.tasks.push(new SimulatedTask(`${Number(this.id) * 10 + this.tasks.length}` as TaskId, this.id));
  }

  start(now: number): void {
    this.state = 'Running';
    this.startedAt = now;
    this.endedAt = null;
    if (this.tasks.length === 0) this.addTask();
  }

  end(state: string, now: number): void {
    this.state = state;
    this.endedAt = now;
  }

  write(chance: Chance): void {
    const task = chance.any(this.tasks);
    if (task === undefined) return;
    const file = task.files[chance.among(LIVE_FILE_NAMES)];
    if (file.contents.length > 0 && chance.is(0.12)) file.rewrite(chance.whole(0, 12));
    else file.append(chance.is(0.1) ? chance.whole(50, 300) : chance.whole(1, 8));
  }

  writeResult(chance: Chance, now: number): void {
    const name = `/out/result-${chance.whole(1, 4)}.dat`;
    const result = this.results.get(name) ?? { contents: [], writtenAt: now };
    const size = chance.is(0.1) ? chance.whole(20_000, 90_000) : chance.whole(0, 3_000);
    const content = Buffer.alloc(size, `${this.id} ${name} ${result.contents.length}\n`);
    result.contents.push(content);
    result.writtenAt = now;
    this.results.set(name, result);
  }

  /** By its listed name. */
  liveFileAt(name: string): SimulatedFile | undefined {
    const [, taskId, file] = /^\/([0-9]+)\/([a-z]+)\.txt$/.exec(name) ?? [];
    const task = this.tasks.find(({ id }) => id === taskId);
    return task?.files[file as LiveFileName];
  }

  information(): JobInformation {
    const at = (ms: number | null) => (ms === null ? null : jobTimeOf(new Date(ms).toISOString()));
    const times = { startTime: at(this.startedAt), endTime: at(this.endedAt) };
    const tasks = this.tasks.map(({ id }) => ({ id, name: null, state: this.state, ...times, errorMessage: null }));
    const created = { creationTime: at(0), submitTime: at(0) };
    return { id: this.id, name: `job ${this.id}`, state: this.state, ...created, ...times, tasks };
  }
}
