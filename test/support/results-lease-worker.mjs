// Takes a lease and gives it back with the program's own parts, and is killed at the step it is told.

import { Leases } from '../../src/agent/results/download/leases.ts';
import { loadConfig } from '../../src/config/load.ts';
import { connect } from '../../src/daemon/connection.ts';
import { openOwnStore } from '../../src/daemon/state.ts';
import { systemClock } from '../../src/system/clock.ts';

const [configFile, killAt] = process.argv.slice(2);
const nothing = () => {};
const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
const config = await loadConfig(configFile);
const { store } = openOwnStore(config, log);
const order = { jobId: '501', tasks: [], files: [], results: true, settleAfterMs: null, source: 'command' };
store.jobs.watch(order, Date.now());
const { remote } = await connect(config, log);
const checkpoint = (step) => {
  if (step === killAt) process.kill(process.pid, 'SIGKILL');
};
const leases = new Leases({ store, clock: systemClock, log, checkpoint });
const { signal } = new AbortController();
await leases.take('501', remote, signal);
await leases.end('501', remote, signal);
process.exit(0);
