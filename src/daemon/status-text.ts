/** The line that `systemctl status` shows for the agent. */

import { countOf, showAge } from '../numbers.ts';
import type { Store } from '../store/store.ts';
import type { Standing } from './standing.ts';

export interface StatusTextOptions {
  /** Jobs that are followed. */
  readonly jobs: number;
  readonly store: Pick<Store, 'totals'>;
  readonly failure: Standing['failure'];
  /** Why a changed configuration is not in force. */
  readonly refused: string | undefined;
}

export function statusText({ jobs, store, failure, refused }: StatusTextOptions): string {
  const parts = [`following ${countOf(jobs, 'job')}`];
  if (failure !== undefined) parts.unshift(`${failure.text} since ${showAge(failure.forMs)}`);
  try {
    const { grownAt, failingJobs } = store.totals.watched();
    if (grownAt !== null) parts.push(`last growth ${showAge(Date.now() - grownAt)} ago`);
    if (failure === undefined && failingJobs > 0) parts.push(`${failingJobs} failing (agent status)`);
  } catch {
    parts.push('the state cannot be read');
  }
  if (refused !== undefined) parts.push(`the changed configuration is refused: ${refused}`);
  return parts.join(', ');
}
