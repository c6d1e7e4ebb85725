/** Who follows a job. */
import type { Config } from '../config/config.ts';
import type { JobId } from '../job.ts';
import { lockHolder } from '../store/lock.ts';
import type { Store } from '../store/store.ts';

/** command: another one that has the lock of the state, while a command waits for the job. fleet: an agent of the fleet. */
export interface JobFollower {
  readonly by: 'nobody' | 'this' | 'command' | 'agent' | 'fleet';
  /** What a command prints about it. */
  readonly text: string;
}

export const NOT_FOLLOWED: JobFollower = {
  by: 'nobody',
  text: 'no agent is running: it is followed once one is started (agent run)',
};

/** Who follows a job of the state of this machine: the one answer for every command and message. */
export function followerOf({ state }: Config, store: Store, jobId: JobId): JobFollower {
  const holder = lockHolder(state.directory);
  if (holder === undefined) return NOT_FOLLOWED;
  if (holder.role === 'agent') return { by: 'agent', text: 'the running agent follows it' };
  if (!store.requests.open('follow').some((request) => request.jobId === jobId)) return NOT_FOLLOWED;
  if (holder.pid === process.pid) return { by: 'this', text: 'this command follows it' };
  return { by: 'command', text: `another command (pid ${holder.pid}${holder.host}) follows it, while a command waits` };
}
