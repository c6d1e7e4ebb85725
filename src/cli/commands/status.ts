/** `agent status`: what is followed and how it stands. */
import path from 'node:path';
import Table from 'cli-table3';
import pc from 'picocolors';
import { mirrorPath } from '../../agent/mirror.ts';
import { printable } from '../../agent/names.ts';
import { resultsDirectory } from '../../agent/results.ts';
import type { Config } from '../../config/config.ts';
import { compareIds, type JobId, LIVE_FILE_NAMES } from '../../job.ts';
import { lockHolder } from '../../store/lock.ts';
import type { JobRow, LiveFileRow, ResultRow } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import { openSharedStore } from '../compose.ts';
import { type ConfigOption, configurationOf } from '../configuration.ts';
import { requireWatched } from '../passes.ts';
import { countOf, showAge, showBytes } from '../show.ts';

export async function status(
  jobId: JobId | undefined,
  options: ConfigOption & { readonly json?: boolean },
): Promise<void> {
  const config = await configurationOf(options);
  const store = openSharedStore(config);
  try {
    if (jobId !== undefined) requireWatched(store, jobId);
    const report = reportOf(config, store, jobId);
    if (options.json === true) process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
    else process.stdout.write(jobId === undefined ? overview(report) : detail(report));
  } finally {
    store.close();
  }
}

type Report = ReturnType<typeof reportOf>;
type JobReport = Report['jobs'][number];

/** The contract of `--json`: keys are added, never taken away, while the version is 1. */
function reportOf(config: Config, store: Store, only: JobId | undefined) {
  const pid = lockHolder(config.state.directory);
  const jobs = store.jobs
    .all()
    .filter((job) =>
      only === undefined
        ? job.state === 'watched' || job.state === 'ending' || job.state === 'settled'
        : job.jobId === only,
    )
    .sort((a, b) => compareIds(a.jobId, b.jobId));
  return {
    version: 1,
    agent: { running: pid !== undefined, pid: pid ?? null },
    jobs: jobs.map((job) => jobReport(config, store, job, only !== undefined)),
  };
}

function jobReport(config: Config, store: Store, job: JobRow, whole: boolean) {
  const { directory } = config.mirror;
  const files = store.liveFiles
    .ofJob(job.jobId)
    .sort(
      (a, b) => compareIds(a.taskId, b.taskId) || LIVE_FILE_NAMES.indexOf(a.file) - LIVE_FILE_NAMES.indexOf(b.file),
    );
  const troubled = whole ? store.results.ofJob(job.jobId).filter((row) => row.reason !== null) : [];
  return {
    jobId: job.jobId,
    state: job.state,
    error: job.error,
    source: job.source,
    watchedAt: job.watchedAt,
    polledAt: job.polledAt,
    grownAt: job.grownAt,
    failures: job.failures,
    refusedEntries: job.refused,
    files: files.map((row) => fileReport(directory, store, row)),
    results: {
      ...store.results.counts(job.jobId),
      directory: job.results ? resultsDirectory(directory, job.jobId) : null,
      notSynced: troubled.map(({ name, state, reason }: ResultRow) => ({ name, state, reason })),
    },
  };
}

function fileReport(mirrorDirectory: string, store: Store, row: LiveFileRow) {
  const inexact = store.liveFiles.inexactRegions(row.jobId, row);
  return {
    taskId: row.taskId,
    file: row.file,
    path: path.resolve(mirrorPath(mirrorDirectory, row.jobId, row)),
    bytes: row.position,
    generation: row.generation,
    exact: inexact.length === 0,
    inexactBytes: inexact.reduce((sum, { length }) => sum + length, 0),
    verified: row.verified !== null && row.verified === row.position,
    grownAt: row.grownAt,
    error: row.error,
  };
}

function overview(report: Report): string {
  const lines = [agentLine(report)];
  if (report.jobs.length === 0) lines.push('no job is watched: agent watch JOB --task ID');
  else {
    const table = new Table({
      head: ['job', 'state', 'live files', 'last growth', 'results', 'trouble'],
      style: plainStyle(),
    });
    for (const job of report.jobs) table.push(overviewRow(job));
    lines.push(table.toString());
  }
  return `${lines.join('\n')}\n`;
}

function overviewRow(job: JobReport): string[] {
  const bytes = job.files.reduce((sum, file) => sum + file.bytes, 0);
  const wrong = job.error ?? job.files.find((file) => file.error !== null)?.error ?? null;
  return [
    job.jobId,
    stateOf(job),
    `${job.files.length}, ${showBytes(bytes)}`,
    ageOf(job.grownAt),
    job.results.directory === null ? 'off' : resultsOf(job),
    wrong === null ? '' : pc.red(`${wrong.code}: agent status ${job.jobId}`),
  ];
}

function detail(report: Report): string {
  const lines = [agentLine(report)];
  for (const job of report.jobs) {
    lines.push(
      `job ${job.jobId}: ${stateOf(job)}, last growth ${ageOf(job.grownAt)}, last poll ${ageOf(job.polledAt)}`,
    );
    if (job.error !== null) lines.push(...troubleLines('', job.error));
    if (job.refusedEntries > 0) lines.push(`  ${countOf(job.refusedEntries, 'entry')} of answers refused`);
    const table = new Table({
      head: ['task', 'file', 'bytes', 'generation', 'exact', 'last growth'],
      style: plainStyle(),
    });
    for (const file of job.files) {
      const exact = file.exact ? (file.verified ? 'verified' : 'yes') : pc.red(`no: ${showBytes(file.inexactBytes)}`);
      table.push([file.taskId, file.file, String(file.bytes), String(file.generation), exact, ageOf(file.grownAt)]);
    }
    if (job.files.length > 0) lines.push(table.toString());
    for (const file of job.files) {
      if (file.error !== null) lines.push(...troubleLines(`task ${file.taskId} ${file.file}: `, file.error));
    }
    if (job.results.directory !== null) lines.push(`results: ${resultsOf(job)} in ${job.results.directory}/`);
    for (const { name, state, reason } of job.results.notSynced)
      lines.push(`  ${printable(name)}: ${state}: ${reason}`);
  }
  return `${lines.join('\n')}\n`;
}

function troubleLines(prefix: string, { message, hint, since }: NonNullable<JobRow['error']>): string[] {
  const lines = [pc.red(`  ${prefix}${message} (since ${showAge(Date.now() - since)})`)];
  return hint === null ? lines : [...lines, `    ${hint}`];
}

function agentLine({ agent }: Report): string {
  if (!agent.running) return pc.yellow('no agent is running (agent run)');
  return `an agent is running${agent.pid === null ? '' : ` (pid ${agent.pid})`}`;
}

const stateOf = (job: JobReport) => (job.error === null ? job.state : `${job.state}, failing`);
const ageOf = (at: number | null) => (at === null ? 'never' : `${showAge(Date.now() - at)} ago`);

function resultsOf({ results }: JobReport): string {
  const failed = results.failed > 0 ? pc.red(`, ${results.failed} failed`) : '';
  const leftOut = results.leftOut > 0 ? `, ${results.leftOut} left out` : '';
  return `${results.synced} of ${results.listed} (${showBytes(results.bytes)})${failed}${leftOut}`;
}

/** Colours only where the terminal wants them. */
const plainStyle = () => (pc.isColorSupported ? { head: ['bold'], border: ['gray'] } : { head: [], border: [] });
