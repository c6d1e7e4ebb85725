/** One process of the agent, composed as the daemon composes it, over the simulated time, service and disk. */

import { writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Log } from '../../src/agent/ports.ts';
import { ServerShare } from '../../src/agent/server-share.ts';
import type { Config } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import { buildEngine, type Engine } from '../../src/daemon/compose.ts';
import { configuredJobs, type OwnedStore, openOwnStore } from '../../src/daemon/state.ts';
import type { JobId } from '../../src/job.ts';
import { logLine } from '../../src/printable.ts';
import { Secrets } from '../../src/redact.ts';
import { SignIn } from '../../src/remote/signin/sign-in.ts';
import type { Clock } from '../../src/system/clock.ts';
import type { Holder } from '../support/memory-content.ts';
import type { Chance } from './chance.ts';
import { Line } from './line.ts';
import { SimulatedPorts } from './ports.ts';
import type { SimulatedService } from './service.ts';
import { SimulatedProcess, type SimulatedTime } from './time.ts';

/** What a run changes of the configuration. */
export interface Settings {
  readonly minIntervalSeconds: number;
  readonly maxIntervalSeconds: number;
  readonly resultsIntervalSeconds: number;
  readonly concurrency: number;
  readonly requestsPerMinute: number | null;
  readonly timeoutSeconds: number;
  readonly keepGenerations: number;
  readonly mine: boolean;
  readonly watch: readonly JobId[];
}

export interface AgentPlace {
  readonly directory: string;
  readonly time: SimulatedTime;
  readonly service: SimulatedService;
  readonly chance: Chance;
  /** Called with each line of the log, and each call. */
  readonly note: (line: string) => void;
}

const yamlOf = (directory: string, settings: Settings) => `service:
  fileTransferUrl: https://m.example.org/FileTransferWs
  jobsUrl: https://m.example.org/JobManagementWs
  namespace: http://m.example.org/
  baseUrl: https://m.example.org
  concurrency: ${settings.concurrency}
  requestsPerMinute: ${settings.requestsPerMinute}
  timeoutSeconds: ${settings.timeoutSeconds}
auth: {username: alice, passwordFile: password}
mirror: {directory: ${directory}/mirror, keepGenerations: ${settings.keepGenerations}, minFreeBytes: 0}
state: {directory: ${directory}/state}
poll: {minIntervalSeconds: ${settings.minIntervalSeconds}, maxIntervalSeconds: ${settings.maxIntervalSeconds}}
results: {intervalSeconds: ${settings.resultsIntervalSeconds}, transfer: soap}
watch: ${JSON.stringify(settings.watch.map((job) => ({ job: Number(job), settleAfterMinutes: 30 })))}
watchMine: ${settings.mine ? '{mostJobs: 4}' : 'false'}
`;

/** Writes the configuration, and what it names. */
export async function configured(directory: string, settings: Settings): Promise<Config> {
  writeFileSync(path.join(directory, 'password'), 'the password\n', { mode: 0o600 });
  const file = path.join(directory, 'config.yaml');
  writeFileSync(file, yamlOf(directory, settings));
  return loadConfig(file);
}

export class SimulatedAgent {
  readonly process = new SimulatedProcess();
  readonly holder: Holder = { held: 0 };
  readonly clock: Clock;
  config: Config;
  engine!: Engine;
  line!: Line;
  readonly #place: AgentPlace;
  readonly #owned: OwnedStore;
  readonly #secrets = new Secrets();
  #endKeepUp: () => Promise<void> = async () => {};

  constructor(config: Config, place: AgentPlace) {
    this.config = config;
    this.#place = place;
    this.clock = place.time.clockOf(this.process);
    this.#owned = openOwnStore(config, this.#log(), this.#secrets, this.clock);
    this.#follow();
  }

  get store() {
    return this.#owned.store;
  }

  /** Stops, and follows by another configuration, as the daemon does. */
  async reload(config: Config): Promise<void> {
    await this.#stopFollowing();
    this.config = config;
    this.#follow();
  }

  async stop(): Promise<void> {
    await this.#stopFollowing();
    this.#owned.close();
    this.process.isAlive = false;
  }

  /** Ends without a last word: only what it wrote is left. */
  kill(): void {
    if (!this.process.isAlive) return;
    this.process.isAlive = false;
    this.#owned.close();
  }

  #follow(): void {
    const { time, service, chance } = this.#place;
    const { clock, config, holder } = this;
    const { monotonic } = clock;
    const { requestsPerMinute, concurrency, timeoutMs, baseUrl } = config.service;
    const share = new ServerShare({ requestsPerMinute, monotonic });
    const offend = (what: string) => service.offences.push(`at ${time.passedMs}: ${what}`);
    this.line = new Line({ clock, share, concurrency, requestsPerMinute, offend });
    const session = new SignIn({
      ...{ baseUrl, auth: config.auth, http: service.http(clock), secrets: this.#secrets, env: {} },
      ...{ nowMs: monotonic, random: chance.next, onWarning: () => {} },
      onSignIn: ({ kind }) => this.#note(`sign-in ${kind}`),
    });
    const onCall = (operation: string, outcome: string) => this.#note(`${operation} ${outcome}`);
    const ports = new SimulatedPorts({
      ...{ service, line: this.line, session, secrets: this.#secrets, timeoutMs, holder, onCall },
    });
    const { store, transfers } = this.#owned;
    this.engine = buildEngine({
      ...{ config, store, transfers, remote: ports, jobService: ports, share, clock, random: chance.next },
      log: this.#log(),
    });
    this.#endKeepUp = transfers.keepUp(ports);
    this.engine.agent.start(configuredJobs(config), config.watchMine);
  }

  async #stopFollowing(): Promise<void> {
    await this.engine.agent.stop();
    await this.#endKeepUp();
  }

  #note(line: string): void {
    if (this.process.isAlive) this.#place.note(line);
  }

  #log(): Log {
    const note = (level: string) => (fields: object, phrase: string) =>
      this.#note(`${level} ${logLine({ ...fields }, phrase)}`);
    return { debug: () => {}, info: note('info'), warn: note('warn'), error: note('error') };
  }
}
