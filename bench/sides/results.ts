/**
 * Our side for results: the parts of the agent as `agent sync` puts them together, over one store, without the polls of
 * live files that the command does before. The listing, the call or the direct transfer, hash, flush, name and row are in it.
 *
 *     results.js CONFIG JOB once|twice
 *
 * once: fetches all. twice: and all once more, as a complete pass does, and nothing of them is new. Prints
 * `SyncCost` as JSON, one a sync. The agent is a daemon that has called its service before, for another job, so its start
 * is not among the seconds.
 */
import '../../src/system/small-heap.ts';
import { performance } from 'node:perf_hooks';
import type { JobId } from '../../src/job.ts';

const { buildEngine } = await import('../../src/daemon/compose.ts');
const { connect } = await import('../../src/daemon/connection.ts');
const { openOwnStore } = await import('../../src/daemon/own-state.ts');
const { loadConfig } = await import('../../src/config/load.ts');

export interface SyncCost {
  readonly files: number;
  readonly bytes: number;
  /** Of the last file. */
  readonly sha256: string | null;
  readonly seconds: number;
  readonly cpuSeconds: number;
}

const OTHER_JOB = '1' as JobId;

const complain = (_: unknown, message: string) => void process.stderr.write(`${message}\n`);
const log = { debug: () => {}, info: () => {}, warn: complain, error: complain };
const [configFile = '', job = '', how = ''] = process.argv.slice(2);
const jobId = job as JobId;
const config = await loadConfig(configFile);
const { store, transfers, close } = openOwnStore(config, log);
const connection = await connect(config, log);
const { pass } = buildEngine({ ...connection, config, store, transfers, log, catchUp: async () => {} });
const { results, remote } = pass;
const { signal } = new AbortController();
for (const watched of [jobId, OTHER_JOB]) {
  const order = { jobId: watched, tasks: [], files: [], results: true, settleAfterMs: null };
  store.jobs.watch({ ...order, source: 'command' }, Date.now());
}
await results.sync(OTHER_JOB, { remote, isFinal: true, signal });
const costs = [await costOf()];
if (how !== 'once') costs.push(await costOf());
await transfers.endAll(remote, signal);
await connection.close();
close();
process.stdout.write(`${JSON.stringify(costs)}\n`);

async function costOf(): Promise<SyncCost> {
  const [cpu, startedMs] = [process.cpuUsage(), performance.now()];
  const { fetched, bytes, failed } = await results.sync(jobId, { remote, isFinal: true, signal });
  const seconds = (performance.now() - startedMs) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  if (failed > 0) throw new Error(`${failed} failed`);
  const sha256 = how === 'once' ? ([...store.results.ofJob(jobId)].at(-1)?.sha256 ?? null) : null;
  return { files: fetched, bytes, sha256, seconds, cpuSeconds: (user + system) / 1e6 };
}
