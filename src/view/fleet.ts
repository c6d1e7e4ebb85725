/** Where the rows of a job are: here, or in a copy of the database of the fleet while a page is open. */
import { asJobtailError, JobtailError } from '../errors.ts';
import { notThere } from '../http/refused.ts';
import type { JobId } from '../job.ts';
import { printable } from '../printable.ts';
import type { JobRow } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import type { FleetAgent, FleetState, PlaceOfJob } from './contract/events.ts';

export interface FleetRead {
  /** The copy; the same object each time. */
  readonly store: Store;
  readonly name: string;
  readonly agents: readonly FleetAgent[];
  readonly waitingJobs: number;
  readonly places: ReadonlyMap<JobId, PlaceOfJob>;
}

export interface FleetSource {
  /** Of the jobs `withResults`, the results are copied one by one. @throws JobtailError */
  read(withResults: readonly JobId[]): Promise<FleetRead>;
  close(): Promise<void>;
}

const PAUSE_MS = 2_000;
/** Pauses are so many times as long as a read, so that a large fleet costs its database no more. */
const PAUSE_SHARE = 10;
const OLD_MS = 10_000;
const LISTED_MS = 60_000;
const HERE: PlaceOfJob = { owner: null, isElsewhere: false };

export class JobStores {
  readonly #own: () => Store;
  readonly #source: FleetSource | null;
  /** Jobs whose results a page shows, and until when they are read. */
  readonly #listed = new Map<JobId, number>();
  /** Those of them that the copy has. */
  #withResults: ReadonlySet<JobId> = new Set();
  #read: FleetRead | undefined;
  #placesText = '';
  /** Null without a fleet; undefined before the first read. */
  state: FleetState | null | undefined;
  #reading: Promise<void> | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  #dueAt = 0;

  constructor(own: () => Store, source: FleetSource | null) {
    this.#own = own;
    this.#source = source;
    this.state = source && undefined;
  }

  /** Whether the jobs of all agents are here. */
  get isComplete(): boolean {
    return this.state === null || this.state?.error === null;
  }

  /** Changes with the rows of other agents. */
  get version(): string {
    return `${this.#read?.store.version() ?? 0} ${this.#placesText}`;
  }

  of(jobId: JobId): Store {
    return this.#read === undefined || this.#isOwn(jobId) ? this.#own() : this.#read.store;
  }

  /** The same, for its bytes. @throws Refused (404) if they are on another machine */
  withBytes = (jobId: JobId): Store => {
    const { owner, isElsewhere } = this.placeOf(jobId);
    if (isElsewhere)
      throw notThere(`mirror of job ${jobId} here: the agent ${printable(owner ?? 'that followed it last')} has them`);
    return this.of(jobId);
  };

  placeOf(jobId: JobId): PlaceOfJob {
    return this.#read?.places.get(jobId) ?? HERE;
  }

  all(): readonly { readonly store: Store; readonly jobs: readonly JobRow[] }[] {
    const own = this.#own();
    const read = this.#read;
    if (read === undefined) return [{ store: own, jobs: own.jobs.all() }];
    const jobs = own.jobs.all().filter(({ jobId }) => this.#isOwn(jobId));
    const here = new Set(jobs.map(({ jobId }) => jobId));
    const others = read.store.jobs.all().filter(({ jobId }) => !here.has(jobId));
    return [
      { store: own, jobs },
      { store: read.store, jobs: others },
    ];
  }

  /** Reads the fleet again if that is due; called again and again while a page is open. */
  refresh(): void {
    if (this.#source !== null && performance.now() >= this.#dueAt) void this.#readNow(this.#source);
  }

  /**
   * For a request: what it shows is not older than some seconds, unless the fleet cannot be read; of `listed`, also the
   * results one by one. @throws JobtailError if these cannot be read
   */
  async ready(listed: JobId | undefined): Promise<void> {
    if (this.#source === null) return;
    const isNew = () => listed !== undefined && !this.#withResults.has(listed) && !this.#isOwn(listed);
    if (listed !== undefined) this.#listed.set(listed, performance.now() + LISTED_MS);
    const isOld = performance.now() - this.#readAt > OLD_MS;
    // What is here does not wait for a database that is away.
    const isLost = this.state?.error != null;
    const reading = isNew() || isOld ? this.#readNow(this.#source) : undefined;
    if (isNew() || !isLost) await reading;
    // That read may have begun before this request.
    if (isNew() && this.isComplete) await this.#readNow(this.#source);
    const error = this.state?.error;
    if (isNew() && error != null) throw new JobtailError('fleet', error.message, { hint: error.hint ?? undefined });
  }

  async close(): Promise<void> {
    await this.#reading;
    await this.#source?.close();
  }

  /** A job that was handed off a moment ago has rows in both. Before the first read, the others are unknown. */
  #isOwn(jobId: JobId): boolean {
    const { name, places } = this.#read ?? {};
    const place = places?.get(jobId);
    if (place === undefined && places !== undefined) return true;
    return place?.owner === name && this.#own().jobs.get(jobId) !== undefined;
  }

  #readNow(source: FleetSource): Promise<void> {
    this.#reading ??= this.#tryRead(source).finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #tryRead(source: FleetSource): Promise<void> {
    const begunAt = performance.now();
    let pauseMs = PAUSE_MS;
    for (const [jobId, until] of this.#listed) if (until < begunAt) this.#listed.delete(jobId);
    const withResults = [...this.#listed.keys()];
    try {
      const read = await source.read(withResults);
      const { name, agents, waitingJobs, places } = read;
      this.#read = read;
      this.#withResults = new Set(withResults);
      this.#placesText = JSON.stringify([...places]);
      this.state = { name, agents, waitingJobs, error: null };
      pauseMs = Math.max(PAUSE_MS, PAUSE_SHARE * (performance.now() - begunAt));
    } catch (thrown) {
      const { message, hint = null } = asJobtailError(thrown);
      const { error = null, ...known } = this.state ?? { name: '', agents: [], waitingJobs: 0 };
      this.state = { ...known, error: error ?? { message, hint, since: Date.now() } };
    }
    this.#readAt = performance.now();
    this.#dueAt = this.#readAt + pauseMs;
  }
}
