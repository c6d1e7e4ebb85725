/** Reports of the middleware about jobs, and the search for their tasks, for people. */

import { withoutNextSignIn } from '../../auth.ts';
import { EARLY_START_HINT, type JobTime, phaseOf, type ShownTask, startedEarlyMs } from '../../job-information.ts';
import { countOf, showAge, showCount } from '../../numbers.ts';
import { printable } from '../../printable.ts';
import { NOTHING_LISTED } from '../../proven.ts';
import type { JobReport, Report } from './status-report.ts';
import { cutToColumns, pc } from './terminal.ts';

const MAX_STATE_COLUMNS = 32;
const MAX_TASKS = 20;

const WAYS: Readonly<Record<NonNullable<JobReport['tasks']['by']>, string>> = {
  named: 'named by the command',
  'job-service': 'reported by the middleware',
  probes: 'found by probes for their files',
};

/** `2026-03-01 12:00:00`, local time; a time without a zone is unchanged. */
export function showTime({ text, ms }: JobTime): string {
  if (ms === null) return printable(text.replace('T', ' ').replace(/\.\d+$/, ''));
  const local = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 19).replace('T', ' ');
}

export function showJobState(jobState: string | null): string {
  const word = cutToColumns(printable(jobState ?? ''), MAX_STATE_COLUMNS);
  if (jobState === 'Failed' || jobState === 'Canceled' || jobState === 'Deleted') return pc.red(word);
  return phaseOf(jobState) === 'active' ? pc.green(word) : word;
}

export function taskLine({ taskId, name, taskState, errorMessage }: ShownTask): string {
  const named = name === null || name === '' ? '' : ` (${printable(name)})`;
  const why = hasMessage(errorMessage) ? pc.red(`: ${printable(errorMessage)}`) : '';
  const state = taskState === null ? '' : ` ${showJobState(taskState)}`;
  return `task ${taskId}${named}${state}${why}`;
}

const hasMessage = (message: string | null): message is string => message !== null && message.trim() !== '';

export const failedTasks = (tasks: readonly ShownTask[]) =>
  tasks.filter(({ errorMessage }) => hasMessage(errorMessage));

const MAX_FAILED = 5;

/** Of the first tasks with a message. */
export const failedTaskLines = (tasks: readonly ShownTask[]): string[] =>
  failedTasks(tasks)
    .slice(0, MAX_FAILED)
    .map((task) => `  ${taskLine(task)}`);

export function jobStateLines(job: JobReport): string[] {
  const { reportedAt, jobState, jobStateSince } = job;
  if (reportedAt === null) return [];
  const since = jobStateSince === null ? '' : ` (first seen ${showAge(Date.now() - jobStateSince)} ago)`;
  const state = jobState === null ? 'no state is reported' : `${showJobState(jobState)}${since}`;
  const name = job.name === null || job.name === '' ? '' : `"${printable(job.name)}": `;
  const times = [
    ['submitted', job.submitTime],
    ['started', job.startTime],
    ['ended', job.endTime],
  ] as const;
  const shown = times.flatMap(([what, time]) => (time === null ? [] : [`${what} ${showTime(time)}`]));
  const lost = job.files.filter(({ verified }) => !verified).length;
  const deleted =
    jobState === 'Deleted'
      ? [`  deleted on the server: local files are kept, ${countOf(lost, 'live file')} not verified`]
      : [];
  const earlyMs = startedEarlyMs(job);
  const early =
    earlyMs > 0 ? [pc.yellow(`  started ${showAge(earlyMs)} before its submission: ${EARLY_START_HINT}`)] : [];
  return [`  ${[`${name}${state}`, ...shown].join(', ')}`, ...early, ...deleted, ...taskLines(job)];
}

/** Tasks with a message first; the others only if they are few. */
function taskLines({ tasks }: JobReport): string[] {
  const failed = failedTasks(tasks.reported);
  const others = tasks.reported.filter((task) => !failed.includes(task));
  const shown = [...failed, ...others].slice(0, MAX_TASKS);
  const more = tasks.reported.length - shown.length;
  const lines = shown.map((task) => `  ${taskLine(task)}`);
  return more > 0 ? [...lines, `  ... and ${showCount(more)} tasks more (agent status JOB --json)`] : lines;
}

export function searchLines({ tasks }: JobReport): string[] {
  const { found, by, searching, nextSearchAt, hint } = tasks;
  if (by === 'named') return [];
  const how = by === null ? '' : `, ${WAYS[by]}`;
  const next = nextSearchAt === null ? '' : `, next probe ${inTime(nextSearchAt)}`;
  const what = searching ? `; probes search for ${found === 0 ? 'them' : 'others'}${next}` : '';
  const line = `tasks: ${found === 0 ? 'none is known yet' : `${showCount(found)}${how}`}${what}`;
  return hint === null ? [line] : [line, `  ${pc.yellow(printable(hint))}`];
}

export function hintLines(job: JobReport): string[] {
  const { jobId, tasks, unproven } = job;
  const hints = tasks.hint === null ? [] : [`cannot find tasks: ${printable(tasks.hint)}`];
  if (unproven?.includes(NOTHING_LISTED) === true) hints.push(`${NOTHING_LISTED}: agent status ${jobId}`);
  return hints.map((hint) => pc.yellow(`  job ${jobId}: ${hint}`));
}

/** Why nothing is listed: a listing leaves out what is older than the submission (docs/results.md). */
export function hiddenResultsLines({ jobId, unproven }: JobReport): string[] {
  if (unproven?.includes(NOTHING_LISTED) !== true) return [];
  return [
    '    it lists no file that is older than the submission, by its clock and time zone',
    `    if the cluster offers SSH, agent verify --complete ${jobId} names them`,
  ];
}

const LATE_MS = 5 * 60_000;

export function agentLines({
  jobService,
  watchMine,
  notify,
  outage,
}: Pick<Report, 'jobService' | 'watchMine' | 'notify' | 'outage'>): string[] {
  const lines: string[] = [];
  if (watchMine !== null) {
    const { following, waiting, maxJobs } = watchMine;
    const others = waiting > 0 ? `, ${showCount(waiting)} wait (${showCount(maxJobs)} at a time)` : '';
    const nextAt = jobService?.nextRequestAt ?? null;
    const next = nextAt === null ? '' : `; the next list of jobs is due ${inTime(nextAt)}`;
    lines.push(`following all jobs of the user: ${countOf(following, 'job')} now${others}${next}`);
  }
  const error = jobService?.error ?? null;
  if (error !== null && outage?.message.includes(withoutNextSignIn(error.message)) !== true) {
    lines.push(
      pc.red(`job states are not reported: ${printable(error.message)} (since ${showAge(Date.now() - error.since)})`),
    );
    if (error.hint !== null) lines.push(`  ${printable(error.hint)}`);
  }
  const { waiting, givenUp, oldestAt } = notify;
  const isLate = oldestAt !== null && Date.now() - oldestAt > LATE_MS;
  const late = isLate
    ? `${countOf(waiting, 'notification')} waiting, the oldest for ${showAge(Date.now() - oldestAt)}`
    : '';
  const lost = givenUp > 0 ? `${countOf(givenUp, 'notification')} given up` : '';
  const text = [late, lost].filter((part) => part !== '').join(', ');
  if (text !== '') lines.push(pc.red(`${text} (agent notify --list)`));
  return lines;
}

const inTime = (at: number) => (at <= Date.now() ? 'now' : `in ${showAge(at - Date.now())}`);

type ReportedJob = Pick<JobReport, 'jobId' | 'jobState'> & { readonly tasks: Pick<JobReport['tasks'], 'reported'> };

/** Returns lines about changes of the job state since the last call. */
export function jobStateChanges(): (job: ReportedJob | undefined) => string {
  let shown: string | null = null;
  return (job) => {
    if (job === undefined || job.jobState === null || job.jobState === shown) return '';
    shown = job.jobState;
    const isOver = phaseOf(job.jobState) === 'over';
    const late = isOver ? '; what it wrote last may still come' : '';
    const lines = [`job ${job.jobId} is ${printable(job.jobState)}${late}`];
    return [...lines, ...(isOver ? failedTaskLines(job.tasks.reported) : [])].map((line) => `${line}\n`).join('');
  };
}
