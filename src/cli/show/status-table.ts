/** How everything that is followed stands, for people: wide and narrow terminals, with colours and without. */
import Table from 'cli-table3';
import pc from 'picocolors';
import stringWidth from 'string-width';
import { countOf, showAge, showBytes, showClock, showCount } from '../../numbers.ts';
import { printable } from '../../printable.ts';
import type { JobRow } from '../../store/rows.ts';
import type { JobReport, Report } from './status-report.ts';
import { wrapToColumns } from './terminal-text.ts';

/** No lines between the rows of a table, except below its head: many files fit on one screen. */
const BETWEEN_ROWS = { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' };
/** Results with a reason that get a line. */
const MOST_LINES = 20;

/** One screen for all jobs. `columns` is the width of the terminal, Infinity for none. */
export function overview(report: Report, columns: number): string {
  const lines = [agentLine(report)];
  if (report.jobs.length === 0) lines.push('no job is watched: agent watch JOB --task ID');
  else {
    const head = ['job', 'state', 'live files', 'last growth', 'lag', 'results'];
    const narrow = () => report.jobs.flatMap(overviewLines);
    lines.push(...fitted({ head, rows: report.jobs.map(overviewRow), narrow }, columns));
    for (const job of report.jobs) lines.push(...troublesOf(job));
  }
  return text(lines, columns);
}

function overviewRow(job: JobReport): string[] {
  const { files, results } = job;
  return [
    job.jobId,
    colouredStateOf(job),
    files.length === 0 ? 'none' : `${files.length}, ${showBytes(bytesOf(job))}${lossesOf(job)}`,
    ageOf(job.grownAt),
    lagOf(job),
    results.directory === null ? 'off' : resultsOf(job),
  ];
}

/** The same where there is no room for a table. */
function overviewLines(job: JobReport): string[] {
  const lag = lagOf(job);
  const live = `${countOf(job.files.length, 'live file')}, ${showBytes(bytesOf(job))}${lossesOf(job)}`;
  return [
    `${pc.bold(job.jobId)} ${colouredStateOf(job)}`,
    `  ${live}`,
    `  last growth ${ageOf(job.grownAt)}${lag === '' ? '' : `, lag ${lag}`}`,
    `  results ${job.results.directory === null ? 'off' : resultsOf(job)}`,
  ];
}

const bytesOf = ({ files }: JobReport) => files.reduce((sum, { bytes }) => sum + bytes, 0);

function colouredStateOf(job: JobReport): string {
  const isWell = job.error === null && job.files.every(({ error }) => error === null);
  return (isWell ? pc.green : pc.red)(stateOf(job));
}

/** What of the mirrors is not as it should be. */
function lossesOf({ files, refusedEntries }: JobReport): string {
  const inexact = files.reduce((sum, file) => sum + file.inexactBytes, 0);
  const said = [
    ...(inexact > 0 ? [`${showBytes(inexact)} inexact`] : []),
    ...(refusedEntries > 0 ? [`${refusedEntries} refused`] : []),
  ];
  return said.length === 0 ? '' : pc.red(` (${said.join(', ')})`);
}

/** One line for the jobs of a report, while they are followed. */
export function progressText({ jobs }: Report): string {
  return jobs
    .map((job) => {
      const results = job.results.directory === null ? '' : `, results ${resultsOf(job)}`;
      const trouble = job.error === null ? '' : `, ${printable(job.error.message)}`;
      const live = `${countOf(job.files.length, 'live file')}, ${showBytes(bytesOf(job))}, last growth ${ageOf(job.grownAt)}`;
      return `job ${job.jobId}: ${live}${results}${trouble}`;
    })
    .join('; ');
}

/** The first trouble of a job, with what to do; the page of the job has all of them. */
function troublesOf(job: JobReport): string[] {
  const [file, ...others] = job.files.filter(({ error }) => error !== null);
  const more = others.length === 0 ? [] : [`    and ${countOf(others.length, 'file')} more: agent status ${job.jobId}`];
  if (job.error !== null) return troubleLines(`job ${job.jobId}: `, job.error);
  if (file === undefined || file.error === null) return [];
  return [...troubleLines(`job ${job.jobId}, task ${file.taskId} ${file.file}: `, file.error), ...more];
}

/** One screen for one job. */
export function detail(report: Report, columns: number): string {
  const lines = [agentLine(report)];
  for (const job of report.jobs) {
    const lag = lagOf(job);
    const stands = [stateOf(job), `last growth ${ageOf(job.grownAt)}`, `last poll ${ageOf(job.polledAt)}`];
    lines.push(`job ${job.jobId}: ${[...stands, ...(lag === '' ? [] : [`lag ${lag}`])].join(', ')}`);
    if (job.error !== null) lines.push(...troubleLines('', job.error));
    if (job.refusedEntries > 0) lines.push(`  entries of answers that nobody asked for: ${job.refusedEntries}`);
    if (job.files.length > 0) {
      const head = ['task', 'file', 'bytes', 'generation', 'exact', 'last growth'];
      const narrow = () => job.files.flatMap(fileLines);
      lines.push(...fitted({ head, rows: job.files.map(fileRow), numbers: ['bytes', 'generation'], narrow }, columns));
    }
    for (const file of job.files) {
      if (file.error !== null) lines.push(...troubleLines(`task ${file.taskId} ${file.file}: `, file.error));
    }
    if (job.results.directory !== null) {
      lines.push(`results: ${resultsOf(job)}`, `  in ${job.results.directory}/`);
    }
    lines.push(...resultLines(job));
  }
  return text(lines, columns);
}

function fileRow(file: JobReport['files'][number]): string[] {
  const exact = file.exact ? (file.verified ? 'verified' : 'yes') : pc.red(`no: ${showBytes(file.inexactBytes)}`);
  return [file.taskId, file.file, showCount(file.bytes), String(file.generation), exact, ageOf(file.grownAt)];
}

function fileLines(file: JobReport['files'][number]): string[] {
  const said = [
    showBytes(file.bytes),
    ...(file.generation > 1 ? [`generation ${file.generation}`] : []),
    ...(file.exact ? (file.verified ? ['verified'] : []) : [pc.red(`${showBytes(file.inexactBytes)} inexact`)]),
    ageOf(file.grownAt),
  ];
  return [`${pc.bold(`${file.taskId} ${file.file}`)} ${said.join(', ')}`];
}

function resultLines({ results }: JobReport): string[] {
  const { lastLook, transferMethod, notSynced, failed, leftOut } = results;
  const lines: string[] = [];
  if (lastLook !== null) {
    const { done, wanted, bytes, endedAt, updatedAt, fallback } = lastLook;
    const when = endedAt === null ? 'now' : ageOf(updatedAt);
    const rate = `${showBytes(lastLook.bytesPerSecond)}/s by ${lastLook.way ?? 'nothing'}`;
    lines.push(`  last look (${when}): ${done} of ${wanted} files that were due, ${showBytes(bytes)}, ${rate}`);
    if (fallback !== null) lines.push(pc.yellow(`  by SOAP, not directly: ${printable(fallback)}`));
  }
  if (transferMethod !== null && transferMethod.state !== 'ended') {
    const { state, host, askedAt, reason } = transferMethod;
    const why = reason === null ? '' : `: ${printable(reason)}`;
    lines.push(`  transfer method of ${printable(host ?? 'the service')}: ${state} since ${ageOf(askedAt)}${why}`);
  }
  for (const { name, state, reason } of notSynced.slice(0, MOST_LINES))
    lines.push(`  ${printable(name)}: ${state}: ${printable(reason ?? '')}`);
  const more = Math.max(notSynced.length, failed + leftOut) - MOST_LINES;
  if (more > 0) lines.push(`  ... and ${showCount(more)} more (agent status JOB --json names some of each kind)`);
  return lines;
}

function troubleLines(prefix: string, { message, hint, since, retryAt = 0 }: NonNullable<JobRow['error']>): string[] {
  const now = Date.now();
  const again = retryAt > now ? `, tried again in ${showAge(retryAt - now)}, at ${showClock(retryAt)}` : '';
  const lines = [pc.red(`  ${prefix}${printable(message)} (since ${showAge(now - since)}${again})`)];
  return hint === null ? lines : [...lines, `    ${printable(hint)}`];
}

interface Fitted {
  readonly head: readonly string[];
  readonly rows: readonly string[][];
  /** Columns that stand right. */
  readonly numbers?: readonly string[];
  /** What is shown instead where the table has no room. */
  readonly narrow: () => readonly string[];
}

function fitted({ head, rows, numbers = [], narrow }: Fitted, columns: number): readonly string[] {
  const colAligns = head.map((name) => (numbers.includes(name) ? 'right' : 'left'));
  const table = new Table({ head: [...head], style: plainStyle(), chars: BETWEEN_ROWS, colAligns });
  table.push(...rows);
  const lines = table.toString().split('\n');
  const below = lines[0]?.replace('┌', '├').replace('┐', '┤').replaceAll('┬', '┼') ?? '';
  lines.splice(2, 0, below);
  return stringWidth(lines[0] ?? '') <= columns ? lines : narrow();
}

const text = (lines: readonly string[], columns: number) =>
  `${lines.flatMap((line) => (isOfTable(line) ? [line] : wrapToColumns(line, columns))).join('\n')}\n`;

const isOfTable = (line: string) => /[─│]/.test(line);

function agentLine({ agent }: Report): string {
  if (!agent.running) return pc.yellow('no agent is running (agent run)');
  return `an agent is running${agent.pid === null ? '' : ` (pid ${agent.pid})`}`;
}

const stateOf = (job: JobReport) => (job.error === null ? job.state : `${job.state}, failing`);
const ageOf = (at: number | null) => (at === null ? 'never' : `${showAge(Date.now() - at)} ago`);

const lagOf = ({ lagMs }: JobReport) => (lagMs === null ? '' : showAge(lagMs));

function resultsOf({ results }: JobReport): string {
  const failed = results.failed > 0 ? pc.red(`, ${results.failed} failed`) : '';
  const leftOut = results.leftOut > 0 ? `, ${results.leftOut} left out` : '';
  const queued = results.queued > 0 ? `, ${results.queued} waiting` : '';
  const inFlux = results.inFlux > 0 ? `, ${results.inFlux} in flux` : '';
  return `${results.synced} of ${results.listed} (${showBytes(results.bytes)})${queued}${inFlux}${failed}${leftOut}`;
}

/** Colours only where the terminal wants them. */
const plainStyle = () => (pc.isColorSupported ? { head: ['bold'], border: ['gray'] } : { head: [], border: [] });
