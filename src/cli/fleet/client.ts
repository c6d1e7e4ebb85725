/** The fleet of a configuration, for a command. */
import type { FleetConfig } from '../../config/config.ts';
import { fleetAddress } from '../../daemon/fleet.ts';
import type { FleetClient } from '../../fleet/client.ts';
import { Secrets } from '../../redact.ts';
import { commandLog } from '../process.ts';

/** For a command that gives orders. @throws JobtailError */
export async function withFleet<T>(config: FleetConfig, work: (client: FleetClient) => Promise<T>): Promise<T> {
  return await withClient(config, 'open', work);
}

/** For a command that looks, and changes nothing. @throws JobtailError */
export async function lookAtFleet<T>(config: FleetConfig, work: (client: FleetClient) => Promise<T>): Promise<T> {
  return await withClient(config, 'look', work);
}

async function withClient<T>(
  config: FleetConfig,
  open: 'open' | 'look',
  work: (client: FleetClient) => Promise<T>,
): Promise<T> {
  const secrets = new Secrets();
  const log = commandLog();
  const address = await fleetAddress(config, log, secrets);
  const { FleetClient } = await import('../../fleet/client.ts');
  const onIgnored = (what: string) => log.warn({ hint: 'another program wrote it, or a newer agent' }, what);
  const client = await FleetClient[open]({ ...address, onIgnored });
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}
