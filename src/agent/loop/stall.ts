/** Whether a running job is stalled: none of its live files grew for too long. Times use the monotonic clock. */
import type { JobId } from '../../job.ts';
import { isRunning } from '../../job-information.ts';
import type { JobInformationRow, JobRow } from '../../store/rows.ts';
import type { AgentContext } from './context.ts';

export class Stall {
  readonly #context: AgentContext;
  #limitMs: number | null = null;
  #isStalled = false;
  /** Last growth of a live file, or last change of the job state. */
  #grewAt = 0;
  #jobState: string | null = null;

  constructor(context: AgentContext) {
    this.#context = context;
  }

  watched({ stallAfterMs, stalledAt }: JobRow): void {
    this.#limitMs = stallAfterMs ?? this.#context.limits.stallAfterMs;
    this.#isStalled = stalledAt !== null;
  }

  /** `last`: the report that was stored before; `quietSince`: when there was growth or another state last. */
  followed(last: JobInformationRow | undefined, quietSince: number): void {
    this.#grewAt = quietSince;
    this.#jobState = last?.information.state ?? null;
  }

  reported(jobState: string | null): void {
    if (jobState !== this.#jobState) this.grew();
    this.#jobState = jobState;
  }

  grew(): void {
    this.#grewAt = this.#context.clock.monotonic();
  }

  /** Milliseconds of running without growth, if they are too many; logged when that begins. */
  stalledMs(jobId: JobId): number | null {
    const quietMs = this.#context.clock.monotonic() - this.#grewAt;
    const isStalled = this.#limitMs !== null && isRunning(this.#jobState) && quietMs >= this.#limitMs;
    if (isStalled && !this.#isStalled) this.#context.log.warn({ jobId, quietMs: Math.round(quietMs) }, 'job stalled');
    this.#isStalled = isStalled;
    return isStalled ? quietMs : null;
  }
}
