/** Takes over the jobs that the configuration names, and its rule. */
import type { WatchMineRule, WatchRequest } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../system/clock.ts';
import type { Log } from './ports/host.ts';

interface State {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
}

/** Copies the jobs of the configuration into the store, and ends those that it no longer names. */
export function takeConfigured(configured: readonly WatchRequest[], { store, clock, log }: State): void {
  const wanted = new Set(configured.map((request) => request.jobId));
  store.transaction(() => {
    for (const request of configured) {
      const { jobId } = request;
      const row = store.jobs.get(jobId);
      const state = row?.state ?? (store.jobs.isForgotten(jobId) ? 'forgotten' : 'watched');
      const isOverruled = /^(settled|forgotten)$/.test(state) || (row?.source === 'command' && state !== 'watched');
      if (!isOverruled) store.jobs.watch(request, clock.now());
      else log.info({ jobId, state }, 'configured job not followed');
    }
    for (const { jobId, source, state } of store.jobs.all()) {
      if (source === 'config' && state === 'watched' && !wanted.has(jobId)) store.jobs.setState(jobId, 'ending');
    }
  });
}

/** Stores or removes the rule of the configuration; an unchanged rule keeps its start time. */
export function takeRule(rule: WatchMineRule | null, { store, clock }: State): void {
  store.transaction(() => {
    const before = store.watchMine.of('config');
    if (rule === null) store.watchMine.remove('config');
    else store.watchMine.save({ ...rule, source: 'config', since: before?.since ?? clock.now() });
  });
}
