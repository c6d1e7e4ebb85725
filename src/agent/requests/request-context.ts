/** What requests of commands need of the agent that answers them. */
import type { Store } from '../../store/store.ts';
import type { Clock } from '../../system/clock.ts';
import type { Failures } from '../failures.ts';
import type { Log } from '../ports/host.ts';

export interface RequestContext {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly failures: Failures;
  readonly mirrorDirectory: string;
}
