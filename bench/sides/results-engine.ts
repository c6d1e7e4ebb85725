/**
 * The parts of the agent that sync results, as `agent sync` puts them together, over a store of their own that knows the
 * job, and another one by which the service was called before: the agent is a daemon.
 */
import '../../src/system/small-heap.ts';
import type { JobId } from '../../src/job.ts';

const { buildEngine } = await import('../../src/daemon/compose.ts');
const { connect } = await import('../../src/daemon/connection.ts');
const { openOwnStore } = await import('../../src/daemon/own-state.ts');
const { loadConfig } = await import('../../src/config/load.ts');

const OTHER_JOB = '1' as JobId;

export async function openEngine(configFile: string, jobId: JobId) {
  const log = { debug: () => {}, info: () => {}, warn: complain, error: complain };
  const config = await loadConfig(configFile);
  const { store, transfers, close } = openOwnStore(config, log);
  const connection = await connect(config, log);
  const engine = buildEngine({ config, store, transfers, remote: connection.remote, share: connection.share, log });
  const { signal } = new AbortController();
  const { results, remote } = engine.pass;
  for (const watched of [jobId, OTHER_JOB]) {
    const order = { jobId: watched, tasks: [], files: [], results: true, settleAfterMs: null };
    store.jobs.watch({ ...order, source: 'command' }, Date.now());
  }
  await results.sync(OTHER_JOB, { remote, isFinal: true, signal });
  return { store, transfers, close, connection, results, remote, signal };
}

function complain(_: unknown, message: string): void {
  process.stderr.write(`${message}\n`);
}
