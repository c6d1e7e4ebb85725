/** The events of all jobs, as notifications have them, for the clients that read them at this moment. */
import type { SharedState } from '../daemon/state.ts';
import { asJobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import type { NotifyEvent } from '../notification.ts';
import { newsOf } from '../notify/events.ts';
import { unprovenIn } from '../proven.ts';
import type { NotifiedJobRow } from '../store/outbox.ts';

const TICK_MS = 1_000;

type EventReader = (event: NotifyEvent) => void;

/** Reads the state only while a client listens. */
export class EventFeed {
  readonly #state: SharedState;
  readonly #onFailure: (error: unknown) => void;
  readonly #listeners = new Set<EventReader>();
  #jobs = new Map<JobId, NotifiedJobRow>();
  #version: number | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(state: SharedState, onFailure: (error: unknown) => void) {
    this.#state = state;
    this.#onFailure = onFailure;
  }

  /** The listener receives what happens from now on; the returned function ends that. */
  join(listener: EventReader): () => void {
    if (this.#listeners.size === 0) {
      this.#version = undefined;
      this.#jobs.clear();
      this.#read();
      this.#timer = setInterval(() => this.#read(), TICK_MS);
    }
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) clearInterval(this.#timer);
    };
  }

  #read(): void {
    try {
      const { store } = this.#state;
      const version = store.version();
      if (version === this.#version) return;
      const isFirst = this.#version === undefined;
      const now = Date.now();
      const rows = new Map<JobId, NotifiedJobRow>();
      for (const job of store.jobs.all()) {
        const before = this.#jobs.get(job.jobId);
        const reported = store.jobInformation.get(job.jobId);
        const isComplete = () => unprovenIn(store, job.jobId).length === 0;
        const { row, events } = newsOf(before, job, reported, false);
        for (const event of isFirst ? [] : events(now, isComplete))
          for (const listener of this.#listeners) listener(event);
        rows.set(job.jobId, row);
      }
      this.#jobs = rows;
      this.#version = version;
    } catch (error) {
      // A state that is replaced is read again at the next tick.
      if (asJobtailError(error).code === 'internal') this.#onFailure(error);
    }
  }
}
