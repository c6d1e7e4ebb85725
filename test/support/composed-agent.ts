/** The heart as the program puts it together, over a service in memory. */
import fs from 'node:fs';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import type { Log, Remote } from '../../src/agent/ports.ts';
import { loadConfig } from '../../src/config/load.ts';
import { buildEngine } from '../../src/daemon/compose.ts';
import { openOwnStore } from '../../src/daemon/state.ts';
import { MINIMAL } from '../config/files.ts';
import { temporaryDirectory } from './temp-directory.ts';

/** Follows nothing yet. What it warns of is gathered. */
export async function startAgent(remote: Remote) {
  const directory = temporaryDirectory();
  const configFile = path.join(directory, 'config.yaml');
  fs.writeFileSync(
    configFile,
    `${MINIMAL.replace('auth:', '  requestsPerMinute: 60000\nauth:')}mirror: {directory: ${directory}/mirror}
state: {directory: ${directory}/state}
poll: {minIntervalSeconds: 0.1, maxIntervalSeconds: 0.2}
results: {intervalSeconds: 1}
`,
  );
  const config = await loadConfig(configFile);
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
