/** What a job is submitted with. */
import type { LiveFileName } from '../../src/job.ts';

export interface TaskSpec {
  /** submittedTaskInfoId, 64-bit decimal; the next free one by default. */
  readonly taskId?: string;
  /** The id at the start of listed names; the next free number by default. */
  readonly specificationId?: string;
  /** The task's own directory below that of its specification (ClusterTaskSubdirectory); none by default. */
  readonly subdirectory?: string;
  /** `task ` and its place in the job by default. */
  readonly name?: string;
  /** argv, no shell, run in the task's directory. Without it the task has no process: a test writes the files. */
  readonly command?: readonly string[];
  /** Names of the live files in the task's directory, where they differ from the defaults. */
  readonly liveFiles?: Partial<Record<LiveFileName, string>>;
}

export interface JobSpec {
  /** submittedJobInfoId, 64-bit decimal; the next free one by default. */
  readonly jobId?: string;
  /** User name; the first user by default. */
  readonly owner?: string;
  /** `job ` and its id by default. */
  readonly name?: string;
  /** Seconds that are subtracted from its reported times. 0 by default. */
  readonly ageSeconds?: number;
  /** The job is created but not submitted until `submit()`: its listing is nil, its processes do not run. */
  readonly held?: boolean;
  readonly tasks: readonly TaskSpec[];
}

/** The defaults of `TaskSpec.liveFiles`. stdout and stderr are written by the process's own streams. */
export const LIVE_FILE_PATHS: Readonly<Record<LiveFileName, string>> = {
  stdout: 'stdout.txt',
  stderr: 'stderr.txt',
  log: 'task.log',
  progress: 'progress.txt',
};
