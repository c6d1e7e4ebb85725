/** What the parts of the engine share: the state, the clocks, the log, and chance. */
import type { Store } from '../store/store.ts';
import type { Clock } from '../system/clock.ts';
import type { Log } from './ports.ts';

export interface Deps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  /** In [0, 1), for jitter. */
  readonly random: () => number;
}
