/** `agent wait JOB...`: blocks until each job is over and its last complete pass is done. */
import { setTimeout as sleep } from 'node:timers/promises';
import { unprovenOf } from '../../agent/unproven.ts';
import { type Config, type FleetConfig, hasFleet, hasJobService } from '../../config/config.ts';
import { configuredJobs, withSharedStore } from '../../daemon/state.ts';
import { EXIT, JobtailError } from '../../errors.ts';
import { type JobId, LIVE_FILE_NAMES } from '../../job.ts';
import { countOf } from '../../numbers.ts';
import { printable } from '../../printable.ts';
import { lockHolder } from '../../store/lock.ts';
import type { WatchRequest } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import { configurationAsOwner, type JsonOption } from '../configuration.ts';
import { type FollowedJobs, withJobs } from '../followed-jobs.ts';
import { untilStopped } from '../process.ts';
import { hasMessage, showJobState, taskLine } from '../show/job-text.ts';
import { jsonReport } from '../show/json.ts';
import { LineTail, startOfLastLines, TailedMirrors } from '../show/line-tail.ts';
import { type JobReport, reportOf } from '../show/status-report.ts';

interface WaitOptions extends JsonOption {
  readonly any?: boolean;
  readonly tail?: boolean;
  /** In milliseconds. */
  readonly timeout?: number;
}

const TICK_MS = 200;
/** Intervals for reading the state of jobs, here and from the database of a fleet. */
const STATE_MS = 500;
const FLEET_STATE_MS = 2_000;
/** Maximum absence of the agent during a restart or an upgrade. */
const MAX_ABSENT_MS = 120_000;
const FIRST_LINES = 10;
const MAX_TASKS = 5;

/**
 * The exit code of each outcome; of several jobs, the first of these is the result. unproven: a file could not be proven, or
 * the end of the job is unknown.
 */
const EXIT_CODES = {
  unproven: EXIT.failed,
  failed: EXIT.jobFailed,
  canceled: EXIT.jobCanceled,
  finished: EXIT.ok,
} as const;

type Outcome = keyof typeof EXIT_CODES;

export interface Ended {
  readonly outcome: Outcome;
  readonly unproven: readonly string[];
  readonly job: JobReport;
}

export function endOf(job: JobReport): Ended | undefined {
  if (job.state === 'watched' || job.state === 'ending') return undefined;
  const ends: Readonly<Record<string, Outcome>> = { Finished: 'finished', Failed: 'failed', Canceled: 'canceled' };
  const end = ends[job.jobState ?? ''];
  const isSettled = job.state === 'settled';
  const unproven = isSettled ? unprovenOf(job.files, job.results) : ['it is not followed any more'];
  if (end === undefined) unproven.push('it is not reported how the job ended');
  if (end === undefined || !isSettled) return { job, outcome: 'unproven', unproven };
  return { job, outcome: end === 'finished' && unproven.length > 0 ? 'unproven' : end, unproven };
}

export function exitCodeOf(ended: readonly Ended[]): number {
  const [worst] = Object.entries(EXIT_CODES).filter(([outcome]) => ended.some((one) => one.outcome === outcome));
  return worst?.[1] ?? EXIT.ok;
}

export async function wait(jobIds: readonly JobId[], options: WaitOptions): Promise<void> {
  const config = await configurationAsOwner(options);
  const ids = [...new Set(jobIds)];
  const requests = ids.map((jobId) => requestOf(config, jobId));
  const waiting = new Waiting(config, ids, options);
  const waitFor = (signal: AbortSignal) => withJobs(config, (jobs) => waiting.run(jobs, signal));
  if (hasFleet(config)) await watchInFleet(config, requests);
  else {
    const { refuseNoJob } = await import('./watch.ts');
    for (const jobId of ids) await refuseNoJob(config, jobId);
    const newIn = (store: Store) => requests.filter(({ jobId }) => store.jobs.get(jobId) === undefined);
    if (lockHolder(config.state.directory) === undefined) {
      const { followHere } = await import('./watch-foreground.ts');
      return await followHere(config, { jobIds: ids, requests: newIn }, (_, signal) => waitFor(signal));
    }
    await withSharedStore(config, (store) => {
      store.transaction(() => {
        for (const request of newIn(store)) store.jobs.watch(request, Date.now());
      });
      store.wake();
    });
  }
  (await untilStopped(waitFor))();
}

async function watchInFleet(config: FleetConfig, requests: readonly WatchRequest[]): Promise<void> {
  const { withFleet } = await import('../fleet/client.ts');
  await withFleet(config, async (client) => {
    for (const body of requests) {
      const { jobId } = body;
      if ((await client.owners(jobId)).length === 0) await client.command({ jobId, kind: 'watch', body });
    }
  });
}

/** A job that is not watched yet is watched with the defaults, or as the configuration names it. */
function requestOf(config: Config, jobId: JobId): WatchRequest {
  const configured = configuredJobs(config).find((request) => request.jobId === jobId);
  const usual = { tasks: null, files: LIVE_FILE_NAMES, settleAfterMs: null, source: 'command' } as const;
  return configured ?? { jobId, ...usual, results: config.results.enabled };
}

class Waiting {
  readonly #jobIds: readonly JobId[];
  readonly #config: Config;
  readonly #options: WaitOptions;
  readonly #ended = new Map<JobId, Ended>();
  readonly #lines: TailedMirrors | undefined;
  readonly #startedAt = performance.now();
  #isTimeUp = false;

  constructor(config: Config, jobIds: readonly JobId[], options: WaitOptions) {
    this.#jobIds = jobIds;
    this.#config = config;
    this.#options = options;
    if (options.tail !== true) return;
    const output = options.json === true ? process.stderr : process.stdout;
    const tail = new LineTail((line) => void output.write(line));
    this.#lines = new TailedMirrors(tail, { mirror: config.mirror, jobIds });
    this.#lines.add((file) => startOfLastLines(file, FIRST_LINES));
  }

  get #exitCode(): number {
    return this.#isTimeUp ? EXIT.timeIsUp : exitCodeOf([...this.#ended.values()]);
  }

  /** The returned function prints the result, after the last bytes are appended. */
  async run(jobs: FollowedJobs, signal: AbortSignal): Promise<() => void> {
    await this.#requireEnds(jobs);
    const { timeout = Number.POSITIVE_INFINITY } = this.#options;
    const stateMs = hasFleet(this.#config) ? FLEET_STATE_MS : STATE_MS;
    let readAt = Number.NEGATIVE_INFINITY;
    let absentSince: number | undefined;
    while (!this.#isOver) {
      const now = performance.now();
      if (signal.aborted) throw new JobtailError('aborted', 'it was stopped');
      if (now - readAt >= stateMs) {
        readAt = now;
        for (const jobId of this.#jobIds) if (!this.#ended.has(jobId)) await this.#read(jobs, jobId);
        if (this.#isOver) break;
        if (await jobs.isFollowed()) absentSince = undefined;
        else absentSince = waitForAgent(absentSince, now);
      }
      if (now - this.#startedAt >= timeout) {
        this.#isTimeUp = true;
        break;
      }
      const more = this.#lines?.tick() ?? false;
      const restMs = Math.min(TICK_MS, Math.max(1, this.#startedAt + timeout - now));
      if (!more) await sleep(restMs, undefined, { signal }).catch(() => {});
    }
    return () => {
      this.#lines?.end();
      this.#print();
      process.exitCode = this.#exitCode;
    };
  }

  async #requireEnds(jobs: FollowedJobs): Promise<void> {
    if (hasJobService(this.#config.service)) return;
    for (const jobId of this.#jobIds) {
      const job = await jobs.read(jobId, (store) => store.jobs.get(jobId));
      const { settleAfterMs } = job ?? requestOf(this.#config, jobId);
      if (settleAfterMs !== null || (job !== undefined && job.state !== 'watched')) continue;
      throw new JobtailError('config', `the end of job ${jobId} cannot be seen: there is no job service`, {
        hint: 'set service.jobsUrl, or settleAfterMinutes for the job in watch',
      });
    }
  }

  get #isOver(): boolean {
    return this.#options.any === true ? this.#ended.size > 0 : this.#ended.size === this.#jobIds.length;
  }

  async #read(jobs: FollowedJobs, jobId: JobId): Promise<void> {
    const ended = await jobs.read(jobId, (store) => {
      const state = store.jobs.get(jobId)?.state;
      if (state === undefined || state === 'watched' || state === 'ending') return undefined;
      return reportOf(this.#config, store, jobId).jobs.map(endOf)[0];
    });
    if (ended !== undefined) this.#ended.set(jobId, ended);
  }

  #print(): void {
    const { json } = this.#options;
    if (json === true) {
      const jobs = [...this.#ended.values()].map(({ outcome, unproven, job }) => ({
        ...{ jobId: job.jobId, outcome, jobState: job.jobState, state: job.state, unproven },
        ...{ files: job.files.length, results: job.results.synced },
      }));
      const waitingFor = this.#jobIds.filter((jobId) => !this.#ended.has(jobId));
      const report = { exitCode: this.#exitCode, timedOut: this.#isTimeUp, jobs, waitingFor };
      process.stdout.write(jsonReport(report));
      return;
    }
    for (const ended of this.#ended.values()) process.stdout.write(textOf(ended));
    for (const jobId of this.#isTimeUp ? this.#jobIds : [])
      if (!this.#ended.has(jobId)) process.stderr.write(`job ${jobId} is not over, and the time is up\n`);
  }
}

/** Since when no agent runs. @throws JobtailError if that is too long ago */
function waitForAgent(absentSince: number | undefined, now: number): number {
  if (absentSince === undefined) process.stderr.write('no agent is running: waiting for it (agent run)\n');
  else if (now - absentSince >= MAX_ABSENT_MS)
    throw new JobtailError('store', 'no agent is running, and the job is not over', {
      hint: 'start the agent (agent run), then run the command again',
    });
  return absentSince ?? now;
}

function textOf({ job, unproven }: Ended): string {
  const verified = job.files.filter((file) => file.verified).length;
  const what = `${verified} of ${countOf(job.files.length, 'live file')} verified, ${countOf(job.results.synced, 'result')}`;
  const failed = job.tasks.reported.filter(({ errorMessage }) => hasMessage(errorMessage)).slice(0, MAX_TASKS);
  const lines = [
    `job ${job.jobId} is ${job.jobState === null ? job.state : showJobState(job.jobState)}: ${what}`,
    ...failed.map((task) => `  ${taskLine(task)}`),
    ...unproven.map((reason) => `  not proven: ${printable(reason)}`),
  ];
  return `${lines.join('\n')}\n`;
}
