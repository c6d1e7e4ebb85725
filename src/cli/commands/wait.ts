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
import type { JobRow, WatchRequest } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import { type ConfigOption, configurationAsOwner } from '../configuration.ts';
import { untilStopped } from '../process.ts';
import { hasMessage, showJobState, taskLine } from '../show/job-text.ts';
import { jsonReport } from '../show/json.ts';
import { LineTail, startOfLastLines, TailedMirrors } from '../show/line-tail.ts';
import { type JobReport, reportOf } from '../show/status-report.ts';

interface WaitOptions extends ConfigOption {
  readonly any?: boolean;
  readonly tail?: boolean;
  /** In milliseconds. */
  readonly timeout?: number;
  readonly json?: boolean;
}

const TICK_MS = 200;
/** Intervals for reading the state of jobs, here and from the database of a fleet. */
const STATE_MS = 500;
const FLEET_STATE_MS = 2_000;
/** Maximum absence of the agent during a restart or an upgrade. */
const MAX_ABSENT_MS = 120_000;
const FIRST_LINES = 10;
const MAX_TASKS = 5;

/** unproven: a file could not be proven, or the end of the job is unknown. */
export type Outcome = 'finished' | 'failed' | 'canceled' | 'unproven';

const EXIT_CODES: Readonly<Record<Outcome, number>> = {
  unproven: EXIT.failed,
  failed: EXIT.jobFailed,
  canceled: EXIT.jobCanceled,
  finished: EXIT.ok,
};
/** Of several jobs, the first of these outcomes is the result. */
const WORST_FIRST = ['unproven', 'failed', 'canceled', 'finished'] as const;

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
  const worst = WORST_FIRST.find((outcome) => ended.some((one) => one.outcome === outcome));
  return worst === undefined ? EXIT.ok : EXIT_CODES[worst];
}

export async function wait(jobIds: readonly JobId[], options: WaitOptions): Promise<void> {
  const config = await configurationAsOwner(options);
  const waiting = new Waiting(config, [...new Set(jobIds)], options);
  if (hasFleet(config)) await waitForFleet(config, waiting);
  else await waitHere(config, waiting);
  process.exitCode = waiting.exitCode;
}

interface Source {
  stateOf(jobId: JobId): Promise<JobRow['state'] | undefined>;
  reportOf(jobId: JobId): Promise<JobReport | undefined>;
  isFollowed(): Promise<boolean>;
}

async function waitHere(config: Config, waiting: Waiting): Promise<void> {
  const ofStore = (store: Store): Source => ({
    stateOf: async (jobId) => store.jobs.get(jobId)?.state,
    reportOf: async (jobId) => reportOf(config, store, jobId).jobs[0],
    isFollowed: async () => lockHolder(config.state.directory) !== undefined,
  });
  const { refuseNoJob } = await import('./watch.ts');
  if (lockHolder(config.state.directory) !== undefined)
    return await withSharedStore(config, async (store) => {
      const fresh = freshOf(store, waiting.jobIds);
      for (const jobId of fresh) await refuseNoJob(config, jobId);
      store.transaction(() => {
        for (const jobId of fresh) store.jobs.watch(requestOf(config, jobId), Date.now());
      });
      if (fresh.length > 0) store.wake();
      await waiting.requireEnds(async (jobId) => store.jobs.get(jobId));
      const end = await untilStopped((signal) => waiting.run(ofStore(store), signal));
      end();
    });
  for (const jobId of waiting.jobIds) await refuseNoJob(config, jobId);
  const { followHere } = await import('./watch-foreground.ts');
  await followHere(
    config,
    {
      jobIds: waiting.jobIds,
      requests: (store) => freshOf(store, waiting.jobIds).map((jobId) => requestOf(config, jobId)),
    },
    async (store, signal) => {
      await waiting.requireEnds(async (jobId) => store.jobs.get(jobId));
      return await waiting.run({ ...ofStore(store), isFollowed: async () => true }, signal);
    },
  );
}

async function waitForFleet(config: FleetConfig, waiting: Waiting): Promise<void> {
  const { fleetReport, withFleet, withView } = await import('../fleet/client.ts');
  await withFleet(config, async (client) => {
    const stateOf = async (jobId: JobId) => (await client.owners(jobId))[0]?.state as JobRow['state'] | undefined;
    for (const jobId of waiting.jobIds) {
      const request = requestOf(config, jobId);
      if ((await stateOf(jobId)) === undefined) await client.command({ jobId, kind: 'watch', body: request });
    }
    await waiting.requireEnds((only) => withView({ config, client, only }, (store) => store.jobs.get(only)));
    const source: Source = {
      stateOf,
      reportOf: async (jobId) => (await fleetReport(config, client, jobId)).jobs[0],
      isFollowed: async () => (await client.agents()).some(({ state }) => state !== 'gone'),
    };
    (await untilStopped((signal) => waiting.run(source, signal)))();
  });
}

const freshOf = (store: Store, jobIds: readonly JobId[]) =>
  jobIds.filter((jobId) => store.jobs.get(jobId) === undefined);

/** A job that is not watched yet is watched with the defaults, or as the configuration names it. */
function requestOf(config: Config, jobId: JobId): WatchRequest {
  const configured = configuredJobs(config).find((request) => request.jobId === jobId);
  const usual = { tasks: null, files: LIVE_FILE_NAMES, settleAfterMs: null, source: 'command' } as const;
  return configured ?? { jobId, ...usual, results: config.results.enabled };
}

class Waiting {
  readonly jobIds: readonly JobId[];
  readonly #config: Config;
  readonly #options: WaitOptions;
  readonly #ended = new Map<JobId, Ended>();
  readonly #lines: TailedMirrors | undefined;
  readonly #startedAt = performance.now();
  #isTimeUp = false;

  constructor(config: Config, jobIds: readonly JobId[], options: WaitOptions) {
    this.jobIds = jobIds;
    this.#config = config;
    this.#options = options;
    if (options.tail !== true) return;
    const output = options.json === true ? process.stderr : process.stdout;
    const tail = new LineTail((line) => void output.write(line));
    this.#lines = new TailedMirrors(tail, { mirror: config.mirror, jobIds });
    this.#lines.add((file) => startOfLastLines(file, FIRST_LINES));
  }

  get exitCode(): number {
    return this.#isTimeUp ? EXIT.timeIsUp : exitCodeOf([...this.#ended.values()]);
  }

  async requireEnds(jobOf: (jobId: JobId) => Promise<JobRow | undefined>): Promise<void> {
    if (hasJobService(this.#config.service)) return;
    for (const jobId of this.jobIds) {
      const job = (await jobOf(jobId)) ?? requestOf(this.#config, jobId);
      const isFollowed = !('state' in job) || job.state === 'watched';
      if (!isFollowed || job.settleAfterMs !== null) continue;
      throw new JobtailError('config', `the end of job ${jobId} cannot be seen: there is no job service`, {
        hint: 'set service.jobsUrl, or settleAfterMinutes for the job in watch',
      });
    }
  }

  /** The returned function prints the result, after the last bytes are appended. */
  async run(source: Source, signal: AbortSignal): Promise<() => void> {
    const { timeout = Number.POSITIVE_INFINITY } = this.#options;
    const stateMs = hasFleet(this.#config) ? FLEET_STATE_MS : STATE_MS;
    let readAt = Number.NEGATIVE_INFINITY;
    let absentSince: number | undefined;
    while (!this.#isOver) {
      const now = performance.now();
      if (signal.aborted) throw new JobtailError('aborted', 'it was stopped');
      if (now - readAt >= stateMs) {
        readAt = now;
        for (const jobId of this.jobIds) if (!this.#ended.has(jobId)) await this.#read(source, jobId);
        if (this.#isOver) break;
        absentSince = (await source.isFollowed())
          ? undefined
          : this.#absent(absentSince ?? now, absentSince === undefined);
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
    };
  }

  get #isOver(): boolean {
    return this.#options.any === true ? this.#ended.size > 0 : this.#ended.size === this.jobIds.length;
  }

  #absent(since: number, isNew: boolean): number {
    if (isNew) process.stderr.write('no agent is running: waiting for it (agent run)\n');
    if (performance.now() - since < MAX_ABSENT_MS) return since;
    throw new JobtailError('store', 'no agent is running, and the job is not over', {
      hint: 'start the agent (agent run), then run the command again',
    });
  }

  async #read(source: Source, jobId: JobId): Promise<void> {
    const state = await source.stateOf(jobId);
    if (state === undefined || state === 'watched' || state === 'ending') return;
    const report = await source.reportOf(jobId);
    const ended = report && endOf(report);
    if (ended !== undefined) this.#ended.set(jobId, ended);
  }

  #print(): void {
    const { json } = this.#options;
    if (json === true) {
      const jobs = [...this.#ended.values()].map(({ outcome, unproven, job }) => ({
        ...{ jobId: job.jobId, outcome, jobState: job.jobState, state: job.state, unproven },
        ...{ files: job.files.length, results: job.results.synced },
      }));
      const waitingFor = this.jobIds.filter((jobId) => !this.#ended.has(jobId));
      const report = { exitCode: this.exitCode, timedOut: this.#isTimeUp, jobs, waitingFor };
      process.stdout.write(jsonReport(report));
      return;
    }
    for (const ended of this.#ended.values()) process.stdout.write(textOf(ended));
    for (const jobId of this.#isTimeUp ? this.jobIds : [])
      if (!this.#ended.has(jobId)) process.stderr.write(`job ${jobId} is not over, and the time is up\n`);
  }
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
