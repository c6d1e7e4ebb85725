/** The fleet of a configuration, for a command. */

import type { FleetConfig } from '../../config/config.ts';
import { commandLog } from '../../daemon/command-log.ts';
import { fleetAddress } from '../../daemon/fleet.ts';
import type { FleetClient } from '../../fleet/client.ts';
import { Secrets } from '../../redact.ts';

/** @throws JobtailError */
export async function withFleet<T>(config: FleetConfig, work: (client: FleetClient) => Promise<T>): Promise<T> {
  const secrets = new Secrets();
  const address = await fleetAddress(config, commandLog(), secrets);
  const { FleetClient } = await import('../../fleet/client.ts');
  const client = await FleetClient.open(address, { heartbeatSeconds: config.fleet.heartbeatMs / 1000 });
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}
