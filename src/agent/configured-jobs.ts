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

/** Whether a job of the configuration is not followed: it is settled or removed, or a command ended it. */
export const isOverruled = ({ state, source }: { readonly state: string | null; readonly source: string | null }) =>
  state === 'settled' || state === 'forgotten' || (source === 'command' && state !== 'watched');

/** Copies the jobs of the configuration into the store, and ends those that it no longer names. */
export function takeConfigured(configured: readonly WatchRequest[], { store, clock, log }: State): void {
  const wanted = new Set(configured.map((request) => request.jobId));
  store.transaction(() => {
    for (const request of configured) {
      const { jobId } = request;
      const forgotten = { state: store.jobs.isForgotten(jobId) ? 'forgotten' : null, source: null };
      const known = store.jobs.get(jobId) ?? forgotten;
      if (isOverruled(known)) log.info({ jobId, state: known.state }, 'configured job not followed');
      else store.jobs.watch(request, clock.now());
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
