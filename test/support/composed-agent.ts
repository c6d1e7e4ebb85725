/** The heart as the program puts it together, over a service in memory. */
import { onTestFinished } from 'vitest';
import type { Log, Remote } from '../../src/agent/ports.ts';
import { buildEngine } from '../../src/cli/compose.ts';
import { openOwnStore } from '../../src/cli/stores.ts';
import { configDirectory, MINIMAL } from '../config/files.ts';

const { load, path: placeOf } = configDirectory();

/** Follows nothing yet. What it warns of is gathered. */
export async function startAgent(remote: Remote) {
  const config =
    await load(`${MINIMAL.replace('auth:', '  requestsPerMinute: 60000\nauth:')}mirror: {directory: ${placeOf('mirror')}}
state: {directory: ${placeOf('state')}}
poll: {minIntervalSeconds: 0.1, maxIntervalSeconds: 0.2}
results: {intervalSeconds: 1}
`);
  const warnings: string[] = [];
  const quiet = () => {};
  const log: Log = { debug: quiet, info: quiet, warn: (_, message) => warnings.push(message), error: quiet };
  const owned = openOwnStore(config, log);
  const { store, transfers } = owned;
  const { agent } = buildEngine({ config, store, transfers, remote, log });
  onTestFinished(async () => {
    await agent.stop();
    owned.close();
  });
  agent.start([]);
  return { agent, store, warnings };
}
