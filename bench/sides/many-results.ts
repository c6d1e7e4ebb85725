/**
 * Our side for very many results, over one store.
 *
 *     many-results.js CONFIG JOB cold|quiet
 *
 * cold: fetches all, then all once more, as a complete pass does, and nothing of them is new. quiet: registers all that
 * are listed as fetched a moment ago, and looks at them when nothing is due. Prints JSON.
 */
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import type { JobId } from '../../src/job.ts';
import { openEngine } from './results-engine.ts';

export interface SyncCost {
  readonly files: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
  /** Without the resolution of the timer that measures it. */
  readonly longestBlockMs: number;
}

const [configFile = '', job = '', kind = ''] = process.argv.slice(2);
const jobId = job as JobId;
const { store, connection, results, remote, signal, close } = await openEngine(configFile, jobId);
if (kind === 'quiet') await register();
const costs = [await costOf(kind === 'cold'), await costOf(kind === 'cold')];
await connection.close();
close();
process.stdout.write(`${JSON.stringify(costs)}\n`);

async function costOf(isFinal: boolean): Promise<SyncCost> {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const [cpu, startedMs] = [process.cpuUsage(), performance.now()];
  const { fetched, failed } = await results.sync(jobId, { remote, isFinal, signal });
  const seconds = (performance.now() - startedMs) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  delay.disable();
  if (failed > 0) throw new Error(`${failed} failed`);
  const longestBlockMs = Math.max(0, delay.max / 1e6 - 1);
  return { files: fetched, seconds, cpuSeconds: (user + system) / 1e6, longestBlockMs };
}

async function register(): Promise<void> {
  const now = Date.now();
  const names = await remote.listChangedFiles(jobId, signal);
  const fetched = {
    bytes: 0,
    sha256: '',
    live: null,
    reason: null,
    stamp: null,
    stampProven: false,
    hangs: 0,
  } as const;
  const times = { listedAt: now, fetchedAt: now, dueAt: now + 3_600_000, intervalMs: 3_600_000 };
  store.results.saveAll(names.map((name) => ({ jobId, name, state: 'synced', ...fetched, ...times })));
}
