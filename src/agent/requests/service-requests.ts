/** Calls to the service that commands request from the running agent, so that they wait in its queue. */
import { asJobtailError, refusalOf } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import type { ServiceRequestRow } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import type { Clock } from '../../system/clock.ts';
import { type Failures, STATE } from '../failures.ts';
import type { Verification } from '../pass/verification.ts';
import type { Log } from '../ports/host.ts';
import type { JobService } from '../ports/server.ts';

/** What requests of commands need of the agent that answers them. */
export interface RequestContext {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly failures: Failures;
  readonly mirrorDirectory: string;
  /** Creates the notifications of what happened so far. */
  readonly catchUp: () => Promise<void>;
}

interface ServiceCalls {
  readonly jobService: JobService | null;
  readonly verify: (jobId: JobId, isComplete: boolean, signal: AbortSignal) => Promise<Verification>;
}

export class ServiceRequests {
  readonly #context: RequestContext;
  readonly #calls: ServiceCalls;
  readonly #serving = new Map<number, { readonly stop: AbortController; readonly done: Promise<void> }>();

  constructor(context: RequestContext, calls: ServiceCalls) {
    this.#context = context;
    this.#calls = calls;
  }

  /** Serves the open requests of the store, and stops those whose command was interrupted. */
  serve(): void {
    const { store } = this.#context;
    for (const [requestId, { stop }] of this.#serving) if (store.requests.get(requestId) === undefined) stop.abort();
    for (const request of store.requests.open('service'))
      if (!this.#serving.has(request.requestId)) this.#begin(request);
  }

  /** Stops all calls; resolves when no request is served any more. */
  async stop(): Promise<void> {
    for (const { stop } of this.#serving.values()) stop.abort();
    await Promise.all([...this.#serving.values()].map(({ done }) => done));
  }

  #begin(request: ServiceRequestRow): void {
    const stop = new AbortController();
    this.#serving.set(request.requestId, { stop, done: this.#answer(request, stop.signal) });
  }

  async #answer(request: ServiceRequestRow, signal: AbortSignal): Promise<void> {
    const { requests } = this.#context.store;
    const { requestId } = request;
    try {
      const answer = await this.#call(request, signal).catch((thrown: unknown) => refusalOf(asJobtailError(thrown)));
      // The next agent serves a request that is stopped.
      if (signal.aborted) return;
      requests.answer(requestId, JSON.stringify(answer));
      this.#context.failures.cleared(STATE);
    } catch (thrown) {
      this.#context.failures.failed(STATE, asJobtailError(thrown));
    } finally {
      this.#serving.delete(requestId);
    }
  }

  async #call({ kind, jobId }: ServiceRequestRow, signal: AbortSignal): Promise<object> {
    const { jobService, verify } = this.#calls;
    if (kind !== 'report' && jobId !== null) return await verify(jobId, kind === 'verify-complete', signal);
    if (jobService === null) return { jobs: [] };
    return {
      jobs: jobId === null ? await jobService.listJobs(signal) : [await jobService.getJob(jobId, signal)],
    };
  }
}
