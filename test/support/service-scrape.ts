/** The metrics of an agent that had a little of everything, and what Prometheus would read. */
import { type FleetNumbers, Metrics, type StoreTotals } from '../../src/daemon/metrics.ts';

export const NOW = 1_000_000_000_000;
export const TOTALS: StoreTotals = {
  jobs: { watched: 3, ended: 1 },
  failingJobs: 1,
  stalledJobs: 0,
  liveFiles: 12,
  failingFiles: 0,
  generations: 2,
  inexactBytes: 7,
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

export function metricsOf(totals: StoreTotals = TOTALS): Metrics {
  return new Metrics({
    version: '1.2.3',
    totals: () => totals,
    callsWaiting: () => 5,
    logLinesLost: () => 9,
    turnAgeSeconds: () => 0.5,
    freeBytes: async () => ({ mirror: 1e9, state: 2e9 }),
    now: () => NOW,
    fleet: () => FLEET,
  });
}

export async function scrape(): Promise<string> {
  const metrics = metricsOf();
  const call = { operation: 'ListChangedFilesForJob' as const, bytes: 100, durationMs: 250 };
  metrics.call({ ...call, outcome: 'ok' });
  metrics.call({ ...call, outcome: 'timeout' });
  metrics.answered(400, false);
  metrics.answered(100, true);
  metrics.signIn('ok');
  metrics.signIn('sign-in-refused');
  metrics.appended(1_000);
  metrics.fetched(50, 'first');
  metrics.mismatch('truncated');
  metrics.reloaded('taken');
  return metrics.text();
}
