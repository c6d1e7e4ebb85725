/** The reports about jobs, for all protocols (docs/dev/servers.md 10.1, 10.3). */
import type { SubmittedJob, SubmittedTask } from '../cluster/cluster.ts';
import type { JobState } from '../cluster/task-run.ts';

export interface ReportedTask {
  readonly id: string;
  readonly name: string;
  readonly state: JobState;
  readonly startMs: number | null;
  readonly endMs: number | null;
  readonly errorMessage: string | null;
  readonly allocatedSeconds: number | null;
}

export interface ReportedJob {
  readonly id: string;
  readonly name: string;
  readonly state: JobState;
  readonly creationMs: number | null;
  readonly submitMs: number | null;
  readonly startMs: number | null;
  readonly endMs: number | null;
  readonly allocatedSeconds: number | null;
  readonly tasks: readonly ReportedTask[];
}

/** Seconds that are subtracted from all times of the job. */
export function reportedJob(job: SubmittedJob, nowMs: number): ReportedJob {
  const { startedAtMs, endedAtMs } = job;
  const reported = (atMs: number | undefined) => (atMs === undefined ? null : atMs - job.ageSeconds * 1000);
  return {
    id: job.jobId,
    name: job.name,
    state: job.state,
    creationMs: reported(job.createdAtMs),
    submitMs: reported(job.submittedAtMs),
    startMs: reported(startedAtMs),
    endMs: reported(endedAtMs),
    allocatedSeconds: secondsBetween(startedAtMs, endedAtMs ?? nowMs),
    tasks: job.tasks.map((task) => reportedTask(task, nowMs, reported)),
  };
}

function reportedTask(
  { taskId, name, run }: SubmittedTask,
  nowMs: number,
  reported: (atMs: number | undefined) => number | null,
): ReportedTask {
  const { state, startedAtMs, endedAtMs, errorMessage } = run;
  return {
    id: taskId,
    name,
    state,
    startMs: reported(startedAtMs),
    endMs: reported(endedAtMs),
    errorMessage,
    allocatedSeconds: secondsBetween(startedAtMs, endedAtMs ?? nowMs),
  };
}

function secondsBetween(fromMs: number | undefined, toMs: number): number | null {
  return fromMs === undefined ? null : (toMs - fromMs) / 1000;
}
