/** `agent wait JOB...`: blocks until each job is over and its last complete pass is done. */
import { type Config, type FleetConfig, hasFleet, hasJobService } from '../../config/config.ts';
import { withStore } from '../../daemon/own-state.ts';
import { configuredJobs, type SharedState } from '../../daemon/state.ts';
import { asJobtailError, type ErrorCode, EXIT, JobtailError } from '../../errors.ts';
import { isOver, type JobId, LIVE_FILE_NAMES } from '../../job.ts';
import { phaseOf } from '../../job-information.ts';
import { jsonReport } from '../../json-report.ts';
import { countOf } from '../../numbers.ts';
import { printable } from '../../printable.ts';
import type { WatchRequest } from '../../store/rows.ts';
import { askSocket, isOfAnother } from '../agent-socket.ts';
import { followRequest, PendingRequest } from '../ask-agent.ts';
import { configurationAsOwner, type JsonOption } from '../configuration.ts';
import { jobsOfThisMachine, withJobs } from '../followed-jobs.ts';
import { MAX_CHECK_MS } from '../job-service.ts';
import { commandLog, untilStopped } from '../process.ts';
import { type Ended, endOf, exitCodeOf, waitReport } from '../show/ends.ts';
import { failedTaskLines, hiddenResultsLines, showJobState } from '../show/job-text.ts';
import { startOfLastLines, TailedMirrors } from '../show/line-tail.ts';
import type { JobReport } from '../show/status-report.ts';
import type { FollowedJobs } from '../stored-jobs.ts';
import { untilOver } from '../waiting.ts';
import { refuseNoJob } from './watch.ts';

interface WaitOptions extends JsonOption {
  readonly any?: boolean;
  readonly tail?: boolean;
  /** In milliseconds. */
  readonly timeout?: number;
}

/** Intervals for reading the state of jobs, here and from the database of a fleet. */
const STATE_MS = 500;
const FLEET_STATE_MS = 2_000;
/** Maximum absence of the agent, or of the database of its fleet, as during a restart or an upgrade. */
const MAX_ABSENT_MS = 120_000;
const FIRST_LINES = 10;

interface WaitContext {
  readonly signal: AbortSignal;
  /** The state that this process serves if no other one does, and its requests to follow the jobs. */
  readonly served?: { readonly state: SharedState; readonly pending: ReadonlyMap<JobId, PendingRequest> };
  /** Commands for a fleet that may be refused. */
  readonly commands?: readonly string[];
}

/** A signal stops it also between its steps. */
export const wait = (jobIds: readonly JobId[], options: WaitOptions): Promise<void> =>
  untilStopped((stop) => waitUntilStopped(jobIds, options, stop));

async function waitUntilStopped(jobIds: readonly JobId[], options: WaitOptions, stop: AbortSignal): Promise<void> {
  const config = await configurationAsOwner(options);
  const ids = [...new Set(jobIds)];
  const requests = ids.map((jobId) => requestOf(config, jobId));
  const work = waitOf(config, ids, options);
  const alone = (commands: readonly string[] = []) =>
    withJobs(config, (jobs) => work(jobs, { signal: stop, commands }));
  if (hasFleet(config)) return (await alone(await watchInFleet(config, requests)))();
  if (isOfAnother(config)) {
    await withJobs(config, (jobs) => Promise.all(requests.map((request) => watchByAgent(config, jobs, request))));
    return (await alone())();
  }
  for (const jobId of ids) {
    const askedAt = performance.now();
    await refuseNoJob(config, { jobId, tasks: null });
    // A service that hangs is not asked for the next one.
    if (performance.now() - askedAt >= MAX_CHECK_MS) break;
  }
  const areOver = await withStore(config, commandLog(), (store) => {
    const fresh = requests.filter(({ jobId }) => store.jobs.get(jobId) === undefined);
    store.transaction(() => {
      for (const request of fresh) store.jobs.watch(request, Date.now());
    });
    return ids.map((jobId) => store.jobs.get(jobId)).every((job) => job !== undefined && isOver(job));
  });
  if (areOver) return (await alone())();
  const { withServedState } = await import('../serve-state.ts');
  await withServedState(config, async (state, signal) => {
    const pending = new Map(
      requests.map((request) => [request.jobId, new PendingRequest(state, followRequest(request))]),
    );
    try {
      return await work(jobsOfThisMachine(config, state), { signal, served: { state, pending } });
    } finally {
      for (const one of pending.values()) one.end();
    }
  });
}

/** Has the agent of another user follow a job that it does not follow yet. */
async function watchByAgent(config: Config, jobs: FollowedJobs, { jobId, tasks, files, results }: WatchRequest) {
  const isKnown = await jobs.job(jobId).catch((thrown: unknown) => {
    if (asJobtailError(thrown).code !== 'job-unknown') throw thrown;
  });
  if (!isKnown) await askSocket(config, { path: 'jobs', method: 'POST', body: { jobId, tasks, files, results } });
}

/** Returns the ids of the commands that were placed. */
async function watchInFleet(config: FleetConfig, requests: readonly WatchRequest[]): Promise<string[]> {
  const { withFleet } = await import('../fleet/client.ts');
  return await withFleet(config, async (client) => {
    const commands: string[] = [];
    for (const body of requests) {
      const { jobId } = body;
      if ((await client.owners(jobId)).length === 0)
        commands.push(await client.command({ jobId, kind: 'watch', body }));
    }
    return commands;
  });
}

/** A job that is not watched yet is watched with the defaults, or as the configuration names it. */
function requestOf(config: Config, jobId: JobId): WatchRequest {
  const configured = configuredJobs(config).find((request) => request.jobId === jobId);
  const usual = { tasks: null, files: LIVE_FILE_NAMES, settleAfterMs: null, source: 'command' } as const;
  return configured ?? { jobId, ...usual, results: config.results.enabled };
}

/** Waits for the jobs; the returned function prints the result, after the last bytes are appended. */
function waitOf(config: Config, jobIds: readonly JobId[], options: WaitOptions) {
  const { any = false, timeout = Number.POSITIVE_INFINITY } = options;
  const stateMs = hasFleet(config) ? FLEET_STATE_MS : STATE_MS;
  const startedAt = performance.now();
  const lines = options.tail === true ? linesOf(config, jobIds, options) : undefined;
  const ended = new Map<JobId, Ended>();
  const isDone = () => (any ? ended.size > 0 : ended.size === jobIds.length);
  return async (jobs: FollowedJobs, { signal, served, commands = [] }: WaitContext): Promise<() => void> => {
    await requireEnds(config, jobIds, jobs);
    const unanswered = new Set(commands);
    const isOver = async (): Promise<boolean> => {
      // A state that is removed is made anew.
      if (served !== undefined && served.state.ifReadable === undefined) return false;
      for (const jobId of jobIds.filter((id) => !ended.has(id))) {
        served?.pending.get(jobId)?.renew();
        const job = await jobs.ended(jobId);
        // The mirrors of a fleet may be on other machines.
        const end = job && endOf(job, { hasMirrors: !hasFleet(config) });
        if (end === undefined) continue;
        ended.set(jobId, end);
        served?.pending.get(jobId)?.end();
      }
      if (isDone()) return true;
      for (const command of unanswered) if (await jobs.isExecuted?.(command)) unanswered.delete(command);
      const jobId = jobIds.find((id) => !ended.has(id));
      // Without a fleet, this process serves the state itself.
      if (served === undefined && jobId !== undefined && (await jobs.follower(jobId)).by === 'nobody') throw NO_AGENT;
      return false;
    };
    const tick = () => lines?.tick() ?? false;
    const isTimeUp = !(await untilOver({
      signal,
      stateMs,
      endsAt: startedAt + timeout,
      // The agent that is asked may start again.
      isOver: despiteOutages(isOver, isOfAnother(config) ? 'store' : 'fleet'),
      tick,
    }));
    if (isTimeUp && signal.aborted) throw new JobtailError('aborted', 'it was stopped');
    const waitingFor = jobIds.filter((jobId) => !ended.has(jobId));
    const missing = isTimeUp ? await missingOf(jobs, waitingFor) : '';
    return () => {
      lines?.end();
      const all = [...ended.values()];
      const exitCode = isTimeUp ? EXIT.timeIsUp : exitCodeOf(all);
      if (options.json === true) {
        process.stdout.write(jsonReport(waitReport(all, isTimeUp, waitingFor)));
      } else {
        for (const one of all) process.stdout.write(textOf(one));
        process.stderr.write(missing);
      }
      process.exitCode = exitCode;
    };
  };
}

function linesOf({ mirror }: Config, jobIds: readonly JobId[], { json }: WaitOptions): TailedMirrors {
  const output = json === true ? process.stderr : process.stdout;
  const lines = new TailedMirrors((line) => void output.write(line), { mirror, jobIds });
  lines.add((file) => startOfLastLines(file, FIRST_LINES));
  return lines;
}

async function requireEnds(config: Config, jobIds: readonly JobId[], jobs: FollowedJobs): Promise<void> {
  if (hasJobService(config.service)) return;
  for (const jobId of jobIds) {
    const job = await jobs.job(jobId);
    const settles = job === undefined ? requestOf(config, jobId).settleAfterMs : job.settleAfterMinutes;
    if (settles !== null || (job !== undefined && job.state !== 'watched')) continue;
    throw new JobtailError('config', `the end of job ${jobId} cannot be seen: there is no job service`, {
      hint: 'set service.jobsUrl, or settleAfterMinutes for the job in watch',
    });
  }
}

/** What is still to come when the time is up. */
async function missingOf(jobs: FollowedJobs, jobIds: readonly JobId[]): Promise<string> {
  let text = '';
  for (const jobId of jobIds) {
    const job = await jobs.job(jobId).catch(asJobtailError);
    text += `job ${jobId} ${whyMissing(job)}, and the time is up\n`;
  }
  return text;
}

function whyMissing(job: JobReport | JobtailError | undefined): string {
  if (job instanceof JobtailError) return `cannot be read now (${printable(job.message)})`;
  const { jobState = null, reportedAt = null, error = null } = job ?? {};
  if (phaseOf(jobState) === 'over') return `is ${showJobState(jobState)}, and its last complete pass is not done`;
  const cause = error === null ? '' : ` (last error: ${printable(error.message)})`;
  return `is not ${reportedAt === null ? 'reported yet' : 'over'}${cause}`;
}

const NO_AGENT = new JobtailError('fleet', 'no agent is running', {
  hint: 'start the agent (agent run), then run the command again',
});

/** Goes on for so long during failures of one code. @throws also other failures */
export function despiteOutages(isOver: () => Promise<boolean>, outage: ErrorCode, clock = () => performance.now()) {
  let failedSince: number | undefined;
  return async (): Promise<boolean> => {
    try {
      const is = await isOver();
      failedSince = undefined;
      return is;
    } catch (thrown) {
      const { code, message } = asJobtailError(thrown);
      if (code !== outage || clock() - (failedSince ?? clock()) >= MAX_ABSENT_MS) throw thrown;
      if (failedSince === undefined) process.stderr.write(`waiting, for two minutes at most: ${printable(message)}\n`);
      failedSince ??= clock();
      return false;
    }
  };
}

function textOf({ job, unproven }: Ended): string {
  const verified = job.files.filter((file) => file.verified).length;
  const { synced, leftOut } = job.results;
  const others = leftOut === 0 ? '' : `, ${leftOut} left out (agent status ${job.jobId})`;
  const live = `${verified} of ${countOf(job.files.length, 'live file')} verified`;
  const what = `${live}, ${countOf(synced, 'result')}${others}`;
  const reported = job.jobState === null ? undefined : showJobState(job.jobState);
  // Of a job that is not followed any more, the last report may be an old one.
  const state =
    job.state === 'settled'
      ? (reported ?? job.state)
      : `${job.state}${reported ? `, last reported as ${reported}` : ''}`;
  const lines = [
    `job ${job.jobId} is ${state}: ${what}`,
    ...failedTaskLines(job.tasks.reported),
    ...unproven.map((reason) => `  not proven: ${printable(reason)}`),
    ...hiddenResultsLines(job),
  ];
  return `${lines.join('\n')}\n`;
}
