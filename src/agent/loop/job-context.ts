/** What the followed jobs of one agent share. */
import type { FoundBy } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import type { Clock } from '../../system/clock.ts';
import type { Calls } from '../calls.ts';
import type { Failures } from '../failures.ts';
import type { PassContext } from '../pass/complete-pass.ts';
import type { PollContext } from '../poll/poll.ts';
import type { Log } from '../ports/host.ts';
import type { JobService, Remote } from '../ports/server.ts';
import type { IntervalLimits } from './pace.ts';
import type { Scheduler } from './scheduler.ts';

/** What the parts of the agent share: the state, the clocks, the log, and chance. */
export interface Deps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  /** In [0, 1), for jitter. */
  readonly random: () => number;
}

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

/** What an agent is given. */
export interface AgentParts {
  readonly deps: Deps;
  readonly limits: JobLimits;
  readonly events: JobEvents;
  readonly calls: Calls;
  readonly remote: Remote;
  readonly jobService: JobService | null;
  readonly poll: PollContext;
  /** Its calls wait in the queue. */
  readonly pass: PassContext;
}

export interface JobContext extends AgentParts {
  /** The service, for calls that may wait. */
  readonly patient: Remote;
  /** The service, for whole live files of running jobs. */
  readonly whole: Remote;
  /** The service, for passes that no command waits for. */
  readonly ending: Remote;
  /** Requests that a pass is to answer. */
  readonly served: Set<number>;
  readonly scheduler: Scheduler;
  readonly failures: Failures;
}
