/** One process of the agent in a generated history, composed as the daemon composes it. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Log } from '../../../src/agent/ports/host.ts';
import { DirectResults } from '../../../src/agent/results/download/by-direct.ts';
import { Retention } from '../../../src/agent/retention.ts';
import type { Config } from '../../../src/config/config.ts';
import { buildEngine, type Engine } from '../../../src/daemon/compose.ts';
import { type OwnedStore, openOwnStore } from '../../../src/daemon/own-state.ts';
import { configuredJobs } from '../../../src/daemon/state.ts';
import type { NotifyEvent } from '../../../src/notification.ts';
import { UnderWay } from '../../../src/notify/deliveries.ts';
import { Notifications } from '../../../src/notify/notifications.ts';
import { Secrets } from '../../../src/redact.ts';
import type { Role } from '../../../src/store/lock.ts';
import type { Clock } from '../../../src/system/clock.ts';
import type { Chance } from '../chance.ts';
import { SimulatedProcess, type SimulatedTime } from '../time.ts';
import type { LifeService } from './service.ts';

export interface ProcessPlace {
  readonly config: Config;
  readonly time: SimulatedTime;
  readonly service: LifeService;
  readonly chance: Chance;
  readonly isDirect: boolean;
  /** A command that holds the lock follows only the jobs that commands ask for. */
  readonly isCommand: boolean;
  readonly log: (line: string) => void;
  readonly onEvent: (event: NotifyEvent) => void;
}

/** A tick of the notifications, which does nothing unless the state changed, or a delivery is due. */
const TICK_MS = 1_000;
const IDLE_TICK_MS = 30_000;

/** How the receiver of notifications answers. */
const TAKEN = {
  ...{ status: 204, contentType: 'text/plain', charset: 'utf-8', retryAfterMs: undefined },
  body: (async function* () {})(),
};

/** A state that no agent has used yet: to make it takes longer than a history. */
let newDatabase: Buffer | undefined;

export class LifeProcess {
  readonly process = new SimulatedProcess();
  readonly clock: Clock;
  readonly #place: ProcessPlace;
  readonly #owned: OwnedStore;
  readonly engine: Engine;
  readonly #ports: ReturnType<LifeService['portsFor']>;
  readonly #notifications: Notifications;
  readonly #retention: Retention;
  readonly #endKeepUp: () => Promise<void>;
  #tick: (() => void) | undefined;
  #isTickSoon = false;

  constructor(place: ProcessPlace) {
    this.#place = place;
    const { config, time, service, chance, isDirect, isCommand } = place;
    this.clock = time.clockOf(this.process);
    this.#ports = service.portsFor(this.clock);
    const log = this.#log();
    this.#owned = openNew(config, log, this.clock, isCommand ? 'command' : 'agent');
    const { store, transfers } = this.#owned;
    const direct = new DirectResults({
      ...{ leases: transfers.leases, clock: this.clock, random: chance.next, wanted: 'direct', aboveBytes: 1e9 },
      transfers: { NetworkShare: this.#ports.transfer, SftpScp: this.#ports.transfer },
    });
    Object.defineProperty(transfers, 'directOf', { value: () => (isDirect ? direct : null) });
    this.engine = buildEngine({
      ...{ config, store, transfers, remote: this.#ports, jobService: this.#ports },
      ...{ clock: this.clock, random: chance.next, log },
      catchUp: () => this.#notifications.catchUp(),
      follows: isCommand ? 'asked' : 'all',
    });
    this.#notifications = new Notifications({
      ...{ config, store, log, clock: this.#clockOfTicks(), matching: async () => [] },
      http: { close: async () => {}, request: async () => TAKEN },
      ...{ degraded: () => undefined, hasJobService: true, secrets: new Secrets(), underWay: new UnderWay() },
    });
    // What is delivered is limited by time: what is to be delivered is looked at.
    const { outbox } = store;
    const add = outbox.add.bind(outbox);
    outbox.add = (deliveries) => {
      add(deliveries);
      for (const { event } of deliveries) place.onEvent(event);
    };
    const { agent } = this.engine;
    this.#retention = new Retention({
      ...{ rule: config.retention, clock: this.clock, log },
      // By the `Date` of its responses.
      serviceAheadMs: () => (service.isKnown ? time.wallMs - this.clock.now() : undefined),
      withJobs: (work) => work(store, (jobId, deleteFiles) => agent.forget(jobId, deleteFiles)),
    });
    this.#endKeepUp = transfers.keepUp(this.#ports);
  }

  get store() {
    return this.#owned.store;
  }

  start(): void {
    const { config, isCommand } = this.#place;
    if (isCommand) this.engine.agent.start(null);
    else this.engine.agent.start(configuredJobs(config), config.watchMine);
    this.#notifications.start();
    if (!isCommand) this.#retention.start();
  }

  /** The state changes: the next tick of the notifications reads it. */
  changed(): void {
    if (this.#tick === undefined || this.#isTickSoon) return;
    this.#isTickSoon = true;
    const tick = this.#tick;
    this.clock.timer(TICK_MS, () => tick());
  }

  refresh(): void {
    if (this.process.isAlive) this.engine.agent.refresh();
  }

  async stop(): Promise<void> {
    const removed = this.#retention.stop();
    await this.engine.agent.stop();
    await removed;
    await this.#notifications.stop();
    await this.#endKeepUp();
    await this.#owned.transfers.endAll(this.#ports, AbortSignal.abort());
    this.kill();
  }

  kill(): void {
    if (!this.process.isAlive) return;
    this.process.isAlive = false;
    this.#owned.close();
  }

  /** Ticks come with changes, and rarely without: thousands that do nothing would take most of the time. */
  #clockOfTicks(): Clock {
    const { clock } = this;
    return {
      ...clock,
      timer: (delayMs, callback) => {
        if (delayMs !== TICK_MS) return clock.timer(delayMs, callback);
        const cancel = clock.timer(IDLE_TICK_MS, () => this.#tick?.());
        this.#isTickSoon = false;
        this.#tick = () => {
          cancel();
          this.#tick = undefined;
          callback();
        };
        return () => {
          cancel();
          this.#tick = undefined;
        };
      },
    };
  }

  #log(): Log {
    const note = (level: string) => (fields: object, phrase: string) =>
      void (this.process.isAlive && this.#place.log(`${level} ${phrase} ${JSON.stringify(fields)}`));
    return { debug: () => {}, info: note('info'), warn: note('warn'), error: note('error') };
  }
}

function openNew(config: Config, log: Log, clock: Clock, role: Role): OwnedStore {
  const { directory } = config.state;
  const file = path.join(directory, 'agent.db');
  if (newDatabase !== undefined && !existsSync(file)) {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    writeFileSync(file, newDatabase, { mode: 0o600 });
  }
  const isFirst = newDatabase === undefined && !existsSync(file);
  const owned = openOwnStore(config, log, { secrets: new Secrets(), clock, role });
  if (!isFirst) return owned;
  owned.close();
  newDatabase = readFileSync(file);
  return openOwnStore(config, log, { secrets: new Secrets(), clock, role });
}
