/** What the streams report, read once for all of them, when the store changed and while a page is open. */
import { asJobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { shownJobService } from '../../store/jobs.ts';
import { runningAgent } from '../../store/lock.ts';
import type { AgentState, Events, FileState, JobDetail, JobSummary, ServiceState } from '../contract/events.ts';
import type { JobStores } from '../fleet.ts';
import type { OpenStore, ViewSettings } from '../settings.ts';
import { detailOf, filesOf, jobsOf, serviceErrorOf } from './jobs.ts';

/** Many jobs are added up less often: a hundred of them take a millisecond. */
const READ_MS_A_JOB = 5;

export class Snapshots {
  readonly #settings: ViewSettings;
  readonly #store: OpenStore;
  readonly #stores: JobStores;
  readonly #readEveryMs: number;
  /** What was read of the store since it last changed. */
  #read = new Map<string, unknown>();
  #jobs: readonly JobSummary[] | undefined;
  #jobsDueAt = 0;
  #isJobsStale = true;
  #version = '';
  #pidSeen: number | null | undefined;
  #dueAt = 0;
  /** Whether a read failed since the store was last looked at. */
  #hasFailed = false;
  stateError: Events['stateError'] = null;

  constructor(settings: ViewSettings, store: OpenStore, stores: JobStores, readEveryMs: number) {
    this.#settings = settings;
    this.#store = store;
    this.#stores = stores;
    this.#readEveryMs = readEveryMs;
  }

  /** Whether a job that is in none of them was never followed. */
  get isComplete(): boolean {
    return this.stateError === null && this.#stores.isComplete;
  }

  /** The same object as before if nothing changed. */
  jobs(): readonly JobSummary[] | undefined {
    if (!this.#isJobsStale || performance.now() < this.#jobsDueAt) return this.#jobs;
    this.#orStateError(() => {
      this.#jobs = jobsOf(this.#stores);
      this.#isJobsStale = false;
      this.#jobsDueAt = performance.now() + this.#jobs.length * READ_MS_A_JOB;
    });
    return this.#jobs;
  }

  job(jobId: string): { readonly detail: JobDetail; readonly files: readonly FileState[] } | undefined {
    return this.#once(`job ${jobId}`, () => {
      const detail = detailOf(this.#stores, jobId as JobId);
      return detail && { detail, files: filesOf(this.#stores, jobId as JobId) };
    });
  }

  agent(): AgentState | undefined {
    return this.#once('agent', () => {
      const { jobs, watchMine, jobInformation } = this.#store.get();
      const pid = this.#agentPid();
      const rule = watchMine.inForce();
      const all = this.#stores.all().flatMap((one) => one.jobs);
      const waiting = jobInformation.lastListing()?.waiting ?? 0;
      return {
        running: pid !== undefined,
        pid: pid ?? null,
        watchMine: rule === undefined ? null : { following: jobs.followedByRule(), waiting },
        serviceError: pid === undefined ? null : serviceErrorOf(all),
        lastPolledAt:
          pid === undefined ? all.reduce((last, { polledAt }) => Math.max(last, polledAt ?? 0), 0) || null : null,
      };
    });
  }

  service(): ServiceState | undefined {
    return this.#once('service', () => {
      const { hasJobService, ...service } = this.#settings.service;
      const { jobInformation } = this.#store.get();
      return { ...service, jobService: hasJobService ? shownJobService(jobInformation.lastListing()) : null };
    });
  }

  /** Looks at the store again, if it is time to: called by each stream that is read. */
  refresh(): void {
    if (performance.now() < this.#dueAt) return;
    this.#dueAt = performance.now() + this.#readEveryMs;
    const hasFailed = this.#hasFailed;
    this.#hasFailed = false;
    this.#orStateError(() => {
      const isOther = this.#store.closeIfGone();
      this.#stores.refresh();
      const version = `${this.#store.get().version()} ${this.#stores.version}`;
      const pid = this.#agentPid();
      if (isOther || version !== this.#version || pid !== this.#pidSeen || this.stateError !== null) {
        this.#isJobsStale ||= isOther || version !== this.#version;
        this.#pidSeen = pid;
        this.#version = version;
        this.#read = new Map();
        // Else the reads that follow would report the same again.
        if (!hasFailed) this.stateError = null;
      }
    });
  }

  #agentPid(): number | null | undefined {
    const { agentPid, stateDirectory } = this.#settings;
    if (agentPid !== null) return agentPid;
    return runningAgent(stateDirectory)?.pid;
  }

  #once<T>(name: string, read: () => T): T | undefined {
    if (!this.#read.has(name)) this.#orStateError(() => this.#read.set(name, read()));
    return this.#read.get(name) as T | undefined;
  }

  /** An error of the store is reported, and the read is repeated. */
  #orStateError(work: () => unknown): void {
    try {
      work();
    } catch (thrown) {
      this.failed(thrown);
    }
  }

  /** The store cannot be read now. */
  failed(thrown: unknown): void {
    const { message, hint = null } = asJobtailError(thrown);
    this.stateError = { message, hint };
    this.#hasFailed = true;
    this.#store.close();
    this.#version = '';
  }
}
