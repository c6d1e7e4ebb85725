/** The events of all jobs, as notifications have them, for the clients that read them at this moment. */
import type { SharedState } from '../daemon/state.ts';
import { asJobtailError } from '../errors.ts';
import { Refused } from '../http/refused.ts';
import type { JobId } from '../job.ts';
import type { NotifyEvent } from '../notification.ts';
import { newsOf } from '../notify/events.ts';
import { unprovenIn } from '../proven.ts';
import type { NotifiedJobRow } from '../store/outbox.ts';

const TICK_MS = 1_000;
/** A client that is further behind is cut off. */
const MAX_EVENTS = 10_000;

/** Reads the state once for all clients, and only while one reads. */
export class EventFeed {
  readonly #state: SharedState;
  readonly #onFailure: (error: unknown) => void;
  #jobs: ReadonlyMap<JobId, NotifiedJobRow> | undefined;
  #version: number | undefined;
  #dueAt = 0;
  /** The last ones, and how many there were before them. */
  #events: readonly NotifyEvent[] = [];
  #dropped = 0;

  constructor(state: SharedState, onFailure: (error: unknown) => void) {
    this.#state = state;
    this.#onFailure = onFailure;
  }

  /** What happened since the call before. @throws Refused if that was too much */
  reader(): () => readonly NotifyEvent[] {
    this.#read();
    let seen = this.#dropped + this.#events.length;
    return () => {
      this.#read();
      if (seen < this.#dropped) throw new Refused(429, 'the client does not read');
      const news = this.#events.slice(seen - this.#dropped);
      seen += news.length;
      return news;
    };
  }

  #read(): void {
    if (performance.now() < this.#dueAt) return;
    this.#dueAt = performance.now() + TICK_MS;
    try {
      const { store } = this.#state;
      const version = store.version();
      if (version === this.#version) return;
      const now = Date.now();
      const read = store.jobs.all().map((job) => {
        const isComplete = () => unprovenIn(store, job.jobId).length === 0;
        const { row, events } = newsOf(this.#jobs?.get(job.jobId), job, store.jobInformation.get(job.jobId), false);
        return { row, events: this.#jobs === undefined ? [] : events(now, isComplete) };
      });
      const all = [...this.#events, ...read.flatMap(({ events }) => events)];
      this.#events = all.slice(-MAX_EVENTS);
      this.#dropped += all.length - this.#events.length;
      this.#jobs = new Map(read.map(({ row }) => [row.jobId, row]));
      this.#version = version;
    } catch (error) {
      // A state that is replaced is read again at the next tick.
      if (asJobtailError(error).code === 'internal') this.#onFailure(error);
    }
  }
}
