/** The reports about jobs, for all protocols (docs/servers.md 10.1, 10.3): as of the last query of the cluster. */
import type { SubmittedJob, SubmittedTask } from '../cluster/cluster.ts';
import type { SandboxHabits } from '../habits.ts';

const ZONE_MS = 3_600_000;

/** The format of a time: in UTC with a `Z`, in UTC without one, or in a zone of one hour more. */
type TimeForm = Exclude<SandboxHabits['jobTimes'], 'usual'>;

export interface ToldTask {
  readonly id: string;
  readonly name: string;
  readonly state: string;
  readonly startMs: number | null;
  readonly endMs: number | null;
  readonly errorMessage: string | null;
  readonly allocatedSeconds: number | null;
}

export interface ToldJob {
  readonly id: string;
  readonly name: string;
  readonly state: string;
  readonly creationMs: number | null;
  readonly submitMs: number | null;
  readonly startMs: number | null;
  readonly endMs: number | null;
  readonly allocatedSeconds: number | null;
  readonly tasks: readonly ToldTask[];
}

export class ToldJobs {
  readonly #habits: Pick<SandboxHabits, 'stateSeconds'>;
  readonly #clock: () => number;
  readonly #told = new WeakMap<SubmittedJob, { readonly atMs: number; readonly told: ToldJob }>();

  /** `clock` in milliseconds. */
  constructor(habits: Pick<SandboxHabits, 'stateSeconds'>, clock: () => number) {
    this.#habits = habits;
    this.#clock = clock;
  }

  tell(job: SubmittedJob): ToldJob {
    const nowMs = this.#clock();
    const last = this.#told.get(job);
    if (last !== undefined && nowMs < last.atMs + this.#habits.stateSeconds * 1000) return last.told;
    const told = toldJob(job, nowMs);
    this.#told.set(job, { atMs: nowMs, told });
    return told;
  }
}

/** Seconds that are subtracted from all times of the job. */
function toldJob(job: SubmittedJob, nowMs: number): ToldJob {
  const { startedAtMs, endedAtMs } = job;
  const told = (atMs: number | undefined) => (atMs === undefined ? null : atMs - job.ageSeconds * 1000);
  return {
    id: job.jobId,
    name: job.name,
    state: job.toldState ?? job.state,
    creationMs: told(job.createdAtMs),
    submitMs: told(job.submittedAtMs),
    startMs: told(startedAtMs),
    endMs: told(endedAtMs),
    allocatedSeconds: secondsBetween(startedAtMs, endedAtMs ?? nowMs),
    tasks: job.tasks.map((task) => toldTask(task, nowMs, told)),
  };
}

function toldTask(
  { taskId, name, run }: SubmittedTask,
  nowMs: number,
  told: (atMs: number | undefined) => number | null,
): ToldTask {
  const { state, startedAtMs, endedAtMs, errorMessage } = run;
  return {
    id: taskId,
    name,
    state,
    startMs: told(startedAtMs),
    endMs: told(endedAtMs),
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
