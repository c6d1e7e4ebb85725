/** The jobs of the configuration, and its rule for the jobs of the user. */
import type { WatchMineRule, WatchOrder } from '../../store/rows.ts';
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

/** Brings the rule of the configuration into the store, or takes it away; one that stays the same goes on as it began. */
export function takeRule(rule: WatchMineRule | null, { store, clock }: ConfiguredJobsOptions): void {
  store.transaction(() => {
    const before = store.watchMine.of('config');
    if (rule === null) store.watchMine.remove('config');
    else store.watchMine.save({ ...rule, source: 'config', since: before?.since ?? clock.now() });
  });
}
