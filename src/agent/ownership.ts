/**
 * Which jobs of the store the agent follows, and whether it may still write what is below the mirror directory. Alone, it
 * owns all of them for ever. In a fleet it owns those whose lease it holds: another agent may have any job at another time.
 */
import type { JobId } from '../job.ts';
import type { LiveFileRow } from '../store/rows.ts';

export interface Ownership {
  owns(jobId: JobId): boolean;
  /** Asked right before each write below the mirror directory. @throws JobtailError `superseded` */
  requireLease(jobId: JobId): void;
  /**
   * Resolves when the next owner of the job would go on from this row: asked before each step of a new generation, and at
   * its end. Rejects with `superseded`, or with `fleet` if that cannot be found out now.
   */
  fence(row: LiveFileRow): Promise<void>;
  /**
   * What distinguishes copies of this owner from those of others, for the name of a file: digits, of a greater number with
   * each owner; null if nothing has to.
   */
  copyMark(jobId: JobId): string | null;
}

/** Of an agent that shares its jobs with nobody. */
export const ALONE: Ownership = {
  owns: () => true,
  requireLease: () => {},
  fence: () => Promise.resolve(),
  copyMark: () => null,
};

/** The agent, for whoever says which jobs are its. */
export interface Follower {
  /** It owns these from now on, and they are in the store. */
  take(jobIds: readonly JobId[]): void;
  /** A job is, or may be, another's: resolves when nothing of it is written any more, and what was written is committed. */
  release(jobId: JobId): Promise<void>;
  /** The store was changed. */
  refresh(): void;
}
