/** The jobs of the configuration. */
import type { WatchOrder } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import type { Clock } from '../../system/clock.ts';
import type { Log } from '../ports.ts';

export interface ConfiguredJobsOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
}

/** Brings the jobs of the configuration into the store; a job that left it is brought to its end. */
export function takeConfigured(configured: readonly WatchOrder[], { store, clock, log }: ConfiguredJobsOptions): void {
  const wanted = new Set(configured.map((order) => order.jobId));
  store.transaction(() => {
    for (const order of configured) {
      const { jobId } = order;
      const row = store.jobs.get(jobId);
      const overruled = row?.state === 'settled' || (row?.source === 'command' && row.state !== 'watched');
      if (!overruled) store.jobs.watch(order, clock.now());
      else log.info({ jobId, state: row.state }, `job ${jobId} is not followed, though configured: it is ${row.state}`);
    }
    for (const { jobId, source, state } of store.jobs.all()) {
      if (source === 'config' && state === 'watched' && !wanted.has(jobId)) store.jobs.setState(jobId, 'ending');
    }
  });
}
