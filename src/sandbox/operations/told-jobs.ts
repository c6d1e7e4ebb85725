/** What the service tells of jobs, whatever protocol asks (docs/servers.md 10.1, 10.3): as it was when it last looked at the cluster. */
import type { SubmittedJob, SubmittedTask } from '../cluster/cluster.ts';
import type { SandboxHabits } from '../habits.ts';

const OFFSET_MS = 3_600_000;

export interface ToldTask {
  readonly id: string;
  readonly name: string;
  readonly state: string;
  readonly startTime: string | null;
  readonly endTime: string | null;
  readonly errorMessage: string | null;
  readonly allocatedSeconds: number | null;
}

export interface ToldJob {
  readonly id: string;
  readonly name: string;
  readonly state: string;
  readonly creationTime: string | null;
  readonly submitTime: string | null;
  readonly startTime: string | null;
  readonly endTime: string | null;
  readonly allocatedSeconds: number | null;
  readonly tasks: readonly ToldTask[];
}

export class ToldJobs {
  readonly #habits: Pick<SandboxHabits, 'stateSeconds' | 'jobTimes'>;
  readonly #clock: () => number;
  readonly #told = new WeakMap<SubmittedJob, { readonly atMs: number; readonly told: ToldJob }>();

  /** `clock` in milliseconds. */
  constructor(habits: Pick<SandboxHabits, 'stateSeconds' | 'jobTimes'>, clock: () => number) {
    this.#habits = habits;
    this.#clock = clock;
  }

  tell(job: SubmittedJob): ToldJob {
    const nowMs = this.#clock();
    const last = this.#told.get(job);
    if (last !== undefined && nowMs < last.atMs + this.#habits.stateSeconds * 1000) return last.told;
    const told = toldJob(job, nowMs, (atMs) => timeOf(atMs, job, this.#habits.jobTimes));
    this.#told.set(job, { atMs: nowMs, told });
    return told;
  }
}

type TimeTeller = (atMs: number | undefined) => string | null;

function toldJob(job: SubmittedJob, nowMs: number, time: TimeTeller): ToldJob {
  const { startedAtMs, endedAtMs } = job;
  return {
    id: job.jobId,
    name: job.name,
    state: job.toldState ?? job.state,
    creationTime: time(job.createdAtMs),
    submitTime: time(job.submittedAtMs),
    startTime: time(startedAtMs),
    endTime: time(endedAtMs),
    allocatedSeconds: secondsBetween(startedAtMs, endedAtMs ?? nowMs),
    tasks: job.tasks.map((task) => toldTask(task, nowMs, time)),
  };
}

function toldTask({ taskId, name, run }: SubmittedTask, nowMs: number, time: TimeTeller): ToldTask {
  const { state, startedAtMs, endedAtMs, errorMessage } = run;
  return {
    id: taskId,
    name,
    state,
    startTime: time(startedAtMs),
    endTime: time(endedAtMs),
    errorMessage,
    allocatedSeconds: secondsBetween(startedAtMs, endedAtMs ?? nowMs),
  };
}

function timeOf(
  atMs: number | undefined,
  { ageSeconds }: SubmittedJob,
  form: SandboxHabits['jobTimes'],
): string | null {
  if (atMs === undefined) return null;
  const toldMs = atMs - ageSeconds * 1000;
  if (form === 'offset') return new Date(toldMs + OFFSET_MS).toISOString().replace('Z', '+01:00');
  const text = new Date(toldMs).toISOString();
  return form === 'utc' ? text : text.replace('Z', '');
}

function secondsBetween(fromMs: number | undefined, toMs: number): number | null {
  return fromMs === undefined ? null : (toMs - fromMs) / 1000;
}
