/** What the runs of one job share. */
import type { JobId } from '../../job.ts';
import type { JobPolls } from '../poll/poll.ts';
import type { DueRun, DueRuns } from '../schedule/due-runs.ts';
import type { Pace } from '../schedule/pace.ts';
import type { AgentContext } from './context.ts';
import type { endOf, JobEvent, Life } from './job-life.ts';
import type { RunFailures } from './run-failures.ts';
import type { Stall } from './stall.ts';

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
  wasQuiet(beganAt: number, hasResponse: boolean): void;
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
