/** The reports about jobs, for all protocols (docs/dev/servers.md 10.1, 10.3): as of the last query of the cluster. */
import type { SubmittedJob, SubmittedTask } from '../cluster/cluster.ts';
import type { SandboxHabits } from '../habits.ts';

const ZONE_MS = 3_600_000;

/** The format of a time: in UTC with a `Z`, in UTC without one, or in a zone of one hour more. */
type TimeForm = Exclude<SandboxHabits['jobTimes'], 'usual'>;

export interface ReportedTask {
  readonly id: string;
  readonly name: string;
  readonly state: string;
  readonly startMs: number | null;
  readonly endMs: number | null;
  readonly errorMessage: string | null;
  readonly allocatedSeconds: number | null;
}

export interface ReportedJob {
  readonly id: string;
  readonly name: string;
  readonly state: string;
  readonly creationMs: number | null;
  readonly submitMs: number | null;
  readonly startMs: number | null;
  readonly endMs: number | null;
  readonly allocatedSeconds: number | null;
  readonly tasks: readonly ReportedTask[];
}

export class ReportedJobs {
  readonly #habits: Pick<SandboxHabits, 'stateSeconds'>;
  readonly #clock: () => number;
  readonly #reported = new WeakMap<SubmittedJob, { readonly atMs: number; readonly reported: ReportedJob }>();

  /** `clock` in milliseconds. */
  constructor(habits: Pick<SandboxHabits, 'stateSeconds'>, clock: () => number) {
    this.#habits = habits;
    this.#clock = clock;
  }

  report(job: SubmittedJob): ReportedJob {
    const nowMs = this.#clock();
    const last = this.#reported.get(job);
    if (last !== undefined && nowMs < last.atMs + this.#habits.stateSeconds * 1000) return last.reported;
    const reported = reportedJob(job, nowMs);
    this.#reported.set(job, { atMs: nowMs, reported });
    return reported;
  }
}

/** Seconds that are subtracted from all times of the job. */
function reportedJob(job: SubmittedJob, nowMs: number): ReportedJob {
  const { startedAtMs, endedAtMs } = job;
  const reported = (atMs: number | undefined) => (atMs === undefined ? null : atMs - job.ageSeconds * 1000);
  return {
    id: job.jobId,
    name: job.name,
    state: job.reportedState ?? job.state,
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

/** A time in milliseconds as text. */
export function timeText(atMs: number, form: TimeForm): string {
  if (form === 'offset') return new Date(atMs + ZONE_MS).toISOString().replace('Z', '+01:00');
  const text = new Date(atMs).toISOString();
  return form === 'utc' ? text : text.replace('Z', '');
}

function secondsBetween(fromMs: number | undefined, toMs: number): number | null {
  return fromMs === undefined ? null : (toMs - fromMs) / 1000;
}
