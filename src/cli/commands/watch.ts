/** `agent watch JOB`: registers a job, and prints the paths of its mirrors. */
import { type Config, hasFleet, hasJobService } from '../../config/config.ts';
import { makeDirectories, withStore } from '../../daemon/own-state.ts';
import { JobtailError } from '../../errors.ts';
import { type JobId, LIVE_FILE_NAMES, type LiveFileName, type TaskId } from '../../job.ts';
import { jsonReport } from '../../json-report.ts';
import { printable } from '../../printable.ts';
import { runningAgent } from '../../store/lock.ts';
import type { WatchRequest } from '../../store/rows.ts';
import { askSocket, isOfAnother, requireOwner } from '../agent-socket.ts';
import { configurationAsOwner, type JsonOption } from '../configuration.ts';
import { withJobs } from '../followed-jobs.ts';
import { type NamedJob, requireJob } from '../job-service.ts';
import { commandLog, forEach, untilStopped } from '../process.ts';
import { firstPaths, pathsOf, type Registered, register, type WatchReport, watchReport } from '../register.ts';
import { searchLines } from '../show/job-text.ts';
import { reportOf } from '../show/status-report.ts';
import { forStderr } from '../show/terminal.ts';
import { followerOf, NOT_FOLLOWED } from '../stored-jobs.ts';

interface WatchOptions extends JsonOption {
  readonly task: readonly TaskId[];
  readonly file: readonly LiveFileName[];
  readonly results: boolean;
  readonly wait: boolean;
  readonly foreground?: boolean;
  /** With `foreground`. */
  readonly lines?: number;
  readonly quiet?: boolean;
  /** In milliseconds. */
  readonly stallAfter?: number;
}

/** Limit for all that the command waits for: whether there is such a job, its tasks, and its mirrors. */
export const WAITS_MS = 10_000;
const FIRST_LINES = 10;
/** On a terminal. */
const MAX_SHOWN_PATHS = 8;
/** Jobs that wait for the running agent at a time. */
const PLACES = 8;

export async function watchEach(jobIds: readonly JobId[], options: WatchOptions): Promise<void> {
  if (options.lines !== undefined && options.foreground !== true)
    throw new JobtailError('usage', '--lines is for --foreground', { hint: 'agent tail -n prints the last lines' });
  const config = await configurationAsOwner(options);
  const isAnswered = !hasFleet(config) && runningAgent(config.state.directory) !== undefined;
  await forEach(jobIds, (jobId, signal) => watch(config, jobId, options, signal), isAnswered ? PLACES : 1);
}

async function watch(config: Config, jobId: JobId, options: WatchOptions, signal: AbortSignal): Promise<void> {
  const wait = { endsAt: performance.now() + WAITS_MS, signal };
  const request: WatchRequest = {
    jobId,
    tasks: options.task.length > 0 ? [...new Set(options.task)] : null,
    files: options.file.length > 0 ? [...new Set(options.file)] : LIVE_FILE_NAMES,
    results: options.results && config.results.enabled,
    settleAfterMs: null,
    ...(options.stallAfter === undefined ? {} : { stallAfterMs: options.stallAfter }),
    source: 'command',
  };
  if (options.foreground === true && (hasFleet(config) || isOfAnother(config))) {
    const whose = hasFleet(config) ? 'not for an agent of a fleet' : 'for the user of the agent';
    throw new JobtailError('usage', `--foreground is ${whose}`, {
      hint: `run agent watch ${jobId}, then agent tail ${jobId} -f`,
    });
  }
  if (isOfAnother(config)) return await watchByAgent(config, request, options, signal);
  await refuseNoJob(config, request);
  if (hasFleet(config)) {
    const fleet = await import('../fleet/commands.ts');
    await fleet.watchByFleet(
      config,
      { request, waitsForTasks: options.wait && request.tasks === null },
      signal,
      (store, note, wasSettled) => {
        const registered = { config, store, request, wasSettled, isFollowed: true };
        printRegistered(pathsOf(registered), registered, note, options);
      },
    );
    return;
  }
  requireOwner(config);
  makeDirectories(config);
  if (options.foreground === true)
    return (await import('./watch-foreground.ts')).watchHere(config, request, options.lines ?? FIRST_LINES);
  await withStore(config, commandLog(), async (store, owned) => {
    const wasSettled = store.jobs.get(jobId)?.state === 'settled';
    register(store, request);
    const follower = owned === undefined ? followerOf(config, store, jobId) : NOT_FOLLOWED;
    const isFollowed = follower.by !== 'nobody';
    const registered: Registered = { config, store, request, wasSettled, isFollowed };
    const paths = isFollowed ? await firstPaths(registered, { ...wait, waits: options.wait }) : pathsOf(registered);
    if (!isFollowed) {
      const { Mirror } = await import('../../agent/live/mirror/mirror.ts');
      for (const file of paths) await (await Mirror.open(config.mirror.directory, file)).close();
    }
    printRegistered(paths, registered, follower.text, options);
  });
}

/** By the agent of another user. */
async function watchByAgent(config: Config, request: WatchRequest, options: WatchOptions, signal: AbortSignal) {
  const { stallAfter } = options;
  const { jobId, tasks, files, results } = request;
  const body = { jobId, tasks, files, results, stallAfterMinutes: stallAfter && stallAfter / 60_000 };
  const report = await askSocket<WatchReport>(config, { path: 'jobs', method: 'POST', body, signal });
  print(report, { note: 'the running agent follows it' }, options);
}

/** A job that was followed before is not checked again, unless tasks are named. @throws JobtailError as `requireJob` */
export async function refuseNoJob(config: Config, wanted: NamedJob): Promise<void> {
  const isKnown =
    wanted.tasks === null && (await withJobs(config, (jobs) => jobs.job(wanted.jobId)).catch(() => undefined));
  if (!isKnown) await untilStopped((signal) => requireJob(config, wanted, signal));
}

function printRegistered(paths: readonly string[], registered: Registered, note: string, options: WatchOptions): void {
  print(watchReport(registered, paths), { note, ...registered, search: searchOf(registered) }, options);
}

interface Notes {
  readonly note: string;
  readonly wasSettled?: boolean;
  readonly search?: readonly string[];
}

/** Paths go to the standard output, for programs; the rest to the standard error. */
function print(report: WatchReport, { note, wasSettled, search = [] }: Notes, { json, quiet }: WatchOptions): void {
  const { jobId, results, files } = report;
  if (json === true) return void process.stdout.write(jsonReport(report));
  const { isTTY } = process.stdout;
  const shown = isTTY ? files.slice(0, MAX_SHOWN_PATHS) : files;
  for (const file of shown) process.stdout.write(`${isTTY ? shellWord(file) : file}\n`);
  if (shown.length < files.length) process.stdout.write(`... and ${files.length - shown.length} more\n`);
  if (quiet === true) return;
  const again = wasSettled === true ? ' was settled, and is watched again until it settles anew' : ' is watched';
  const lines = [`job ${jobId}${again}; ${note}`];
  if (results !== null) lines.push(`results go to ${results}/`);
  lines.push(...search);
  if (files.length > 0) lines.push(`see them grow: agent tail ${jobId} -f, or tail -F with a path from above`);
  process.stderr.write(forStderr(`${lines.join('\n')}\n`));
}

function searchOf({ config, store, isFollowed, request: { jobId, tasks } }: Registered): string[] {
  const [job] = reportOf(config, store, [jobId]).jobs;
  if (job === undefined || tasks !== null) return [];
  const error = job.error === null ? [] : [`it fails: ${printable(job.error.message)}`];
  if (job.tasks.found > 0) return [...error, ...searchLines(job)];
  // Nothing was searched yet, and the middleware reports the tasks.
  if (isFollowed !== true && hasJobService(config.service)) return error;
  const better = hasJobService(config.service) ? '' : ', or set service.jobsUrl (agent check proposes one)';
  const advice = `agent status ${jobId} shows the found tasks; to name one: agent watch ${jobId} --task ID${better}`;
  return [...error, ...searchLines(job), advice];
}

/** A path quoted for a shell, to be pasted after `tail -F`. */
const shellWord = (file: string) => (/^[\w./,:@%+=-]+$/.test(file) ? file : `'${file.replaceAll("'", "'\\''")}'`);
