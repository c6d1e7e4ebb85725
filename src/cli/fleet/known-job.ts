/** What a fleet knows of a job. */
import type { FleetConfig } from '../../config/config.ts';
import { fleetAddress } from '../../daemon/fleet.ts';
import { FleetClient } from '../../fleet/client.ts';
import type { JobId } from '../../job.ts';
import { Secrets } from '../../redact.ts';
import type { JobInformationRow, WatchState } from '../../store/rows.ts';
import { commandLog } from '../process.ts';
import type { KnownJob } from '../show/known-job.ts';
import { withView } from './view.ts';

export class JobOfFleet implements KnownJob {
  readonly #config: FleetConfig;
  readonly #jobId: JobId;
  /** Undefined where the database cannot be asked: then the mirrors are shown all the same. */
  #client: FleetClient | undefined;
  isKnowable = false;
  state: WatchState | undefined;
  information: JobInformationRow | undefined;
  isFollowed = false;
  elsewhere: string | undefined;

  constructor(config: FleetConfig, jobId: JobId) {
    this.#config = config;
    this.#jobId = jobId;
  }

  async look(): Promise<void> {
    const [config, only] = [this.#config, this.#jobId];
    try {
      this.#client ??= await this.#connect();
      const client = this.#client;
      const { name, separateMirrors } = config.fleet;
      const owner = separateMirrors ? ((await client.owners(only))[0]?.owner ?? name) : name;
      this.elsewhere = owner === name ? undefined : owner;
      this.isFollowed = (await client.agents()).some(({ state }) => state !== 'gone');
      await withView({ config, client, only }, (store) => {
        this.state = store.jobs.get(only)?.state;
        this.information = store.jobInformation.get(only);
      });
      this.isKnowable = true;
    } catch {
      this.isKnowable = false;
    }
  }

  async close(): Promise<void> {
    await this.#client?.close();
  }

  async #connect(): Promise<FleetClient> {
    const address = await fleetAddress(this.#config, commandLog(), new Secrets());
    return await FleetClient.look(address);
  }
}
