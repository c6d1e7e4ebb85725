/** `agent check`: the database of the fleet. Changes nothing. */
import fs from 'node:fs';
import { type FleetConfig, PLAIN_DATABASE, PLAIN_DATABASE_HINT } from '../../config/config.ts';
import { fleetAddress } from '../../daemon/fleet.ts';
import { JobtailError } from '../../errors.ts';
import { countOf, showAge } from '../../numbers.ts';
import { printable } from '../../printable.ts';
import { Secrets } from '../../redact.ts';
import { isOnNetworkFileSystem } from '../../store/database.ts';
import { commandLog } from '../process.ts';
import { type Finding, note, ok, warning } from './findings.ts';

/** Leases do not depend on the clock, but the times in `status` do. */
const FAR_MS = 5_000;

/** @throws JobtailError fleet, config, secret-unavailable */
export async function checkFleet(config: FleetConfig): Promise<Finding[]> {
  const address = await fleetAddress(config.fleet, commandLog(), new Secrets());
  const { readFleet } = await import('../../fleet/client.ts');
  const server = await readFleet(address);
  const found = [
    ok(`PostgreSQL ${printable(server.version)} at ${server.where}, ${countOf(server.agents, 'agent')} registered`),
  ];
  const { isNewEnough, hasTables, mayCreate, version } = server;
  const refused = (message: string, hint: string) => new JobtailError('fleet', message, { hint });
  if (!isNewEnough) throw refused(`PostgreSQL ${version} is too old`, 'install PostgreSQL 13 or newer');
  if (!hasTables && !mayCreate) {
    const hint = 'make the user of the agents the owner of the database (docs/fleet.md)';
    throw refused(`cannot create the schema ${config.fleet.schema}: permission denied`, hint);
  }
  if (!server.hasTables) found.push(note('no tables yet: the first agent creates them'));
  if (!server.isEncrypted && !server.isHere) {
    found.push(warning(PLAIN_DATABASE, PLAIN_DATABASE_HINT));
  }
  if (Math.abs(server.aheadMs) > FAR_MS) {
    const far = `its clock is ${showAge(Math.abs(server.aheadMs))} ${server.aheadMs > 0 ? 'ahead of' : 'behind'} this one`;
    found.push(warning(far, 'synchronize both clocks by NTP'));
  }
  const { directory } = config.mirror;
  if (fs.existsSync(directory) && !isOnNetworkFileSystem(directory)) {
    found.push(
      note('the mirrors are on a local disk: the next owner of a job transfers everything again (docs/fleet.md)'),
    );
  }
  return found;
}
