/**
 * The fleet of a configuration: the address of its database, and this agent as a member. Loads the modules of the
 * fleet.
 */
import { randomUUID } from 'node:crypto';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { Log, Remote } from '../agent/ports.ts';
import { type FleetConfig, serviceAddress } from '../config/config.ts';
import { asJobtailError } from '../errors.ts';
import type { FleetClient } from '../fleet/client.ts';
import type { FleetCopy } from '../fleet/copy.ts';
import type { FleetAddress } from '../fleet/database.ts';
import type { FleetMember } from '../fleet/member.ts';
import type { AgentRow } from '../fleet/register.ts';
import type { JobId } from '../job.ts';
import { Secrets } from '../redact.ts';
import type { Store } from '../store/store.ts';
import { type Clock, systemClock } from '../system/clock.ts';
import { flushPath } from '../system/directories.ts';
import { Secret } from '../system/secret.ts';
import type { FleetAgent } from '../view/contract/events.ts';
import type { FleetRead, FleetSource, PlaceOfJob } from '../view/fleet.ts';
import type { Transfers } from './transfers.ts';

/** Limit for releasing the grants of a job; the next owner releases the rest. */
const END_TRANSFER_MS = 5_000;

/** @throws JobtailError config, secret-unavailable */
export async function fleetAddress(
  { fleet }: Pick<FleetConfig, 'fleet'>,
  log: Pick<Log, 'warn'>,
  secrets: Secrets,
): Promise<FleetAddress> {
  const { schema, url, urlFile, urlCredential } = fleet;
  if (url !== null) return { url, schema, secrets };
  const source =
    urlFile === null
      ? ({ kind: 'credential', name: urlCredential ?? '' } as const)
      : ({ kind: 'file', path: urlFile } as const);
  const onWarning = (message: string) => log.warn({ scope: 'the fleet', err: message }, 'secret not protected');
  const secret = new Secret({ source, name: 'address of the database', env: process.env, onWarning });
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

/** @throws JobtailError config, secret-unavailable, permission */
export async function fleetOf(options: DaemonFleetOptions): Promise<DaemonFleet> {
  const { config, version, store, transfers, secrets, log, clock = systemClock } = options;
  const { directory } = config.mirror;
  const address = options.address ?? (await fleetAddress(config, log, secrets));
  const { FleetMember } = await import('../fleet/member.ts');
  const at: Pick<DaemonFleet, 'remote'> = { remote: undefined };
  const member = new FleetMember({
    ...{ ...address, settings: config.fleet, store, log, clock },
    mirror: await mirrorIdentity(directory),
    about: { host: os.hostname(), pid: process.pid, version, view: config.view?.publicUrl ?? null },
    unready: options.unready,
    endTransfer: async (jobId) => {
      if (at.remote === undefined) return;
      const limit = new AbortController();
      const cancel = clock.timer(END_TRANSFER_MS, () => limit.abort());
      await transfers.leases.end(jobId, at.remote, limit.signal).finally(cancel);
    },
    lagMs: () => {
      const { oldestPollAt } = store.totals.watched();
      return oldestPollAt === null ? null : Math.max(0, clock.now() - oldestPollAt);
    },
  });
  transfers.leases.report = (jobId) => member.keep(jobId);
  return Object.assign(at, { member });
}

export interface DaemonFleet {
  readonly member: FleetMember;
  remote: Remote | undefined;
}

const FILE = '.jobtail-mirror';

/** The id of a mirror directory; the first agent creates it. @throws JobtailError */
export async function mirrorIdentity(directory: string): Promise<string> {
  const file = path.join(directory, FILE);
  const own = `${file}.${randomUUID()}`;
  try {
    const found = await readIfThere(file);
    if (found !== undefined) return found;
    await fs.writeFile(own, `${randomUUID()}\n`, { mode: 0o640, flag: 'wx', flush: true });
    // link() is atomic, also between agents and on network file systems.
    await fs.link(own, file).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
    await flushPath(directory);
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

export interface FleetOfViewOptions extends Pick<FleetConfig, 'fleet'> {
  readonly mirrorDirectory: string;
  readonly service: string;
}

/** A part of the configuration, which a thread can be given. */
export const fleetOfViewOptions = ({ fleet, mirror, service }: FleetConfig): FleetOfViewOptions => ({
  ...{ fleet, mirrorDirectory: mirror.directory, service: serviceAddress(service) },
});

/** What the view shows of the fleet: a copy of its rows, by one connection of its own, which ends when it is idle. */
export class FleetOfView implements FleetSource {
  readonly #options: FleetOfViewOptions;
  #client: FleetClient | undefined;
  #copy: FleetCopy | undefined;

  constructor(options: FleetOfViewOptions) {
    this.#options = options;
  }

  async read(withResults: readonly JobId[]): Promise<FleetRead> {
    const { fleet, mirrorDirectory, service } = this.#options;
    try {
      const [{ FleetClient }, { FleetCopy }] = await Promise.all([
        import('../fleet/client.ts'),
        import('../fleet/copy.ts'),
      ]);
      // The agent logs what is wrong with the secret, and rows that are ignored.
      this.#client ??= await FleetClient.openReadOnly(await fleetAddress({ fleet }, { warn() {} }, new Secrets()));
      const client = this.#client;
      this.#copy ??= new FleetCopy(service);
      const store = this.#copy.store;
      const here = await readIfThere(path.join(mirrorDirectory, FILE));
      const owners = await client.owners();
      const agents = (await client.agents()).map(shownAgent);
      await this.#copy.refresh(client, { withResults });
      const places = owners.map(({ jobId, owner, mirror }): [JobId, PlaceOfJob] => [
        jobId,
        { owner, isElsewhere: mirror !== null && mirror !== here && owner !== fleet.name },
      ]);
      const waitingJobs = owners.filter(({ isWaiting }) => isWaiting).length;
      return { store, name: fleet.name, agents, waitingJobs, places: new Map(places) };
    } catch (error) {
      await this.#disconnect();
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#disconnect();
    this.#copy?.close();
  }

  async #disconnect(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    await client?.close();
  }
}

const shownAgent = ({ isDraining: _, pid: __, startedAt: ___, ...agent }: AgentRow): FleetAgent => ({
  ...agent,
  seenAt: Math.round(agent.seenAt),
});
