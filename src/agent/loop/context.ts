/** What the work on jobs shares: all of them, and the runs of one. */
import type { JobId } from '../../job.ts';
import type { FoundBy } from '../../store/rows.ts';
import type { Calls } from '../calls.ts';
import type { Failures } from '../failures.ts';
import type { PassContext } from '../pass/complete-pass.ts';
import type { JobPolls, PollContext } from '../poll/poll.ts';
import type { Log } from '../ports/host.ts';
import type { JobService, Remote } from '../ports/server.ts';
import type { DueRun, DueRuns } from '../schedule/due-runs.ts';
import type { IntervalLimits, Pace } from '../schedule/pace.ts';
import type { Scheduler } from '../schedule/scheduler.ts';
import type { endOf, JobEvent, Life } from './job-life.ts';
import type { RunFailures } from './run-failures.ts';
import type { Stall } from './stall.ts';

interface JobLimits {
  readonly intervals: IntervalLimits;
  readonly resultsIntervalMs: number;
  /** A running job without growth for this time is stalled; null: never. */
  readonly stallAfterMs: number | null;
}

interface JobEvents {
  readonly onAppended: (bytes: number) => void;
  readonly onTasksFound: (tasks: number, by: FoundBy) => void;
  readonly onJobStates: (outcome: 'ok' | 'failed') => void;
}

/** What never changes while an agent runs. `remote`, `jobService`: their calls wait in the queue, before those of `waiting`. */
export interface AgentContext extends PassContext {
  readonly jobService: JobService | null;
  readonly log: Log;
  /** In [0, 1), for jitter. */
  readonly random: () => number;
  readonly limits: JobLimits;
  readonly events: JobEvents;
  readonly poll: PollContext;
  /** How many files one call may request: fewer once the service refused a call as too long. */
  readonly batchLimit: { readonly files: number };
  readonly calls: Calls;
  /** The service without the queue: each call is to get its lane. */
  readonly bare: { readonly remote: Remote; readonly jobService: JobService | null };
  /** The service by lane: calls that may wait, whole live files of running jobs, passes that no command waits for. */
  readonly waiting: { readonly patient: Remote; readonly raw: Remote; readonly wanted: Remote };
  readonly scheduler: Scheduler;
  readonly failures: Failures;
  /** The jobs that commands wait for: then no others are followed, nor is what the configuration names changed. */
  readonly asked: Set<JobId> | undefined;
  /** Requests that a pass is to answer. */
  readonly served: Set<number>;
}

/** In milliseconds; at once if omitted. */
export type Delays = Readonly<Partial<Record<DueRun, number>>>;

/** One followed job. */
export interface OneJob {
  readonly jobId: JobId;
  readonly context: AgentContext;
  readonly polls: JobPolls;
  readonly life: Life;
  /** How long results wait, at most, for the first poll of live files: any of them may be a live file; 0: not. */
  readonly filesAwaitedMs: number;
  readonly stall: Stall;
  /** Applies the table: what becomes due starts after its delay. */
  happened(event: JobEvent, delays?: Delays): void;
  /** Records a poll or search that worked and brought nothing. */
  wasQuiet(beganAt: number, isAnswered: boolean): void;
  /** Whether the end is due, or delayed; the pass becomes due, after the pause of its last failure. */
  checkEnd(): ReturnType<typeof endOf>;
  readonly pace: Pace;
  readonly due: DueRuns;
  readonly failures: RunFailures;
}

/** Whether a request fails that may succeed later: of live files, of a result, of the listing. */
export const mayStillCome =
  ({ jobId, context, failures }: OneJob) =>
  (): boolean => {
    const { liveFiles, results, jobs } = context.store;
    if (failures.isFailing('poll') || failures.isFailing('search')) return true;
    if (liveFiles.ofJob(jobId).some(({ error }) => error !== null)) return true;
    if (jobs.get(jobId)?.results !== true) return false;
    const { failed, refused } = results.counts(jobId);
    return failed > refused || failures.isFailing('results');
  };
