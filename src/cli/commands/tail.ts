/** `agent tail JOB...`: the lines of the mirrors of jobs, with or without a running agent. */
import { once } from 'node:events';
import fs from 'node:fs';
import { type Config, hasFleet } from '../../config/config.ts';
import { asJobtailError, JobtailError } from '../../errors.ts';
import { isOver, type JobId } from '../../job.ts';
import { printable } from '../../printable.ts';
import { lossOf } from '../../search/mirrors.ts';
import { requireMirrors } from '../agent-socket.ts';
import { type ConfigOption, configurationAsOwner } from '../configuration.ts';
import { withJobs } from '../followed-jobs.ts';
import { forEach, untilStopped } from '../process.ts';
import { jobStateChanges } from '../show/job-text.ts';
import { type LiveFileChoice, startOfLastLines, TailedMirrors } from '../show/line-tail.ts';
import { columnsOf, cutToColumns, forStderr } from '../show/terminal.ts';
import type { FollowedJobs } from '../stored-jobs.ts';
import { untilOver } from '../waiting.ts';

interface TailArguments extends ConfigOption, LiveFileChoice {
  readonly follow?: boolean;
  readonly lines: number;
  readonly since?: number;
  readonly raw?: boolean;
  readonly prefix: boolean;
}

/** Interval for the job state, which changes seldom. */
const STATE_MS = 1_000;
const CLEAR_LINE = '\r\u001b[2K';

/** Several jobs one after the other, each below a header, as tail does with files. */
export async function tail(jobIds: readonly JobId[], options: TailArguments): Promise<void> {
  if (options.follow === true && jobIds.length > 1)
    throw new JobtailError('usage', '--follow takes one job', { hint: 'run one agent tail -f for each job' });
  const config = await configurationAsOwner(options);
  requireMirrors(config);
  let isFirst = true;
  await forEach(jobIds, async (jobId) => {
    if (jobIds.length > 1) process.stdout.write(`${isFirst ? '' : '\n'}==> job ${jobId} <==\n`);
    isFirst = false;
    await tailJob(config, jobId, options);
  });
}

async function tailJob(config: Config, jobId: JobId, options: TailArguments): Promise<void> {
  await withJobs(config, async (jobs) => {
    const read = () =>
      seenIn(jobs, jobId).catch((thrown) => (asJobtailError(thrown).code === 'job-unknown' ? REMOVED : undefined));
    const shown = new ShownFile(config, { jobId, read, known: await read() }, options);
    shown.require(config.mirror.directory);
    await untilStopped((signal) => (options.follow === true ? shown.follow(signal) : shown.toEnd(signal)));
  });
}

type JobSeen = Awaited<ReturnType<typeof seenIn>>;

/** No agent writes its mirrors any more. */
const REMOVED: JobSeen = { isFollowed: false, elsewhere: undefined, job: undefined };

async function seenIn(jobs: FollowedJobs, jobId: JobId) {
  const [follower, elsewhere] = [await jobs.follower(jobId), await jobs.elsewhere?.(jobId)];
  return { isFollowed: follower.by !== 'nobody', elsewhere, job: await jobs.job(jobId) };
}

interface ShownJob {
  readonly jobId: JobId;
  /** What the agent has of the job; undefined while that cannot be read: then `--follow` ends only by a signal. */
  readonly read: () => Promise<JobSeen | undefined>;
  known: JobSeen | undefined;
}

class ShownFile {
  readonly #job: ShownJob;
  readonly #options: TailArguments;
  readonly #mirrors: TailedMirrors;
  /** Mirrors of a fleet may be on other machines. */
  readonly #areHere: boolean;
  readonly #stateChange = jobStateChanges();
  readonly #reported = new Set<string>();
  /** The mirror whose unfinished line is on the terminal, to be overwritten. */
  #open: string | undefined;

  constructor(config: Config, job: ShownJob, options: TailArguments) {
    this.#job = job;
    this.#options = options;
    this.#areHere = !hasFleet(config);
    const { raw = false, prefix, lines, since = Number.NEGATIVE_INFINITY } = options;
    const rewrites = process.stdout.isTTY && !raw;
    const write = (line: string, name: string, unfinished: boolean) => {
      const over = this.#open === undefined ? '' : this.#open === name ? CLEAR_LINE : '\n';
      this.#open = rewrites && unfinished ? name : undefined;
      // A line that is overwritten must fit into one row; the others wrap.
      const shown = this.#open === undefined ? line : cutToColumns(line.slice(0, -1), columnsOf() - 1);
      process.stdout.write(`${over}${shown}`, raw ? 'latin1' : 'utf8');
    };
    const source = { task: options.task, file: options.file, mirror: config.mirror, jobIds: [job.jobId] };
    this.#mirrors = new TailedMirrors(write, source, { prefixes: prefix, raw, rewrites });
    this.#mirrors.add((mirror) => {
      const { mtimeMs, size } = fs.lstatSync(mirror);
      return mtimeMs < since ? size : startOfLastLines(mirror, lines);
    });
  }

  /** @throws JobtailError without a mirror, if the job or the task is unknown */
  require(mirrorDirectory: string): void {
    const { jobId, known } = this.#job;
    const { elsewhere, job } = known ?? {};
    const tasks = new Set(job?.files.map(({ taskId }) => taskId));
    if (elsewhere !== undefined)
      process.stderr.write(`agent ${printable(elsewhere)} has the mirrors of job ${jobId}: run this on its machine\n`);
    if (!this.#mirrors.isEmpty) return;
    if (job === undefined)
      throw new JobtailError('job-unknown', `there are no mirrors of job ${jobId} in ${mirrorDirectory}`, {
        hint: `watch it first: agent watch ${jobId}`,
      });
    const absent = this.#options.task.find((taskId) => !tasks.has(taskId));
    if (absent !== undefined && tasks.size > 0)
      throw new JobtailError('job-unknown', `job ${jobId} has no task ${absent}`, {
        hint: `agent status ${jobId} shows its tasks`,
      });
    if (this.#losses.length > 0)
      throw new JobtailError('local-io', `the mirrors of job ${jobId} in ${mirrorDirectory} are gone`, {
        hint: `agent sync ${jobId} fetches them again`,
      });
  }

  /** Each error of a live file, once. */
  #printErrors(): void {
    for (const { taskId, file, error } of this.#job.known?.job?.files ?? [])
      if (error !== null) this.#printOnce(`task ${taskId} ${file}: ${printable(error.message)}\n`);
  }

  #printOnce(line: string): void {
    if (this.#reported.has(line)) return;
    this.#reported.add(line);
    this.#endLine();
    process.stderr.write(line);
  }

  /** Of each chosen mirror that was removed or cut; while the job is followed, the agent mends it. */
  get #losses(): string[] {
    const { task: tasks, file: names } = this.#options;
    const files = this.#areHere && this.#isOver ? (this.#job.known?.job?.files ?? []) : [];
    return files.flatMap((row) => {
      if ((tasks.length > 0 && !tasks.includes(row.taskId)) || (names.length > 0 && !names.includes(row.file)))
        return [];
      return lossOf(this.#job.jobId, row) ?? [];
    });
  }

  async toEnd(signal: AbortSignal): Promise<void> {
    if (this.#mirrors.isEmpty && this.#options.follow !== true) process.stderr.write(`${this.#whyEmpty}\n`);
    while (!signal.aborted && this.#mirrors.tick()) await drained();
    this.#mirrors.end();
    this.#endLine();
    this.#printErrors();
    for (const loss of this.#losses) this.#printOnce(`${loss}\n`);
  }

  async follow(signal: AbortSignal): Promise<void> {
    this.#warnIfNothingComes();
    const hasEnded = async () => {
      this.#job.known = await this.#job.read();
      this.#printState();
      this.#printErrors();
      return this.#isOver;
    };
    const tick = async () => {
      const more = this.#mirrors.tick();
      await drained(signal);
      return more;
    };
    if (!(await untilOver({ signal, stateMs: STATE_MS, isOver: hasEnded, tick }))) return this.#endLine();
    await this.toEnd(signal);
    const end = this.#job.known?.job?.state === 'settled' ? 'settled' : 'unwatched';
    process.stderr.write(`job ${this.#job.jobId} is ${end}: no more lines\n`);
  }

  #warnIfNothingComes(): void {
    const { known } = this.#job;
    if (known === undefined || this.#isOver) return;
    const { jobId } = this.#job;
    if (known.job === undefined)
      process.stderr.write(`job ${jobId} is not watched: its lines come once it is (agent watch ${jobId})\n`);
    else if (!known.isFollowed) process.stderr.write('no agent is running: start one to get new lines (agent run)\n');
    else if (this.#mirrors.isEmpty) process.stderr.write(`${this.#whyEmpty}; its lines appear when it is found\n`);
  }

  get #whyEmpty(): string {
    const { jobId } = this.#job;
    return `no live file of job ${jobId} found yet (agent status ${jobId})`;
  }

  /** To the standard error: a pipe gets only lines of the job. */
  #printState(): void {
    const change = this.#stateChange(this.#job.known?.job);
    if (change === '') return;
    this.#endLine();
    process.stderr.write(forStderr(change));
  }

  get #isOver(): boolean {
    const { known } = this.#job;
    return known === REMOVED || (known?.job !== undefined && isOver(known.job));
  }

  #endLine(): void {
    if (this.#open !== undefined) process.stdout.write('\n');
    this.#open = undefined;
  }
}

/** Waits until the reader of the standard output has caught up. */
async function drained(signal?: AbortSignal): Promise<void> {
  if (process.stdout.writableNeedDrain)
    await once(process.stdout, 'drain', signal === undefined ? {} : { signal }).catch(() => {});
}
