/** The pages of `agent status`: all jobs, one job, and the agents of a fleet. */

import { withoutNextSignIn } from '../../auth.ts';
import { compareIds } from '../../job.ts';
import { MISMATCH_EVENTS } from '../../mismatch.ts';
import { countOf, showAge, showBytes, showClock, showCount } from '../../numbers.ts';
import { printable } from '../../printable.ts';
import type { JobRow, StoredError } from '../../store/rows.ts';
import { diskLines } from './disks.ts';
import { agentLines, hiddenResultsLines, hintLines, jobStateLines, searchLines, showJobState } from './job-text.ts';
import type { FleetPart, JobReport, OwnedJob, Report, ShownReport } from './status-report.ts';
import { cutToColumns, fitted, pageText, pc } from './terminal.ts';

const MAX_NAME_COLUMNS = 24;

/** Fits one screen. */
export function overview(all: ShownReport, columns: number, maxJobs = Number.POSITIVE_INFINITY): string {
  const shown = withoutPromises(all);
  const report = { ...shown, jobs: [...shown.jobs].sort(asNeeded).slice(0, maxJobs) };
  const lines = [...whoRuns(report, columns), ...agentLines(report)];
  if (report.jobs.length === 0)
    lines.push(...(report.watchMine === null ? ['no job is watched: agent watch JOB'] : []));
  else {
    const head = ['job', 'name', 'owner', 'state', 'job state', 'live files', 'last growth', 'poll age', 'results'];
    lines.push(...fitted({ head, rows: report.jobs.map(overviewRow) }, columns));
    const failing = new Map<string | undefined, JobReport[]>();
    for (const job of report.jobs) {
      const message = job.error?.message;
      failing.set(message, [...(failing.get(message) ?? []), job]);
    }
    for (const job of report.jobs)
      lines.push(...failuresOf(job, failing.get(job.error?.message) ?? []), ...hintLines(job), ...reasonLines(job));
  }
  return pageText([...lines, ...viewLines(report)], columns);
}

/** Failing jobs, then followed ones, then settled ones, the newest first. */
function asNeeded(a: JobReport, b: JobReport): number {
  const isSettled = ({ state }: JobReport) => Number(state === 'settled' || state === 'ended');
  const isWell = ({ error, stalledAt, files }: JobReport) =>
    Number(error === null && stalledAt === null && files.every((file) => file.error === null));
  const settled = isSettled(a) - isSettled(b);
  if (settled !== 0) return settled;
  const newest = isSettled(a) === 1 ? (b.grownAt ?? b.watchedAt) - (a.grownAt ?? a.watchedAt) : 0;
  return isWell(a) - isWell(b) || newest || compareIds(a.jobId, b.jobId);
}

function overviewRow(job: OwnedJob): string[] {
  const { files, tasks, owner } = job;
  const none = tasks.searching ? 'looking for tasks' : 'none';
  const live = files.length === 0 ? none : `${files.length}, ${showBytes(bytesOf(job))}${lossesOf(job)}`;
  return [
    job.jobId,
    cutToColumns(printable(job.name ?? ''), MAX_NAME_COLUMNS),
    owner === undefined ? '' : printable(owner ?? 'none'),
    ...[colouredStateOf(job), showJobState(job.jobState), live],
    ...[ageOf(job.grownAt), pollAgeOf(job), resultsOf(job)],
  ];
}

const listed = (...parts: readonly string[]) => parts.filter((part) => part !== '').join(', ');
const named = (name: string, value: string) => (value === '' ? '' : `${name} ${value}`);
const liveOf = (job: JobReport) => `${countOf(job.files.length, 'live file')}, ${showBytes(bytesOf(job))}`;
const bytesOf = ({ files }: JobReport) => files.reduce((sum, { bytes }) => sum + bytes, 0);

function colouredStateOf(job: JobReport): string {
  const isWell = job.error === null && job.files.every(({ error }) => error === null);
  const colour = !isWell ? pc.red : job.stalledAt === null ? pc.green : pc.yellow;
  return colour(stateOf(job));
}

function lossesOf({ refusedEntries }: JobReport): string {
  return refusedEntries > 0 ? pc.red(` (${refusedEntries} refused)`) : '';
}

export function progressText({ jobs }: Report): string {
  const lines = jobs.map((job) => {
    const results = job.results.directory === null ? '' : `results ${resultsOf(job)}`;
    const failure = job.error === null ? '' : printable(job.error.message);
    const live = job.files.length === 0 && job.tasks.searching ? 'looking for its tasks' : liveOf(job);
    return `job ${job.jobId}: ${listed(showJobState(job.jobState), live, `last growth ${ageOf(job.grownAt)}`, results, failure)}`;
  });
  return lines.join('; ');
}

/** A failure of several jobs is shown once, with the first of them. */
function failuresOf(job: JobReport, alike: readonly JobReport[]): string[] {
  const [file, ...others] = job.files.filter(({ error }) => error !== null);
  const more = others.length === 0 ? [] : [`    and ${countOf(others.length, 'file')} more: agent status ${job.jobId}`];
  if (job.error !== null) {
    if (alike[0] !== job) return [];
    const also = alike.length === 1 ? '' : ` and ${countOf(alike.length - 1, 'other job')}`;
    return failureLines(`job ${job.jobId}${also}: `, job.error);
  }
  if (file === undefined || file.error === null) return [];
  return [...failureLines(`job ${job.jobId}, task ${file.taskId} ${file.file}: `, file.error), ...more];
}

export function detail(all: ShownReport, columns: number, maxJobs = Number.POSITIVE_INFINITY): string {
  const report = withoutPromises(all);
  const lines = [...whoRuns(report, columns), ...agentLines(report)];
  for (const job of report.jobs.slice(0, maxJobs)) {
    const ages = [`last growth ${ageOf(job.grownAt)}`, `last poll ${ageOf(job.polledAt)}`];
    lines.push(`job ${job.jobId}: ${listed(stateOf(job), ownerText(job), ...ages, named('poll age', pollAgeOf(job)))}`);
    if (job.error !== null) lines.push(...failureLines('', job.error));
    lines.push(...jobStateLines(job), ...searchLines(job));
    if (job.refusedEntries > 0) lines.push(`  entries of responses that were not requested: ${job.refusedEntries}`);
    if (job.files.length > 0) {
      const head = ['task', 'file', 'bytes', 'generation', 'verified', 'last growth'];
      lines.push(...fitted({ head, rows: job.files.map(fileRow), numbers: ['bytes', 'generation'] }, columns));
    }
    for (const file of job.files) {
      if (file.error !== null) lines.push(...failureLines(`task ${file.taskId} ${file.file}: `, file.error));
      lines.push(...mismatchLines(file));
    }
    for (const reason of job.unproven ?? []) lines.push(pc.yellow(`not proven: ${printable(reason)}`));
    lines.push(...hiddenResultsLines(job));
    if (job.results.directory !== null) lines.push(`results: ${resultsOf(job)}`, `  in ${job.results.directory}/`);
    lines.push(...resultLines(job));
  }
  return pageText([...lines, ...viewLines(report)], columns);
}

function fileRow(file: JobReport['files'][number]): string[] {
  return [
    file.taskId,
    file.file,
    showCount(file.bytes),
    String(file.generation),
    file.verified ? 'yes' : 'not yet',
    ageOf(file.grownAt),
  ];
}

function mismatchLines({ taskId, file, mismatches }: JobReport['files'][number]): string[] {
  const last = mismatches.at(-1);
  if (last === undefined) return [];
  const event = `${MISMATCH_EVENTS[last.kind]} ${ageOf(last.seenAt)}`;
  return [`task ${taskId} ${file}: ${event}: ${printable(last.reason)} (generation ${last.generation})`];
}

function resultLines({ results }: JobReport): string[] {
  const { lastSync, transferMethod, reasons } = results;
  const lines: string[] = [];
  if (lastSync !== null) {
    const { done, wanted, bytes, endedAt, updatedAt, fallback } = lastSync;
    const when = endedAt === null ? 'now' : ageOf(updatedAt);
    const rate = lastSync.way === null ? '' : `, ${showBytes(lastSync.bytesPerSecond)}/s by ${wayOf(lastSync.way)}`;
    lines.push(`  last sync (${when}): tried ${done} of ${countOf(wanted, 'due file')}, ${showBytes(bytes)}${rate}`);
    if (fallback !== null) lines.push(pc.yellow(`  by the service, not directly: ${printable(fallback)}`));
  }
  if (transferMethod !== null && transferMethod.state !== 'ended') {
    const { state, host, askedAt, reason } = transferMethod;
    const why = reason === null ? '' : `: ${printable(reason)}`;
    lines.push(`  transfer method of ${printable(host ?? 'the service')}: ${state} since ${ageOf(askedAt)}${why}`);
  }
  for (const reason of reasons) lines.push(`  ${reasonText(reason)}`);
  return lines;
}

/** `429 failed: no space left on device (out/a.bin and others)` */
function reasonText({ state, reason, files, name }: JobReport['results']['reasons'][number]): string {
  const others = files > 1 ? ' and others' : '';
  return `${showCount(files)} ${STATES[state] ?? state}: ${printable(reason)} (${printable(name)}${others})`;
}

const STATES: Readonly<Record<string, string>> = { listed: 'waiting', 'left-out': 'left out' };

/** The most frequent reason of a failure. */
function reasonLines({ jobId, results }: JobReport): string[] {
  const [first, ...others] = results.reasons.filter(({ state }) => state === 'failed' || state === 'refused');
  if (first === undefined) return [];
  const more = others.length === 0 ? '' : `; ${countOf(others.length, 'other reason')}: agent status ${jobId}`;
  return [pc.red(`  job ${jobId}: results: ${reasonText(first)}${more}`)];
}

function failureLines(
  prefix: string,
  { message, hint, since, retryAt = 0 }: Omit<NonNullable<JobRow['error']>, 'code'>,
): string[] {
  const now = Date.now();
  const again = retryAt > now ? `, next attempt in ${showAge(retryAt - now)}, at ${showClock(retryAt)}` : '';
  const lines = [pc.red(`  ${prefix}${printable(message)} (since ${showAge(now - since)}${again})`)];
  return hint === null ? lines : [...lines, `    ${printable(hint)}`];
}

/** Without an agent, nothing is attempted again. */
function withoutPromises(report: ShownReport): ShownReport {
  const { agents, agent, jobService } = report;
  if (agents !== undefined || agent.running) return report;
  const still = <E extends StoredError | null>(error: E): E =>
    error && { ...error, retryAt: 0, message: withoutNextSignIn(error.message) };
  const jobs = report.jobs.map((job) => ({
    ...job,
    error: still(job.error),
    tasks: { ...job.tasks, nextSearchAt: null },
    files: job.files.map((file) => ({ ...file, error: still(file.error) })),
  }));
  return {
    ...report,
    jobs,
    jobService: jobService && { ...jobService, nextRequestAt: null, error: still(jobService.error) },
  };
}

function whoRuns(report: ShownReport, columns: number): string[] {
  const { agents, waitingJobs = 0 } = report;
  const decoding =
    report.decoding === 'other'
      ? ['the service does not decode UTF-8: what is not ASCII in live files comes by raw downloads']
      : [];
  const clock = (report.clock ?? []).map((line) => pc.yellow(line));
  if (agents !== undefined) return [...fleetLines({ agents, waitingJobs }, columns), ...clock, ...decoding];
  const outage = report.outage === null ? [] : failureLines('', report.outage);
  return [agentLine(report), ...outage, ...diskLines(report.disks ?? []), ...clock, ...decoding];
}

function agentLine({ agent }: Pick<ShownReport, 'agent'>): string {
  if (agent.command !== undefined)
    return pc.yellow(
      `no agent is running (agent run); a command (pid ${agent.command}) follows what commands wait for`,
    );
  if (!agent.running) return pc.yellow('no agent is running (agent run)');
  return `an agent is running${agent.pid === null ? '' : ` (pid ${agent.pid}${agent.host ?? ''})`}`;
}

function viewLines({ view = null, agent }: ShownReport): string[] {
  if (view === null || !agent.running) return [];
  if (view.answers) return [`the view is at ${view.address} (agent view prints its link)`];
  const problem = view.problem === undefined ? '' : `: ${view.problem}`;
  const silent = pc.red(`the view does not answer at ${view.address}${problem}`);
  return [`${silent} (the log of the agent has the reason)`];
}

const stateOf = ({ state, stalledAt, error }: JobReport) =>
  listed(
    state,
    stalledAt === null ? '' : `stalled for ${showAge(Date.now() - stalledAt)}`,
    error === null ? '' : 'error',
  );
const ageOf = (at: number | null) => (at === null ? 'never' : `${showAge(Date.now() - at)} ago`);

const pollAgeOf = ({ pollAgeMs }: JobReport) => (pollAgeMs === null ? '' : showAge(pollAgeMs));

function resultsOf({ results }: JobReport): string {
  const { directory, synced, listed: names, bytes, queued, inFlux, failed, refused, leftOut } = results;
  if (directory === null) return 'off';
  // Refused names are among those that the store counts as failed.
  const broken = failed - refused;
  const counted = (count: number, what: string) => (count > 0 ? `, ${count} ${what}` : '');
  const others = `${counted(queued, 'waiting')}${counted(inFlux, 'in flux')}${broken > 0 ? pc.red(counted(broken, 'failed')) : ''}${counted(refused, 'refused')}`;
  return `${synced} of ${names} (${showBytes(bytes)})${others}${counted(leftOut, 'left out')}`;
}

/** Older states have `soap`, for either protocol. */
const wayOf = (way: string) => (/^(?:service|soap)$/.test(way) ? 'the service' : printable(way));

type ShownAgent = FleetPart['agents'][number];

function fleetLines({ agents, waitingJobs }: FleetPart, columns: number): string[] {
  if (agents.length === 0) return [pc.yellow('no agent of the fleet is running (agent run)')];
  const head = ['agent', 'state', 'jobs', 'poll age', 'calls'];
  const rows = agents.map((agent) => {
    const { name, jobs, maxJobs, callsLastMinute } = agent;
    return [
      printable(name),
      agentStateOf(agent),
      `${showCount(jobs)} of ${showCount(maxJobs)}`,
      agentPollAgeOf(agent),
      `${showCount(callsLastMinute)} a minute`,
    ];
  });
  const waiting = waitingJobs === 0 ? [] : [pc.yellow(`${countOf(waitingJobs, 'job')} without an owner`)];
  return [...fitted({ head, rows }, columns), ...agents.flatMap(lackLines), ...waiting];
}

/** Why a running agent does not acquire or follow jobs. */
function lackLines({ name, state, lacks, notFollowed }: ShownAgent): string[] {
  if (state === 'gone') return [];
  const lines: string[] = [];
  if (lacks !== null) lines.push(pc.yellow(`${printable(name)} takes no jobs: ${printable(lacks)}`));
  if (notFollowed > 0)
    lines.push(pc.yellow(`${printable(name)} owns ${countOf(notFollowed, 'job')} that it does not follow`));
  return lines;
}

function agentStateOf({ state, seenAt }: ShownAgent): string {
  if (state === 'gone') return pc.red(`gone, seen ${showAge(Date.now() - seenAt)} ago`);
  return state === 'alive' ? pc.green(state) : pc.yellow(state);
}

const agentPollAgeOf = ({ pollAgeMs, state }: ShownAgent) =>
  pollAgeMs === null || state === 'gone' ? '' : showAge(pollAgeMs);

function ownerText({ owner, attempt }: OwnedJob): string {
  if (owner === undefined) return '';
  return owner === null ? 'without an owner' : `with ${printable(owner)} (attempt ${attempt ?? 0})`;
}
