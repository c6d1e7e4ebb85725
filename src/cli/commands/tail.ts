/** `agent tail JOB...`: the lines of the mirrors of jobs, with or without a running agent. */
import { once } from 'node:events';
import fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Config, hasFleet } from '../../config/config.ts';
import { JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { printable } from '../../printable.ts';
import { type ConfigOption, configurationAsOwner } from '../configuration.ts';
import { forEach, untilStopped } from '../process.ts';
import { forStderr } from '../show/colours.ts';
import { jobStateChanges } from '../show/job-text.ts';
import { type JobSeen, jobOfState, type SeenJob } from '../show/known-job.ts';
import { LineTail, type LiveFileChoice, startOfLastLines, TailedMirrors } from '../show/line-tail.ts';
import { columnsOf, cutToColumns } from '../show/terminal.ts';

interface TailOptions extends ConfigOption, LiveFileChoice {
  readonly follow?: boolean;
  readonly lines: number;
  readonly since?: number;
  readonly raw?: boolean;
  readonly prefix: boolean;
}

const TICK_MS = 200;
const MAX_TASKS = 8;
/** Interval for new tasks and the job state, which change seldom. */
const SLOW_TICK_MS = 1_000;
const ANNOUNCEMENT = '--- the remote file was truncated or rewritten; the new content follows ---';
const CLEAR_LINE = '\r\u001b[2K';

/** Several jobs one after the other, each below a header, as tail does with files. */
export async function tail(jobIds: readonly JobId[], options: TailOptions): Promise<void> {
  if (options.follow === true && jobIds.length > 1)
    throw new JobtailError('usage', '--follow takes one job', { hint: 'run one agent tail -f for each job' });
  const config = await configurationAsOwner(options);
  let isFirst = true;
  await forEach(jobIds, async (jobId) => {
    if (jobIds.length > 1) process.stdout.write(`${isFirst ? '' : '\n'}==> job ${jobId} <==\n`);
    isFirst = false;
    await tailJob(config, jobId, options);
  });
}

async function tailJob(config: Config, jobId: JobId, options: TailOptions): Promise<void> {
  const source = hasFleet(config)
    ? (await import('../fleet/client.ts')).jobOfFleet(config, jobId)
    : jobOfState(config, jobId);
  try {
    const known = await source.read();
    const shown = new Shown({ config, jobId, source, known }, options);
    shown.addFromLastLines();
    requireShown(shown, known, config, jobId, options);
    await untilStopped((signal) => (options.follow === true ? shown.follow(signal) : shown.toEnd()));
  } finally {
    await source.close();
  }
}

/** @throws JobtailError without a mirror, if the job or the task is unknown */
function requireShown(
  { isEmpty }: Shown,
  { elsewhere, state, tasks }: JobSeen,
  { mirror }: Config,
  jobId: JobId,
  { task }: TailOptions,
): void {
  if (elsewhere !== undefined)
    process.stderr.write(`agent ${printable(elsewhere)} has the mirrors of job ${jobId}: run this on its machine\n`);
  if (!isEmpty) return;
  if (state === undefined)
    throw new JobtailError('job-unknown', `there are no mirrors of job ${jobId} in ${mirror.directory}`, {
      hint: `watch it first: agent watch ${jobId}`,
    });
  const absent = task.find((taskId) => !tasks.includes(taskId));
  if (absent !== undefined && tasks.length > 0) {
    const few = tasks.slice(0, MAX_TASKS).join(', ');
    throw new JobtailError('job-unknown', `job ${jobId} has no task ${absent}`, {
      hint: `its tasks are ${few}${tasks.length > MAX_TASKS ? ', ...' : ''} (agent status ${jobId})`,
    });
  }
}

interface ShownJob {
  readonly config: Config;
  readonly jobId: JobId;
  readonly source: SeenJob;
  readonly known: JobSeen;
}

class Shown {
  readonly #jobId: JobId;
  readonly #options: TailOptions;
  readonly #tail: LineTail;
  readonly #mirrors: TailedMirrors;
  /** What the state has of the job. If it cannot be read, `--follow` ends only by a signal. */
  #known: JobSeen;
  readonly #source: SeenJob;
  readonly #stateChange = jobStateChanges();
  /** The mirror whose unfinished line is on the terminal, to be overwritten. */
  #open: string | undefined;

  constructor({ config, jobId, source, known }: ShownJob, options: TailOptions) {
    this.#jobId = jobId;
    this.#known = known;
    this.#source = source;
    this.#options = options;
    const { raw = false, prefix } = options;
    const rewrites = process.stdout.isTTY && !raw;
    const write = (line: string, name: string, unfinished: boolean) => {
      const over = this.#open === undefined ? '' : this.#open === name ? CLEAR_LINE : '\n';
      this.#open = rewrites && unfinished ? name : undefined;
      // A line that is overwritten must fit into one row; the others wrap.
      const shown = this.#open === undefined ? line : cutToColumns(line.slice(0, -1), columnsOf() - 1);
      process.stdout.write(`${over}${shown}`, raw ? 'latin1' : 'utf8');
    };
    this.#tail = new LineTail(write, { announcement: ANNOUNCEMENT, prefixes: prefix, raw, rewrites });
    this.#mirrors = new TailedMirrors(this.#tail, { ...options, mirror: config.mirror, jobIds: [jobId] });
  }

  get isEmpty(): boolean {
    return this.#mirrors.isEmpty;
  }

  addFromLastLines(): void {
    this.#mirrors.add((mirror) => this.#sizeIfOld(mirror) ?? startOfLastLines(mirror, this.#options.lines));
  }

  /** The size of a mirror that has not grown since `--since`; its lines are omitted. */
  #sizeIfOld(mirror: string): number | undefined {
    const { mtimeMs, size } = fs.lstatSync(mirror);
    return mtimeMs < (this.#options.since ?? Number.NEGATIVE_INFINITY) ? size : undefined;
  }

  async toEnd(): Promise<void> {
    if (this.isEmpty && this.#options.follow !== true) process.stderr.write(`${this.#whyEmpty}\n`);
    while (this.#tail.read()) await drained();
    this.#tail.end();
    this.#endLine();
  }

  async follow(signal: AbortSignal): Promise<void> {
    this.#warnIfNothingComes();
    let slowTickAt = 0;
    while (!signal.aborted) {
      const now = performance.now();
      const isSlowTick = now - slowTickAt >= SLOW_TICK_MS;
      if (isSlowTick) this.#known = await this.#source.read();
      // Checked before the lines are read, so that no line is missed.
      const end = isSlowTick ? this.#endOfJob() : undefined;
      if (isSlowTick) {
        slowTickAt = now;
        this.#printState();
        this.#mirrors.add((mirror) => this.#sizeIfOld(mirror) ?? 0);
      }
      const more = this.#tail.read();
      await drained(signal);
      if (end !== undefined && !more) {
        await this.toEnd();
        process.stderr.write(`job ${this.#jobId} has ended: no more lines\n`);
        return;
      }
      if (!more) await sleep(TICK_MS, undefined, { signal }).catch(() => {});
    }
    this.#endLine();
  }

  #warnIfNothingComes(): void {
    if (!this.#known.isKnowable || this.#endOfJob() !== undefined) return;
    if (!this.#known.isFollowed) process.stderr.write('no agent is running: start one to get new lines (agent run)\n');
    else if (this.isEmpty) process.stderr.write(`${this.#whyEmpty}; its lines appear when it is found\n`);
  }

  get #whyEmpty(): string {
    return `no live file of job ${this.#jobId} found yet (agent status ${this.#jobId})`;
  }

  /** To the standard error: a pipe gets only lines of the job. */
  #printState(): void {
    const change = this.#stateChange(this.#known.information);
    if (change === '') return;
    this.#endLine();
    process.stderr.write(forStderr(change));
  }

  /** Why no more lines come, as far as the state can be read. */
  #endOfJob(): 'settled' | 'ended' | undefined {
    const { state } = this.#known;
    return state === 'settled' || state === 'ended' ? state : undefined;
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
