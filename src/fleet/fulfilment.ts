/** Orders for the jobs that this agent owns: brought into its store, where the agent finds them, and answered from there. */
import type { PassAnswer } from '../agent/pass/job-end.ts';
import type { JobId } from '../job.ts';
import type { Store } from '../store/store.ts';
import type { OpenOrder } from './border.ts';
import { type Answer, DONE } from './orders.ts';

/** What is known of an order by now; a null answer is still to come. */
export interface Settled {
  readonly jobId: JobId;
  readonly orderId: string;
  readonly answer: Answer | null;
}

interface Asked {
  readonly jobId: JobId;
  /** In the store. */
  readonly requestId: number;
}

export class Fulfilment {
  readonly #store: Store;
  readonly #now: () => number;
  /** Orders for a pass that was asked for in the store, by their ids. */
  readonly #asked = new Map<string, Asked>();

  constructor(store: Store, now: () => number) {
    this.#store = store;
    this.#now = now;
  }

  /** Orders that wait for what was asked for in the store. */
  get asked(): string[] {
    return [...this.#asked.keys()];
  }

  /** Brings orders that are new here into the store; what is to be written of them. */
  apply(orders: readonly OpenOrder[]): Settled[] {
    if (orders.length === 0) return [];
    return this.#store.transaction(() => orders.map((order) => this.#apply(order)));
  }

  /** Orders whose answer has come. */
  answered(): Settled[] {
    return [...this.#asked].flatMap(([orderId, { jobId, requestId }]) => {
      const request = this.#store.requests.get(requestId);
      if (request !== undefined && request.answer === null) return [];
      return [{ jobId, orderId, answer: JSON.parse(request?.answer ?? '{}') as Answer }];
    });
  }

  /** Their answers are written. */
  forget(settled: readonly Settled[]): void {
    for (const { orderId } of settled) this.#asked.delete(orderId);
  }

  /** Whether somebody waits for an answer about a job. */
  isAsked(jobId: JobId): boolean {
    return [...this.#asked.values()].some((asked) => asked.jobId === jobId);
  }

  /** The job is somebody else's: its orders are, too. */
  forgetJob(jobId: JobId): void {
    for (const [orderId, asked] of this.#asked) if (asked.jobId === jobId) this.#asked.delete(orderId);
  }

  #apply(order: OpenOrder): Settled {
    const { jobId, orderId, kind, isApplied } = order;
    if (kind !== 'watch' && this.#store.jobs.get(jobId) === undefined) {
      return { jobId, orderId, answer: { error: `job ${jobId} is not watched` } satisfies PassAnswer };
    }
    if (!isApplied) this.#change(order);
    if (kind !== 'sync' && kind !== 'unwatch') return { jobId, orderId, answer: DONE };
    this.#asked.set(orderId, { jobId, requestId: this.#store.requests.add(jobId, kind, this.#now()) });
    return { jobId, orderId, answer: null };
  }

  #change({ jobId, kind, body }: OpenOrder): void {
    const { jobs } = this.#store;
    const job = jobs.get(jobId);
    if (kind === 'watch' && body !== null) jobs.watch(body, this.#now());
    else if (kind === 'unwatch') jobs.unwatch(jobId, 'ending');
    else if (kind === 'end') jobs.unwatch(jobId, 'ended');
    else if (kind === 'resume') jobs.resume(jobId);
    else if (kind === 'drop' && job?.source === 'config' && job.state === 'watched') jobs.setState(jobId, 'ending');
  }
}
