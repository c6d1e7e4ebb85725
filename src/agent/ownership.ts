/**
 * Which jobs of the store the agent follows, and whether it may write below the mirror directory. A single agent owns all
 * jobs. In a fleet, an agent owns the jobs of its lease, and another agent may own any of them later.
 */
import type { JobId } from '../job.ts';
import type { LiveFileRow, WatchRequest } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../system/clock.ts';

export interface Ownership {
  owns(jobId: JobId): boolean;
  /** Called right before each write below the mirror directory. @throws JobtailError `superseded` */
  requireLease(jobId: JobId): void;
  /**
   * Resolves when the next owner of the job would continue from this row: called before each step of a new generation, and
   * after the last. Rejects with `superseded`, or with `fleet` if the database does not respond.
   */
  fence(row: LiveFileRow): Promise<void>;
  /** Digits in names of this owner's copies, greater for each next owner; null for a single agent. */
  copyMark(jobId: JobId): string | null;
}

export const ALONE: Ownership = {
  owns: () => true,
  requireLease: () => {},
  fence: () => Promise.resolve(),
  copyMark: () => null,
};

/** The agent, for the part of a fleet that assigns its jobs. */
export interface Follower {
  /** Follows these jobs from now on; they are in the store. */
  take(jobIds: readonly JobId[]): void;
  /** Stops following a job that another agent may own; resolves when all that was written of it is committed. */
  release(jobId: JobId): Promise<void>;
  refresh(): void;
}

/** All jobs that are or were followed: those of the store, or of a whole fleet. */
export interface KnownJobs {
  /** All jobs that were ever requested. */
  ids(): Promise<ReadonlySet<JobId>>;
  /** The settled jobs, with the start time that the middleware reported for them, if it did. */
  settled(): Promise<ReadonlyMap<JobId, string | null>>;
  /** Follows the settled ones of these jobs again. */
  resume(jobs: readonly JobId[]): Promise<void>;
  /** Requests the first of these, so that the rule follows at most `max` jobs; returns their number. */
  follow(requests: readonly WatchRequest[], max: number): Promise<number>;
}

export const storeJobs = (store: Store, clock: Clock): KnownJobs => ({
  ids: async () => store.jobs.known(),
  settled: async () => store.jobs.settled(),
  resume: async (jobs) =>
    store.transaction(() => {
      for (const jobId of jobs) store.jobs.resume(jobId);
    }),
  follow: async (requests, max) => {
    const taken = requests.slice(0, Math.max(0, max - store.jobs.followedByRule()));
    if (taken.length === 0) return 0;
    store.transaction(() => {
      for (const request of taken) store.jobs.watch(request, clock.now());
    });
    return taken.length;
  },
});
