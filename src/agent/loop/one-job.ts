/** What the runs of one followed job share. */
import type { JobId } from '../../job.ts';
import type { JobPolls } from '../poll/poll.ts';
import type { AgentContext } from './agent-context.ts';
import type { DueRuns } from './due-runs.ts';
import type { JobStage } from './job-stage.ts';
import type { Pace } from './pace.ts';
import type { RunFailures } from './run-failures.ts';

export interface OneJob {
  readonly jobId: JobId;
  readonly context: AgentContext;
  readonly polls: JobPolls;
  readonly stage: JobStage;
  readonly pace: Pace;
  readonly due: DueRuns;
  readonly failures: RunFailures;
  readonly signal: AbortSignal;
}
