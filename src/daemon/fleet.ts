/** The fleet of a configuration: the address of its database, and this agent as a member. */
import { randomUUID } from 'node:crypto';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { Log } from '../agent/ports/host.ts';
import { type FleetConfig, isPlainDatabase, PLAIN_DATABASE, PLAIN_DATABASE_HINT } from '../config/config.ts';
import type { FleetSettings } from '../config/schema.ts';
import { asJobtailError } from '../errors.ts';
import type { FleetClient } from '../fleet/commands/client.ts';
import type { FleetAddress } from '../fleet/database/database.ts';
import type { FleetMember } from '../fleet/member.ts';
import type { JobId } from '../job.ts';
import { Secrets } from '../redact.ts';
import type { Store } from '../store/store.ts';
import { type Clock, systemClock } from '../system/clock.ts';
import { flushPath } from '../system/directories.ts';
import { Secret } from '../system/secret.ts';
import type { PlaceOfJob } from '../view/contract/events.ts';
import type { FleetRead, FleetSource } from '../view/fleet.ts';
import type { ViewSettings } from '../view/settings.ts';
import type { Transfers } from './transfers.ts';

/** @throws JobtailError config, local-io */
export async function fleetAddress(
  fleet: FleetSettings,
  log: { warn: Log['warn'] },
  secrets: Secrets,
): Promise<FleetAddress> {
  const { schema, url, urlFile, urlCredential } = fleet;
  if (url !== null) return { url, schema, secrets };
  const credential = { kind: 'credential', name: urlCredential ?? '' } as const;
  const source = urlFile === null ? credential : ({ kind: 'file', path: urlFile } as const);
  const onWarning = (message: string) => log.warn({ scope: 'the fleet', err: message }, 'secret not protected');
  const named = { name: 'address of the database', code: 'local-io' } as const;
  const secret = new Secret({ source, ...named, env: process.env, onWarning });
  return { url: await secret.read(new AbortController().signal), schema, secrets };
}

interface DaemonFleetOptions {
  readonly config: FleetConfig;
  readonly version: string;
  readonly store: Store;
  readonly transfers: Transfers;
  readonly secrets: Secrets;
  readonly log: Log;
  readonly unready: () => string | undefined;
  /** Read from the configuration if omitted. */
  readonly address?: FleetAddress;
  readonly clock?: Clock;
}

/** @throws JobtailError config, local-io, permission */
export async function fleetOf(options: DaemonFleetOptions): Promise<FleetMember> {
  const { config, version, store, transfers, secrets, log, clock = systemClock } = options;
  const { directory } = config.mirror;
  const address = options.address ?? (await fleetAddress(config.fleet, log, secrets));
  if (isPlainDatabase(address.url)) {
    const fields = { scope: 'the fleet', code: 'config', err: PLAIN_DATABASE, hint: PLAIN_DATABASE_HINT } as const;
    log.warn(fields, 'connection not encrypted');
  }
  const { FleetMember } = await import('../fleet/member.ts');
  const member = new FleetMember({
    ...address,
    settings: config.fleet,
    store,
    log,
    clock,
    mirror: await mirrorIdentity(directory),
    about: { host: os.hostname(), pid: process.pid, version, view: config.view?.publicUrl ?? null },
    unready: options.unready,
    endTransfer: (jobId) => transfers.end(jobId),
    pollAgeMs: () => {
      const { oldestPollAt } = store.totals.watched();
      return oldestPollAt === null ? null : clock.now() - oldestPollAt;
    },
  });
  transfers.leases.report = (jobId) => member.keep(jobId);
  return member;
}

const FILE = '.jobtail-mirror';

/** The id of a mirror directory; the first agent creates it. @throws JobtailError */
export async function mirrorIdentity(directory: string): Promise<string> {
  const file = path.join(directory, FILE);
  const own = `${file}.${randomUUID()}`;
  try {
    if ((await readIfThere(file)) === undefined) {
      await fs.writeFile(own, `${randomUUID()}\n`, { mode: 0o640, flag: 'wx', flush: true });
      // link() is atomic, also between agents and on network file systems.
      await fs.link(own, file).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'EEXIST') throw error;
      });
      await flushPath(directory);
    }
    return (await readIfThere(file)) ?? '';
  } catch (thrown) {
    throw asJobtailError(thrown);
  } finally {
    await fs.rm(own, { force: true });
  }
}

async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return (await fs.readFile(file, 'utf8')).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** What the view shows of the fleet: a copy of its rows, by one connection of its own, which ends when it is idle. */
export async function fleetOfView(fleet: FleetSettings, settings: ViewSettings): Promise<FleetSource> {
  const { FleetReader } = await import('../fleet/commands/client.ts');
  const { mirrorDirectory, service } = settings;
  // The agent logs what is wrong with the secret, and rows that are ignored.
  const address = () => fleetAddress(fleet, { warn() {} }, new Secrets());
  const reader = new FleetReader(address, service.address);
  const read = async (client: FleetClient, withResults: readonly JobId[]): Promise<FleetRead> => {
    const here = await readIfThere(path.join(mirrorDirectory, FILE));
    const owners = await client.owners();
    const agents = await client.agents.all();
    const store = await client.jobs({ withResults });
    const places = owners.map(({ jobId, owner, mirror }): [JobId, PlaceOfJob] => [
      jobId,
      { owner, isElsewhere: mirror !== null && mirror !== here && owner !== fleet.name },
    ]);
    const waitingJobs = owners.filter(({ isWaiting }) => isWaiting).length;
    return { store, name: fleet.name, agents, waitingJobs, places: new Map(places) };
  };
  return {
    read: (withResults) => reader.read((client) => read(client, withResults)),
    close: () => reader.close(),
  };
}
