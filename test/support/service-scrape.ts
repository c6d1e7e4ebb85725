/** The metrics of an agent that had a little of everything, and what Prometheus would read. */

import { spawnSync } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { type FleetNumbers, Metrics, type StoreTotals } from '../../src/daemon/metrics.ts';
import type { Observer } from '../../src/daemon/observer.ts';
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

export async function scrape(totals = TOTALS): Promise<string> {
  const observer: Observer = new EventEmitter();
  const metrics = metricsOf(() => totals, observer);
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
  observer.emit('fetched', 20, 'same');
  observer.emit('tasksFound', 3, 'probes');
  observer.emit('jobStatesRead', 'failed');
  observer.emit('mismatch', 'truncated');
  observer.emit('reloaded', 'taken');
  // The second has the same.
  await metrics.text();
  return metrics.text();
}

export function promtool(
  args: readonly string[],
  input = '',
): { readonly status: number | null; readonly said: string } {
  const { status, stdout, stderr } = spawnSync('promtool', args, { input, encoding: 'utf8' });
  return { status, said: `${stdout}${stderr}` };
}

/** What `promtool check metrics` has against metrics of ours; the names of the others are prom-client's choice. */
export function complaintsOf(scrape: string): string[] {
  const { status, said } = promtool(['check', 'metrics'], scrape);
  // 3 is for complaints about style; anything else is a text that Prometheus could not read.
  if (status !== 0 && status !== 3) return [said];
  return said.split('\n').filter((line) => line.includes('jobtail_'));
}
