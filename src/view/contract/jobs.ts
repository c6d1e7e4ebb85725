/** A job, as the list and its page show it. */
import type { Trouble } from './addresses.ts';

/** What changed of the jobs: `whole` if these are all there are. */
export interface JobsChange {
  readonly whole: boolean;
  readonly jobs: readonly JobSummary[];
  readonly gone: readonly string[];
  /** Of jobs of which nothing else changed: when they were last visited. */
  readonly polledAt: Readonly<Record<string, number>>;
}

/** What a job is to the agent. */
export type WatchState = 'watched' | 'ending' | 'ended' | 'settled';

export interface JobSummary {
  readonly jobId: string;
  /** As the middleware tells them, if it does. */
  readonly name: string | null;
  readonly jobState: string | null;
  /** `over`: nothing more comes but what is flushed late; null for a state that is not known. */
  readonly phase: 'active' | 'over' | null;
  readonly state: WatchState;
  readonly source: 'config' | 'command' | 'mine';
  readonly tasks: number;
  /** It has tasks that are not known yet. */
  readonly lookingForTasks: boolean;
  readonly liveFiles: number;
  readonly liveBytes: number;
  readonly watchedAt: number;
  /** Null while it never was. Lag is since min(polledAt, error.since), unless it is ended or settled. */
  readonly polledAt: number | null;
  readonly grownAt: number | null;
  /** What changed last: growth, a state, a result. */
  readonly changedAt: number;
  /**
   * Committed bytes of its live files at moments of the last hour, the oldest first, at most 61: closer together while it is
   * young. From the last one until now nothing changed. The first one may be a little older.
   */
  readonly growth: readonly (readonly [at: number, bytes: number])[];
  readonly results: ResultCounts | null;
  /** The first failure of the job or of one of its files. */
  readonly error: Trouble | null;
  readonly failingFiles: number;
  readonly inexactBytes: number;
  readonly refusedEntries: number;
}

/** Null where results are off. `synced` is what is here, links included; `failed` includes refused names. */
export interface ResultCounts {
  readonly listed: number;
  readonly synced: number;
  readonly linked: number;
  readonly inFlux: number;
  readonly queued: number;
  readonly failed: number;
  readonly refused: number;
  readonly leftOut: number;
  readonly bytes: number;
}

export interface JobDetail extends JobSummary {
  readonly taskList: readonly TaskDetail[];
  /** Why no task is found, and what to do. */
  readonly tasksHint: string | null;
  /** ISO text as told; null if not told. */
  readonly submitTime: string | null;
  readonly startTime: string | null;
  readonly endTime: string | null;
  /** How results come: the last look at them, which runs while `endedAt` is null. */
  readonly lastLook: {
    readonly startedAt: number;
    readonly updatedAt: number;
    readonly endedAt: number | null;
    readonly wanted: number;
    readonly done: number;
    readonly bytes: number;
    readonly bytesPerSecond: number;
    /** `soap` (the service, whichever its protocol), or the way of a direct transfer. */
    readonly way: string | null;
    /** Why files that should have come directly came by the service. */
    readonly fallback: string | null;
  } | null;
}

export interface TaskDetail {
  readonly taskId: string;
  readonly name: string | null;
  readonly taskState: string | null;
  readonly startTime: string | null;
  readonly endTime: string | null;
  readonly errorMessage: string | null;
}
