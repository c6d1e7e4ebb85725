/** What the followed jobs of one agent share, and what the runs of one job share. */
import type { JobId } from '../../job.ts';
import type { FoundBy } from '../../store/rows.ts';
import type { Calls } from '../calls.ts';
import type { Deps } from '../deps.ts';
import type { RequestedPasses } from '../pass/job-end.ts';
import type { JobPolls, PollContext } from '../poll/poll.ts';
import type { JobService, Remote } from '../ports.ts';
import type { Results } from '../results/results.ts';
import type { Failures, JobRuns } from './job-runs.ts';
import type { JobStage } from './job-stage.ts';
import type { IntervalLimits, Pace } from './pace.ts';
import type { DueRuns, Scheduler } from './scheduler.ts';

export interface JobLimits {
  readonly intervals: IntervalLimits;
  readonly resultsIntervalMs: number;
  /** A running job without growth for this time is stalled; null: never. */
  readonly stallAfterMs: number | null;
}

export interface JobEvents {
  readonly onAppended: (bytes: number) => void;
  readonly onTasksFound: (tasks: number, by: FoundBy) => void;
  readonly onJobStates: (outcome: 'ok' | 'failed') => void;
}

/** What an agent is given. */
export interface AgentParts {
  readonly deps: Deps;
  readonly limits: JobLimits;
  readonly events: JobEvents;
  readonly calls: Calls;
  readonly remote: Remote;
  /** Its calls wait in the queue. */
  readonly jobService: JobService | null;
  readonly poll: PollContext;
  readonly results: Results;
}

export interface JobContext extends AgentParts {
  readonly passes: RequestedPasses;
  readonly scheduler: Scheduler;
  readonly failures: Failures;
}

/** One followed job, for its runs. */
export interface JobParts {
  readonly jobId: JobId;
  readonly context: JobContext;
  readonly polls: JobPolls;
  readonly stage: JobStage;
  readonly pace: Pace;
  readonly due: DueRuns;
  readonly runs: JobRuns;
  readonly signal: AbortSignal;
}
