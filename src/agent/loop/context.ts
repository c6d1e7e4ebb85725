/** What the work on all jobs shares. */
import type { JobId } from '../../job.ts';
import type { FoundBy } from '../../store/rows.ts';
import type { Calls } from '../calls.ts';
import type { PassContext } from '../pass/complete-pass.ts';
import type { PollContext } from '../poll/poll.ts';
import type { JobService, Remote } from '../ports/server.ts';
import type { RequestContext } from '../requests/service-requests.ts';
import type { IntervalLimits } from '../schedule/pace.ts';
import type { Scheduler } from '../schedule/scheduler.ts';

interface JobLimits {
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

/** What never changes while an agent runs. `remote`, `jobService`: their calls wait in the queue, before those of `waiting`. */
export interface AgentContext extends PassContext, RequestContext {
  readonly jobService: JobService | null;
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
  /** The jobs that commands wait for: then no others are followed, nor is what the configuration names changed. */
  readonly asked: Set<JobId> | undefined;
  /** Requests that a pass is to answer. */
  readonly served: Set<number>;
}
