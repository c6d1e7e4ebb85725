/** Calls to the job service that commands request from the running agent, so that they wait in its queue. */
import { asJobtailError } from '../../errors.ts';
import type { JobInformation } from '../../job-information.ts';
import type { ServiceRequestRow } from '../../store/rows.ts';
import type { JobService } from '../ports.ts';
import { STATE } from './failures.ts';
import type { JobContext } from './job-context.ts';

export type ServiceAnswer =
  | { readonly jobs: readonly JobInformation[] }
  | { readonly error: string; readonly code: string; readonly hint?: string | undefined };

/** The command that made an older request is gone. */
const MAX_AGE_MS = 10 * 60_000;

export class ServiceRequests {
  readonly #context: JobContext;
  readonly #jobService: JobService;
  readonly #signal: AbortSignal;
  readonly #serving = new Map<number, Promise<void>>();

  constructor(context: JobContext, jobService: JobService, signal: AbortSignal) {
    this.#context = context;
    this.#jobService = jobService;
    this.#signal = signal;
  }

  /** Serves the open requests of the store. */
  serve(): void {
    const { store, clock } = this.#context.deps;
    const requests = store.serviceRequests.open().filter(({ requestId }) => !this.#serving.has(requestId));
    if (requests.length === 0) return;
    store.serviceRequests.forget(clock.now() - MAX_AGE_MS);
    for (const request of requests) this.#serving.set(request.requestId, this.#answer(request));
  }

  /** Resolves when no request is served any more. */
  async ended(): Promise<void> {
    await Promise.all(this.#serving.values());
  }

  async #answer({ requestId, aboutJob }: ServiceRequestRow): Promise<void> {
    const { store } = this.#context.deps;
    try {
      const answer = await this.#ask(aboutJob);
      if (answer !== undefined) store.serviceRequests.answer(requestId, JSON.stringify(answer));
    } catch (thrown) {
      this.#context.failures.failed(STATE, asJobtailError(thrown));
    } finally {
      this.#serving.delete(requestId);
    }
  }

  /** Undefined if the agent stops: the next one serves the request. */
  async #ask(aboutJob: ServiceRequestRow['aboutJob']): Promise<ServiceAnswer | undefined> {
    const service = this.#jobService;
    const signal = this.#signal;
    try {
      return { jobs: aboutJob === null ? await service.listJobs(signal) : [await service.getJob(aboutJob, signal)] };
    } catch (thrown) {
      const { code, message, hint } = asJobtailError(thrown);
      return signal.aborted ? undefined : { error: message, code, hint };
    }
  }
}
