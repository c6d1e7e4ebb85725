/** What the jobs of the soak do: they write text, now and then rewrite or cut a file, and leave results behind. */
import fs from 'node:fs';
import path from 'node:path';
import type { Sandbox } from '../../simulator/sandbox.ts';
import { type JobId, LIVE_FILE_NAMES, type LiveFileName, type TaskId } from '../../src/job.ts';

export interface SoakJob {
  readonly jobId: JobId;
  readonly taskId: TaskId;
  readonly directory: string;
  readonly files: Readonly<Record<LiveFileName, string>>;
}

const WORDS = [
  'iteration',
  'residual',
  'příliš žluťoučký kůň',
  'ψυχοφθόρα',
  'いろはにほへと',
  '🚀',
  '\u001b[32mok\u001b[0m',
];
/** Jobs that write within one second. */
const BUSY_SHARE = 0.1;
/** A file that is longer is rewritten: the disk of the machine is not what is tested. */
const LONGEST_BYTES = 256 * 1024;

export class ClusterWork {
  readonly jobs: readonly SoakJob[];
  readonly done = { bytes: 0, rewritten: 0, cut: 0, results: 0 };
  #line = 0;

  private constructor(jobs: readonly SoakJob[]) {
    this.jobs = jobs;
  }

  static async start(sandbox: Sandbox, count: number): Promise<ClusterWork> {
    const jobs: SoakJob[] = [];
    for (let index = 0; index < count; index += 1) {
      const job = await sandbox.submitJob({ tasks: [{}] });
      const [task] = job.tasks;
      if (task !== undefined) jobs.push({ jobId: job.jobId, ...pick(task) });
    }
    return new ClusterWork(jobs);
  }

  /** One second of work. */
  advance(): void {
    const count = Math.ceil(this.jobs.length * BUSY_SHARE);
    for (let index = 0; index < count; index += 1) this.#write(oneOf(this.jobs));
  }

  #write(job: SoakJob): void {
    const name = oneOf(LIVE_FILE_NAMES);
    const file = job.files[name];
    const { size } = fs.statSync(file, { throwIfNoEntry: false }) ?? { size: 0 };
    if (size > LONGEST_BYTES || Math.random() < 0.01) {
      fs.writeFileSync(file, this.#lines(3));
      this.done.rewritten += 1;
    } else if (size > 0 && Math.random() < 0.005) {
      fs.truncateSync(file, Math.floor(size / 2));
      this.done.cut += 1;
    } else {
      fs.appendFileSync(file, this.#lines(1 + Math.floor(Math.random() * 20)));
    }
    if (Math.random() < 0.02) {
      fs.writeFileSync(path.join(job.directory, `result ${this.#line % 50}.dat`), this.#lines(100));
      this.done.results += 1;
    }
  }

  #lines(count: number): string {
    const lines = Array.from({ length: count }, () => {
      this.#line += 1;
      return `${this.#line} ${Array.from({ length: 8 }, () => oneOf(WORDS)).join(' ')}\n`;
    });
    const text = lines.join('');
    this.done.bytes += Buffer.byteLength(text);
    return text;
  }
}

const pick = ({ taskId, directory, files }: Omit<SoakJob, 'jobId'>) => ({ taskId, directory, files });

export function oneOf<T>(items: readonly T[]): T {
  const item = items[Math.floor(Math.random() * items.length)];
  if (item === undefined) throw new Error('there is nothing to choose from');
  return item;
}
