/** What the parts of one agent of a fleet have in common. */
import type { Log } from '../agent/ports.ts';
import type { JobId } from '../job.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../system/clock.ts';
import type { Handover } from './handover.ts';
import type { Joined } from './joined.ts';
import type { HeldJobs } from './lease.ts';
import type { Member } from './register.ts';

/** From before it is one of the fleet. */
export interface MemberContext {
  readonly store: Store;
  readonly log: Log;
  readonly clock: Clock;
  /** Of the mirror directory: agents that have the same one see the same files. */
  readonly mirror: string;
  /** Gives back what a job lent, if that can be had at once. */
  readonly endTransfer: (jobId: JobId) => Promise<void>;
}

/** Since it is. */
export interface JoinedContext extends MemberContext {
  readonly held: HeldJobs;
  readonly joined: Joined;
  readonly handover: Handover;
  readonly member: Member;
}
