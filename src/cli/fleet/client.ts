/** The fleet of a configuration, for a command. */

import type { FleetConfig } from '../../config/config.ts';
import { commandLog } from '../../daemon/command-log.ts';
import { fleetAddress } from '../../daemon/fleet.ts';
import type { FleetClient } from '../../fleet/client.ts';
import { Secrets } from '../../redact.ts';

/** @throws JobtailError */
export async function withFleet<T>(config: FleetConfig, work: (client: FleetClient) => Promise<T>): Promise<T> {
  const secrets = new Secrets();
  const log = commandLog();
  const address = await fleetAddress(config, log, secrets);
  const { FleetClient } = await import('../../fleet/client.ts');
  const onIgnored = (what: string) => log.warn({ hint: 'another program wrote it, or a newer agent' }, what);
  const client = await FleetClient.open({ ...address, onIgnored });
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}
