/** The metrics of an agent that had a little of everything, and what Prometheus would read. */
import { EventEmitter } from 'node:events';
import type { Observer } from '../../src/daemon/connection.ts';
import { type FleetNumbers, Metrics, type StoreTotals } from '../../src/daemon/metrics.ts';
import { JobtailError } from '../../src/errors.ts';

export const NOW = 1_000_000_000_000;
export const TOTALS: StoreTotals = {
  jobs: { watched: 3, ended: 1 },
  failingJobs: 1,
  stalledJobs: 0,
  liveFiles: 12,
  failingFiles: 0,
  generations: 2,
  refusedEntries: 1,
  results: { synced: 40, failed: 2 },
  grownAt: NOW - 3_000,
  oldestPollAt: NOW - 90_000,
  deliveriesWaiting: 0,
  deliveriesGivenUp: 0,
};

const FLEET: FleetNumbers = {
  ...{
    isUp: true,
    notFollowed: 0,
    jobs: { self: 3, others: 5, nobody: 1 },
    agents: 2,
    leaseAgeSeconds: 2.5,
    waitingSeconds: 7,
  },
  ...{ takeovers: 4, lost: 1, refusedWrites: 2 },
};

export function metricsOf(read = () => TOTALS, observer: Observer = new EventEmitter()): Metrics {
  return new Metrics({
    ...{ version: '1.2.3', observer, callsWaiting: () => 5, logLinesLost: () => 9, now: () => NOW },
    ...{ store: { totals: { read } }, health: { turnAgeMs: 500 }, fleetMember: () => ({ numbers: FLEET }) },
    freeBytes: async () => ({ mirror: 1e9, state: 2e9 }),
  });
}

export async function scrape(): Promise<string> {
  const observer: Observer = new EventEmitter();
  const metrics = metricsOf(undefined, observer);
  const call = { operation: 'ListChangedFilesForJob' as const, bytes: 100, durationMs: 250 };
  observer.emit('call', { ...call, outcome: 'ok' });
  observer.emit('call', { ...call, outcome: 'timeout' });
  observer.emit('answered', 300, false);
  observer.emit('answered', 100, false);
  observer.emit('answered', 100, true);
  observer.emit('signIn', { kind: 'signed-in', grant: 'session', tookMs: 1 });
  observer.emit('signIn', { kind: 'failed', error: new JobtailError('sign-in-refused', 'no'), tookMs: 1 });
  observer.emit('appended', 1_000);
  observer.emit('fetched', 50, 'first');
  observer.emit('mismatch', 'truncated');
  observer.emit('reloaded', 'taken');
  return metrics.text();
}
