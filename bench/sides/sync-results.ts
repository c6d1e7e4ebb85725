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
import type { JobId } from '../../src/job.ts';
import { openEngine } from './results-engine.ts';

export interface SyncFigures {
  readonly seconds: number;
  readonly files: number;
  readonly bytes: number;
  /** Of the last file. */
  readonly sha256: string | null;
}

const [configFile = '', job = ''] = process.argv.slice(2);
const jobId = job as JobId;
const { store, transfers, connection, results, remote, signal, close } = await openEngine(configFile, jobId);
const startedMs = performance.now();
const end = await results.sync(jobId, { remote, isFinal: true, signal });
const seconds = (performance.now() - startedMs) / 1000;
await transfers.endAll(remote, signal);
await connection.close();
const sha256 = [...store.results.ofJob(jobId)].at(-1)?.sha256 ?? null;
close();
const figures: SyncFigures = { seconds, files: end.changed, bytes: end.bytes, sha256 };
process.stdout.write(`${JSON.stringify(figures)}\n`);
