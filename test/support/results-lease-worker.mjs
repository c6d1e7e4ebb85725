// Takes a lease and gives it back with the built program's own parts, and is killed at the step it is told.

import { Leases } from '../../dist/agent/results/download/leases.js';
import { loadConfig } from '../../dist/config/load.js';
import { connect } from '../../dist/daemon/connection.js';
import { openOwnStore } from '../../dist/daemon/state.js';
import { systemClock } from '../../dist/system/clock.js';

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
