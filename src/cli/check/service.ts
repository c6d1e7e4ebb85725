/** `agent check`: signs in, makes real calls, and reports the health of the server. */
import fs from 'node:fs/promises';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import * as v from 'valibot';
import { DELETED } from '../../agent/pass/deleted-jobs.ts';
import type { JobService, Remote } from '../../agent/ports/server.ts';
import type { Config } from '../../config/config.ts';
import { type Connection, connect, passingCapabilities, wayTo } from '../../daemon/connection.ts';
import { compareIds, type JobId, keyText, LIVE_FILE_NAMES, type LiveFileKey, type TaskId } from '../../job.ts';
import { isRunning, type JobInformation, phaseOf } from '../../job-information.ts';
import { countOf, showBytes } from '../../numbers.ts';
import type { Store } from '../../store/store.ts';
import { temporaryDirectory } from '../../system/directories.ts';
import { commandLog } from '../process.ts';
import { answerOf, jobsUrlBeside, jsonOf } from './description.ts';
import { type CheckStep, type Finding, note, ok, warnIf, warning } from './findings.ts';

const MAX_SHOWN_WORD = 60;
const MAX_TASKS = 16;

interface ServiceOptions {
  readonly config: Config;
  /** The job of the test call; a known one if omitted. */
  readonly job?: JobId | undefined;
  /** Its tasks; the known ones if empty. */
  readonly task: readonly TaskId[];
  readonly store: Store | undefined;
  readonly signal: AbortSignal;
}

const SIGNED_IN = {
  session: 'a session code',
  bearer: 'the token is sent with every call',
  'api-key': 'user name and password are sent with every call',
} as const;

/** The questions to the service, and what ends its connection. */
export function serviceSteps({ config, job, task, store, signal }: ServiceOptions) {
  // The directory of the agent may be missing, or belong to another user.
  const directory = temporaryDirectory('agent-check-');
  const capabilities = passingCapabilities(store?.capabilities);
  let opened: Promise<Connection> | undefined;
  const connection = () => (opened ??= connect({ ...config, state: { directory } }, commandLog(), { capabilities }));
  let jobId = job ?? config.watch[0]?.job ?? store?.jobs.all()[0]?.jobId;
  let areListed = false;
  const signIn = async () => {
    await fs.mkdir(path.join(directory, 'spill'));
    const { session } = await connection();
    const [{ kind }, ms] = await timed(session.current(signal));
    return [ok(`${SIGNED_IN[kind]}, in ${ms} ms`)];
  };
  const jobs = async () => {
    const { jobService } = await connection();
    if (jobService === null) return await checkWithoutJobs(config, signal);
    const [reported, ms] = await timed(jobService.listJobs(signal));
    areListed = true;
    jobId ??= latestOf(reported);
    return [jobsFinding(config, reported, ms)];
  };
  const call = async () => {
    const connected = await connection();
    if (jobId !== undefined) return await checkListing(connected, jobId, signal);
    return [note(`not tried: ${areListed ? NO_JOB : NO_LIST}`)];
  };
  const liveFiles = async () => {
    if (jobId === undefined) return [];
    const { remote, jobService } = await connection();
    const files = await filesOf(jobId, { config, task, store, signal }, jobService);
    return await checkLiveFiles(remote, jobId, files, signal);
  };
  const without = 'there is no way to the service';
  const needs = 'sign-in';
  const steps: CheckStep[] = [
    { name: 'sign-in', needs: 'connection', without, ask: signIn },
    { name: 'jobs', needs, ask: jobs },
    { name: 'call', needs, ask: call },
    { name: 'live files', needs: 'call', ask: liveFiles },
    { name: 'health', needs, ask: () => healthOf(config, signal) },
  ];
  const close = async () => {
    await (await opened?.catch(() => undefined))?.close();
    await fs.rm(directory, { recursive: true, force: true });
  };
  return { steps, close };
}

async function timed<T>(call: Promise<T>): Promise<readonly [T, ms: number]> {
  const startedAt = performance.now();
  return [await call, Math.round(performance.now() - startedAt)];
}

interface KnownFile extends LiveFileKey {
  readonly position: number;
}

/** The live files of a job, from the command line, the configuration, the state or the job service. */
async function filesOf(
  jobId: JobId,
  { config, task, store, signal }: ServiceOptions,
  jobService: JobService | null,
): Promise<readonly KnownFile[]> {
  const rows = store?.liveFiles.ofJob(jobId) ?? [];
  let named = task.length > 0 ? task : (config.watch.find(({ job }) => job === jobId)?.tasks ?? []);
  if (named.length === 0 && rows.length > 0) return rows;
  if (named.length === 0) {
    // Without a job service, the call itself reports the error.
    const job = await jobService?.getJob(jobId, signal).catch(() => undefined);
    named = job?.tasks.map(({ id }) => id).slice(0, MAX_TASKS) ?? [];
  }
  const positionOf = (key: LiveFileKey) => rows.find((row) => keyText(row) === keyText(key))?.position ?? 0;
  return named
    .flatMap((taskId) => LIVE_FILE_NAMES.map((file) => ({ taskId, file })))
    .map((key) => ({ ...key, position: positionOf(key) }));
}

async function checkListing({ remote }: Connection, jobId: JobId, signal: AbortSignal): Promise<Finding[]> {
  const [names, ms] = await timed(remote.listChangedFiles(jobId, signal));
  const why = names.length > 0 ? [] : [note('the job may not be submitted yet, or has no files yet')];
  return [ok(`job ${jobId} lists ${names.length} files, in ${ms} ms`), ...why];
}

async function checkLiveFiles(
  remote: Remote,
  jobId: JobId,
  files: readonly KnownFile[],
  signal: AbortSignal,
): Promise<Finding[]> {
  if (files.length === 0) return [note(`not tested: no task of job ${jobId} found (--task ID)`)];
  // Starts a little before the known end: no check needs gigabytes.
  const wanted = files.map(({ taskId, file, position }) => ({ taskId, file, offset: Math.max(0, position - 1) }));
  const { parts, refused } = await remote.readParts(jobId, wanted, signal);
  // Undecodable bytes are longer in the text.
  const sizes = parts.map((part) => `${part.taskId} ${part.file} ${showBytes(part.offset + part.content.length)}`);
  for (const { content } of parts) await content.release();
  const tasks = [...new Set(files.map(({ taskId }) => taskId))].join(', ');
  const hint = 'they are ignored; report it to the operator of the service';
  return [
    parts.length === 0
      ? note(`none of task ${tasks} yet: they appear at the first write; compare the id with agent jobs`)
      : ok(`${parts.length} of ${files.length} are there, as text: ${sizes.join(', ')}`),
    ...warnIf(refused > 0, `${refused} entries that were not requested`, hint),
  ];
}

const NO_LIST = 'the jobs of the user cannot be listed: name one with --job ID';
const NO_JOB = 'the user has no job with files yet: submit one, then run agent check again, or name one with --job ID';
const BY_FILES = 'tasks are found by probes for their files, and job states are not reported';

function jobsFinding({ service }: Config, jobs: readonly JobInformation[], ms: number): Finding {
  const running = jobs.filter(({ state }) => isRunning(state)).length;
  const who = service.protocol === 'soap' ? 'JobManagementWs' : 'JobManagement of REST, with nothing to configure,';
  const counts = `${countOf(jobs.length, 'job')}, ${running} of them running, in ${ms} ms`;
  return ok(`${who} reports ${counts}: tasks and job states come from it`);
}

/** The job whose files are the most likely to be there: a running one, else one that is over. */
function latestOf(jobs: readonly JobInformation[]): JobId | undefined {
  const latest = [...jobs].sort((a, b) => compareIds(b.id, a.id));
  const isOver = ({ state }: JobInformation) => phaseOf(state) === 'over' && state !== DELETED;
  return (latest.find(({ state }) => isRunning(state)) ?? latest.find(isOver))?.id;
}

async function checkWithoutJobs({ service, ...config }: Config, signal: AbortSignal): Promise<Finding[]> {
  const way = await wayTo({ ...config, service });
  const found = service.protocol === 'soap' ? await jobsUrlBeside(service, signal, way) : undefined;
  if (found !== undefined)
    return [{ ...note(BY_FILES), hint: `JobManagementWs answers: set service.jobsUrl to ${found}` }];
  const hint = 'set service.jobsUrl to the address of JobManagementWs, if there is one';
  return [{ ...note(`${BY_FILES}: a job ends by agent unwatch, or after settleAfterMinutes`), hint }];
}

const UNHEALTHY = v.object({ IsHealthy: v.literal(false) });
const HEALTH = v.object({
  IsHealthy: v.boolean(),
  Component: v.nullish(v.record(v.string(), v.unknown())),
});

/** Releases before V6.0 have no such page. */
export async function healthOf(config: Config, signal: AbortSignal): Promise<Finding[]> {
  const { service } = config;
  if (service.protocol !== 'rest') return [];
  const answer = await answerOf(`${service.baseUrl}${service.path}/Health`, signal, await wayTo(config));
  const { success, output } = v.safeParse(HEALTH, answer && jsonOf(answer.text));
  if (!success) return [note('not reported by this server (V6.0 and later have a page for it)')];
  if (output.IsHealthy) return [ok('the server reports that it is healthy')];
  const parts = Object.entries(output.Component ?? {}).filter(([, part]) => v.is(UNHEALTHY, part));
  const names = parts.map(([name]) => name.slice(0, MAX_SHOWN_WORD)).join(', ');
  const what = names === '' ? '' : `: ${names}`;
  return [warning(`the server reports that it is not healthy${what}`, 'ask its operator')];
}
