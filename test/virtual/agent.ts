/** One process of the agent, composed as the daemon composes it, over the simulated time, service and disk. */

import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Log } from '../../src/agent/ports/host.ts';
import type { Remote } from '../../src/agent/ports/server.ts';
import { DirectResults } from '../../src/agent/results/download/by-direct.ts';
import { Retention } from '../../src/agent/retention.ts';
import { ServerShare } from '../../src/agent/server-share.ts';
import { type Config, hasFleet, hasJobService } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import { buildEngine, type Engine } from '../../src/daemon/compose.ts';
import { fleetOf } from '../../src/daemon/fleet.ts';
import { AgentHealth } from '../../src/daemon/health.ts';
import { type OwnedStore, openOwnStore } from '../../src/daemon/own-state.ts';
import { Reload } from '../../src/daemon/reload.ts';
import { configuredJobs } from '../../src/daemon/state.ts';
import { asJobtailError, type ErrorCode } from '../../src/errors.ts';
import type { FleetAddress } from '../../src/fleet/database/database.ts';
import type { FleetMember } from '../../src/fleet/member.ts';
import type { JobId } from '../../src/job.ts';
import { UnderWay } from '../../src/notify/deliveries.ts';
import { Notifications } from '../../src/notify/notifications.ts';
import { logLine } from '../../src/printable.ts';
import { Secrets } from '../../src/redact.ts';
import { SignIn } from '../../src/remote/signin/sign-in.ts';
import type { Clock } from '../../src/system/clock.ts';
import { newState } from '../support/engine.ts';
import type { Holder } from '../support/model-remote.ts';
import type { Chance } from './chance.ts';
import { directTransfer } from './direct.ts';
import { Line } from './line.ts';
import { SimulatedPorts } from './ports.ts';
import type { SimulatedReceiver } from './receiver.ts';
import type { SimulatedService } from './service.ts';
import { Ticks } from './ticks.ts';
import { SimulatedProcess, type SimulatedTime } from './time.ts';

/** Where notifications go. */
const RECEIVER = 'https://pager.example.org/hook/the-secret-path';

/** What a run may change of the configuration. */
export const USUAL = {
  minIntervalSeconds: 5,
  maxIntervalSeconds: 300,
  resultsIntervalSeconds: 300,
  concurrency: 2,
  requestsPerMinute: 600 as number | null,
  timeoutSeconds: 10,
  keepGenerations: 2,
  /** At most so many jobs of the user are followed; null: those that are named. */
  mine: null as number | null,
  watch: [] as readonly JobId[],
  overlapBytes: 128,
  stallAfterMinutes: 10 as number | null,
  results: true,
  include: ['**'] as readonly string[],
  exclude: [] as readonly string[],
  maxFileBytes: null as number | null,
  username: 'alice',
  notify: true,
  level: 'info' as 'info' | 'debug',
  retention: '{}',
  /** Of a job that the file names. */
  settleAfterMinutes: 30 as number | null,
  hasNoJobs: false,
};
export type Settings = Readonly<typeof USUAL>;

export interface AgentPlace {
  readonly directory: string;
  readonly time: SimulatedTime;
  readonly service: SimulatedService;
  readonly receiver: SimulatedReceiver;
  readonly chance: Chance;
  /** Called with each line of the log, and each call. */
  readonly note: (line: string) => void;
  /** Called with what else is logged. */
  readonly log: (text: string) => void;
  /** Called when it follows no more: nothing that it began is left. */
  readonly onStopped: () => void;
  /** Runs work that no fault of the disk meets: where the process would end with an error, and be started again. */
  readonly aside: <T>(work: () => T) => T;
  readonly isDiskSlow?: () => boolean;
  /** It follows jobs when it joins. */
  readonly inFleet?: boolean;
  /** A command that holds the lock follows only the jobs that commands ask for. */
  readonly isCommand?: boolean;
  readonly isDirect?: boolean;
  /** Its notifications have a tick when the state changes, and rarely without. */
  readonly hasRareTicks?: boolean;
  /** Called when its state is open, and nothing of it runs. */
  readonly onOpened?: (agent: SimulatedAgent) => void;
}

/** As the daemon has it. */
const TURN_MS = 5_000;

const NOTIFY = `[{on: [finished, failed, canceled, started, results-complete, rewritten, stalled, agent-degraded], url: "${RECEIVER}"}, {on: [match], match: "řádek 7 ", url: "${RECEIVER}"}]`;

/** What an agent of a fleet has of its own, and what all of them share. */
interface InFleet {
  readonly name: string;
  readonly mirrors: string;
}

const yamlOf = (directory: string, settings: Settings, fleet?: InFleet) => `service:
  protocol: soap
  fileTransferUrl: https://m.example.org/FileTransferWs
  jobsUrl: ${settings.hasNoJobs ? 'null' : 'https://m.example.org/JobManagementWs'}
  namespace: http://m.example.org/
  baseUrl: https://m.example.org
  concurrency: ${settings.concurrency}
  requestsPerMinute: ${settings.requestsPerMinute}
  timeoutSeconds: ${settings.timeoutSeconds}
auth: {username: ${settings.username}, passwordFile: password}
mirror: {directory: ${fleet?.mirrors ?? `${directory}/mirror`}, keepGenerations: ${settings.keepGenerations}, minFreeBytes: 0}
state: {directory: ${directory}/state}
poll: {minIntervalSeconds: ${settings.minIntervalSeconds}, maxIntervalSeconds: ${settings.maxIntervalSeconds}, overlapBytes: ${settings.overlapBytes}}
results: {intervalSeconds: ${settings.resultsIntervalSeconds}, transfer: service, enabled: ${settings.results}, include: ${JSON.stringify(settings.include)}, exclude: ${JSON.stringify(settings.exclude)}, maxFileBytes: ${settings.maxFileBytes}}
stallAfterMinutes: ${settings.stallAfterMinutes}
retention: ${settings.retention}
logging: {level: ${settings.level}}
notify: ${settings.notify ? NOTIFY : '[]'}
watch: ${JSON.stringify(settings.watch.map((job) => ({ job: Number(job), settleAfterMinutes: settings.settleAfterMinutes })))}
watchMine: ${settings.mine === null ? 'false' : `{maxJobs: ${settings.mine}}`}
fleet: ${fleet === undefined ? 'null' : `{url: "postgresql://db.example.org/jobtail", name: ${fleet.name}}`}
`;

/** Writes the configuration, and what it names. */
export async function configured(directory: string, settings: Settings, fleet?: InFleet): Promise<Config> {
  const password = path.join(directory, 'password');
  // Another time of change would make the agent try it again.
  if (!existsSync(password)) writeFileSync(password, 'hunter-secret-0501\n', { mode: 0o600 });
  const file = path.join(directory, 'config.yaml');
  writeFileSync(file, yamlOf(directory, settings, fleet));
  return loadConfig(file);
}

interface SimulatedConnection {
  readonly ports: SimulatedPorts;
  readonly line: Line;
  readonly share: ServerShare;
  close(): Promise<void>;
}

export class SimulatedAgent {
  readonly process = new SimulatedProcess();
  readonly holder: Holder = { held: 0 };
  readonly clock: Clock;
  config: Config;
  engine!: Engine;
  line: Line | undefined;
  /** Why the last changed configuration was refused. */
  refused: string | undefined;
  readonly #place: AgentPlace;
  readonly #reload: Reload<SimulatedConnection>;
  #isChanging = false;
  #onReloaded = () => {};
  readonly #owned: OwnedStore;
  readonly #secrets = new Secrets();
  #fleet: FleetMember | undefined;
  readonly health: AgentHealth;
  #underWay = new UnderWay();
  /** Not between a stop or a reload, and what comes of it. */
  isFollowing = false;
  #notifications!: Notifications;
  #retention!: Retention;
  #endKeepUp: () => Promise<void> = async () => {};
  #endTransfers: () => Promise<void> = async () => {};
  /** Of the notifications, if they are rare. */
  readonly #ticks: Ticks | undefined;

  constructor(config: Config, place: AgentPlace) {
    this.config = config;
    this.#place = place;
    this.clock = place.time.clockOf(this.process);
    this.health = new AgentHealth(this.clock.monotonic);
    this.#ticks = place.hasRareTicks === true ? new Ticks(this.clock) : undefined;
    const role = place.isCommand === true ? 'command' : 'agent';
    const options = { secrets: this.#secrets, clock: this.clock, role } as const;
    this.#owned = place.aside(() => {
      // To make one takes longer than a life.
      newState(config.state.directory);
      return openOwnStore(config, this.#log(), options);
    });
    place.aside(() => place.onOpened?.(this));
    this.#reload = new Reload({
      ...{ current: config, clock: this.clock, log: this.#log() },
      connect: async (changed) => {
        this.#isChanging = true;
        return this.#connect(changed);
      },
      onVerdict: (refused) => {
        this.refused = refused;
        if (!this.#isChanging) this.#onReloaded();
      },
    });
    if (place.inFleet !== true) place.aside(() => this.#follow(this.#connect(config)));
    this.#followNext().catch((thrown: unknown) => place.service.offences.push(asJobtailError(thrown).message));
  }

  /** Joins a fleet, as the daemon does, and follows the jobs that it gets. */
  async join(address: FleetAddress): Promise<void> {
    const { config, clock } = this;
    if (!hasFleet(config)) throw new Error('the configuration has no fleet');
    const { store, transfers } = this.#owned;
    this.#fleet = await fleetOf({
      ...{ config, store, transfers, address, clock, version: '0', secrets: this.#secrets, log: this.#log() },
      unready: () => this.health.unready(),
    });
    this.#place.aside(() => this.#follow(this.#connect(config)));
    this.#fleet.start();
  }

  get member(): FleetMember | undefined {
    return this.#fleet;
  }

  get store() {
    return this.#owned.store;
  }

  /** The state changes: the next tick of the notifications reads it. */
  changed(): void {
    this.#ticks?.soon();
  }

  /** A command woke it up. */
  refresh(): void {
    if (this.process.isAlive) this.engine.agent.refresh();
  }

  /** Resolves when the agent follows by the configuration that was just written or reloaded, or refuses it. */
  reload(isAsked: boolean): Promise<void> {
    this.#reload.check({ asked: isAsked });
    return new Promise((resolve) => {
      this.#onReloaded = resolve;
    });
  }

  /** Follows by one configuration after the other, as the daemon does. */
  async #followNext(): Promise<void> {
    for (;;) {
      const { config, connection } = await this.#reload.next();
      if (this.process.isAlive) await this.#stopFollowing();
      if (!this.process.isAlive) return;
      this.config = config;
      this.#place.aside(() => this.#follow(connection));
      this.#isChanging = false;
      this.#onReloaded();
    }
  }

  async stop(): Promise<void> {
    await this.#stopFollowing();
    await this.#reload.close();
    await this.#fleet?.stop();
    await this.#endTransfers();
    this.#owned.close();
    this.process.isAlive = false;
  }

  /** Hands off its jobs; it is to be stopped afterwards. */
  async drain(): Promise<void> {
    await this.#fleet?.drain();
  }

  /** Ends without a last word: only what it wrote is left. */
  kill(): void {
    if (!this.process.isAlive) return;
    this.process.isAlive = false;
    this.#owned.close();
  }

  /** The service as a command reaches it, which is a process of its own. */
  beside(): Remote {
    return this.#connect(this.config, this.#place.time.clockOf(this.process)).ports;
  }

  #connect(config: Config, clock = this.clock): SimulatedConnection {
    const { time, service, chance, isDiskSlow = () => false, inFleet = false } = this.#place;
    const { holder } = this;
    const onOutcome = (outcome: 'ok' | ErrorCode) => clock === this.clock && this.health.note(outcome);
    const { monotonic } = clock;
    const { requestsPerMinute, concurrency, timeoutMs, baseUrl } = config.service;
    const share = new ServerShare({ requestsPerMinute, monotonic, signedInAt: () => session.signedInAt });
    const offend = (what: string) => service.offences.push(`at ${time.passedMs}: ${what}`);
    const intervals = inFleet ? undefined : config.poll;
    const isExplained = () => clock !== this.clock || isDiskSlow();
    const line = new Line({
      clock,
      share,
      concurrency,
      requestsPerMinute,
      isExplained,
      intervals,
      offend,
      workMs: service.workMs,
    });
    const session = new SignIn({
      ...{ baseUrl, auth: config.auth, http: service.http(clock), secrets: this.#secrets, env: {} },
      ...{ nowMs: monotonic, random: chance.next, onWarning: () => {}, signsInAgain: true },
      onSignIn: (event) => {
        onOutcome(event.kind === 'failed' ? event.error.code : 'ok');
        this.#note(`sign-in ${event.kind}`);
      },
    });
    const onCall = (operation: string, outcome: 'ok' | ErrorCode) => {
      onOutcome(outcome);
      this.#note(`${operation} ${outcome}`);
    };
    const ports = new SimulatedPorts({
      ...{ service, line, session, secrets: this.#secrets, timeoutMs, holder, onCall },
    });
    return { ports, line, share, close: async () => {} };
  }

  #follow({ ports, line, share }: SimulatedConnection): void {
    const { chance, receiver, service, time, isDirect = false, isCommand = false } = this.#place;
    const { clock, config, health } = this;
    this.line = line;
    const { store, transfers } = this.#owned;
    const fleet = this.#fleet;
    if (isDirect) {
      const direct = new DirectResults({
        ...{ leases: transfers.leases, clock, random: chance.next, wanted: 'direct', aboveBytes: 1e9 },
        transfers: { NetworkShare: directTransfer(service, clock), SftpScp: directTransfer(service, clock) },
      });
      Object.defineProperty(transfers, 'directOf', { configurable: true, value: () => direct });
    }
    this.engine = buildEngine({
      ...{
        config,
        store,
        transfers,
        remote: ports,
        jobService: hasJobService(config.service) ? ports : null,
        share,
        clock,
        random: chance.next,
      },
      ...(fleet && { ownership: fleet, knownJobs: fleet.knownJobs, shared: fleet }),
      log: this.#log(),
      catchUp: () => this.#notifications.catchUp(),
      follows: isCommand ? 'asked' : 'all',
    });
    const { agent } = this.engine;
    this.#retention = new Retention({
      ...{ rule: config.retention, clock, log: this.#log() },
      // By the `Date` of its responses.
      serviceAheadMs: () => (service.isKnown ? time.wallMs - clock.now() : undefined),
      withJobs: (work) =>
        fleet ? Promise.resolve() : work(store, (jobId, deleteFiles) => agent.forget(jobId, deleteFiles)),
    });
    const refresh = agent.refresh.bind(agent);
    // Commands that woke nobody up are found now and then.
    agent.refresh = () => {
      line.explain();
      refresh();
    };
    this.#notifications = new Notifications({
      ...{ config, store, log: this.#log(), http: receiver.http(clock), clock: this.#ticks?.clock ?? clock },
      ...{ degraded: () => health.unready(), secrets: this.#secrets, underWay: this.#underWay },
      hasJobService: hasJobService(config.service),
      // Threads are not simulated.
      matching: async (pattern, lines) =>
        lines.flatMap((text, index) => (new RegExp(pattern).test(text) ? [index] : [])),
    });
    this.#endKeepUp = transfers.keepUp(ports);
    this.#endTransfers = () => transfers.endAll(ports, AbortSignal.abort());
    agent.onTurn(TURN_MS, () => health.turned());
    if (isCommand) agent.start(null);
    else agent.start(fleet === undefined ? configuredJobs(config) : null, config.watchMine);
    fleet?.attach(agent, configuredJobs(config), () => this.#notifications.unsent());
    this.#notifications.start();
    if (!isCommand) this.#retention.start();
    health.isReady = true;
    this.isFollowing = true;
  }

  async #stopFollowing(): Promise<void> {
    this.isFollowing = false;
    this.#fleet?.detach();
    const removed = this.#retention.stop();
    await this.engine.agent.stop();
    await removed;
    await this.#notifications.stop();
    // For the next configuration: it stopped a delivery, which a daemon that reloads lets go on.
    if (this.#underWay.signal.aborted) this.#underWay = new UnderWay();
    await this.#endKeepUp();
    this.#place.onStopped();
  }

  #note(line: string): void {
    if (this.process.isAlive) this.#place.note(line);
  }

  #log(): Log {
    const lineOf = (fields: object, phrase: string) => {
      const line = logLine({ ...fields }, phrase);
      this.#place.log(JSON.stringify(fields));
      // Ids of events are others in each run.
      return line.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'ID');
    };
    const note = (level: string) => (fields: object, phrase: string) => {
      this.line?.explain();
      this.#note(`${level} ${lineOf(fields, phrase)}`);
    };
    const debug = (fields: object, phrase: string) => {
      if (phrase === 'operation still failing') this.line?.explain();
      this.#place.log(lineOf(fields, phrase));
    };
    return { debug, info: note('info'), warn: note('warn'), error: note('error') };
  }
}
