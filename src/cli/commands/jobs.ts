/** `agent jobs`: the user's jobs as the middleware reports them. */
import { jsonReport } from '../../json-report.ts';
import { countOf } from '../../numbers.ts';
import { printable } from '../../printable.ts';
import { configurationAsOwner, type JsonOption } from '../configuration.ts';
import { withJobs } from '../followed-jobs.ts';
import { failedTasks, showJobState, showTime, taskLine } from '../show/job-text.ts';
import type { ListedJob } from '../show/lists.ts';
import { columnsOf, cutToColumns, fitted, pageText } from '../show/terminal.ts';

export async function jobs(options: JsonOption): Promise<void> {
  const config = await configurationAsOwner(options);
  const listed = await withJobs(config, (jobs) => jobs.reported());
  if (options.json === true) process.stdout.write(jsonReport({ jobs: listed }));
  else process.stdout.write(jobsTable(listed, columnsOf()));
}

const MAX_NAME_COLUMNS = 40;
const MAX_TASKS = 4;
const MAX_MESSAGES = 3;

export function jobsTable(jobs: readonly ListedJob[], columns: number): string {
  if (jobs.length === 0) return 'the middleware reports no job\n';
  const head = ['job', 'name', 'state', 'submitted', 'started', 'ended', 'task ids', 'followed'];
  const lines = [...fitted({ head, rows: jobs.map(rowOf) }, columns)];
  for (const job of jobs) lines.push(...messagesOf(job));
  return pageText(lines, columns);
}

function rowOf(job: ListedJob): string[] {
  const times = [job.submitTime, job.startTime, job.endTime].map((time) => (time === null ? '' : showTime(time)));
  return [job.jobId, nameOf(job), showJobState(job.jobState), ...times, tasksOf(job), job.watchState ?? ''];
}

const nameOf = ({ name }: ListedJob) => cutToColumns(printable(name ?? ''), MAX_NAME_COLUMNS);

function tasksOf({ tasks }: ListedJob): string {
  const ids = tasks.map(({ taskId }) => taskId);
  return ids.length <= MAX_TASKS ? ids.join(' ') : `${ids[0]} ... ${ids.at(-1)} (${ids.length})`;
}

function messagesOf({ jobId, tasks }: ListedJob): string[] {
  const failed = failedTasks(tasks);
  const more = failed.length - MAX_MESSAGES;
  return [
    ...failed.slice(0, MAX_MESSAGES).map((task) => `  job ${jobId}, ${taskLine(task)}`),
    ...(more > 0 ? [`  job ${jobId}: ${countOf(more, 'message')} more (agent jobs --json)`] : []),
  ];
}
