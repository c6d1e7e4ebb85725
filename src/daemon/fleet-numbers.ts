/** This agent in its fleet, and its numbers. */
import type { Remote } from '../agent/ports.ts';
import type { Budget } from '../fleet/budget.ts';
import type { FleetMember } from '../fleet/member.ts';
import type { FleetNumbers } from './metrics.ts';

export interface DaemonFleet {
  readonly member: FleetMember;
  readonly budget: Budget;
  /** How the service is reached now. */
  remote: Remote | undefined;
}

/** What the metrics show of it. */
export function numbersOf({ member, budget }: Pick<DaemonFleet, 'member' | 'budget'>): () => FleetNumbers {
  return () => {
    const { standing, notFollowed, jobs: self, takeovers, lost, refusedWrites, leaseAgeSeconds, isUp } = member.numbers;
    const { jobs = 0, waiting = 0, waitingMs = 0, agents = [] } = standing ?? {};
    return {
      ...{ isUp, notFollowed, leaseAgeSeconds, takeovers, lost, refusedWrites, agents: agents.length },
      jobs: { self, others: Math.max(0, jobs - waiting - self), nobody: waiting },
      waitingSeconds: waitingMs / 1000,
      budgetCalls: budget.calls,
      budgetWaitSeconds: budget.waitedMs / 1000,
    };
  };
}
