/**
 * Our side for results: the parts of the agent as `agent sync` puts them together, without the polls of live files that
 * the command does before. Everything that belongs to a result is in it: the listing, the call or the direct transfer,
 * hash, flush, name, and the row in the store.
 *
 *     sync-results.js CONFIG JOB
 *
 * Prints JSON. The agent is a daemon that has called its service before, so its start is not among the seconds.
 */
import { performance } from 'node:perf_hooks';
import v8 from 'node:v8';
import type { JobId } from '../../src/job.ts';

// As the program does (src/cli/main.ts), before anything is loaded.
v8.setFlagsFromString('--optimize-for-size');

const { buildEngine } = await import('../../src/daemon/compose.ts');
const { connect } = await import('../../src/daemon/connection.ts');
const { openOwnStore } = await import('../../src/daemon/state.ts');
const { loadConfig } = await import('../../src/config/load.ts');

export interface SyncFigures {
  readonly seconds: number;
  readonly files: number;
  readonly bytes: number;
  /** Of the last file. */
  readonly sha256: string | null;
}

const [configFile = '', job = ''] = process.argv.slice(2);
const [jobId, otherJob] = [job as JobId, '1' as JobId];
const log = { debug: () => {}, info: () => {}, warn: complain, error: complain };
const config = await loadConfig(configFile);
const { store, transfers, close } = openOwnStore(config, log);
const connection = await connect(config, log);
const engine = buildEngine({ config, store, transfers, remote: connection.remote, log });
const { signal } = new AbortController();
const { results, remote } = engine.pass(signal);
for (const watched of [jobId, otherJob]) {
  const order = { jobId: watched, tasks: [], files: [], results: true, settleAfterMs: null };
  store.jobs.watch({ ...order, source: 'command' }, Date.now());
}

await results.sync(otherJob, { remote, final: true, signal });
const startedMs = performance.now();
const end = await results.sync(jobId, { remote, final: true, signal });
const seconds = (performance.now() - startedMs) / 1000;
await transfers.endAll(remote, signal);
await connection.close();
const sha256 = [...store.results.ofJob(jobId)].at(-1)?.sha256 ?? null;
close();
const figures: SyncFigures = { seconds, files: end.changed, bytes: end.bytes, sha256 };
process.stdout.write(`${JSON.stringify(figures)}\n`);

function complain(_: unknown, message: string): void {
  process.stderr.write(`${message}\n`);
}
