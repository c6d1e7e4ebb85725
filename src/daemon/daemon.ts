/** The running agent: follows jobs with one configuration after the other; reports to systemd and Prometheus. */
import { once } from 'node:events';
import path from 'node:path';
import type { Agent } from '../agent/loop/agent.ts';
import { Retention } from '../agent/retention.ts';
import { type Config, hasFleet, warnOfPlainHttp } from '../config/config.ts';
import { asJobtailError, EXIT, JobtailError } from '../errors.ts';
import type { FleetMember } from '../fleet/member.ts';
import { LinkedAbort } from '../linked-abort.ts';
import { UnderWay } from '../notify/deliveries.ts';
import { Notifications } from '../notify/notifications.ts';
import type { Secrets } from '../redact.ts';
import { type Outage, saveOutage } from '../store/outage.ts';
import { type Store, WAKE_FILE } from '../store/store.ts';
import { sleep, systemClock } from '../system/clock.ts';
import { ApiThread } from './api-thread.ts';
import { buildEngine, type Engine } from './compose.ts';
import { connect } from './connection.ts';
import { fleetOf } from './fleet.ts';
import { withJobsOfFleet } from './fleet-retention.ts';
import { AgentHealth, observing } from './health.ts';
import type { AdjustableLog } from './log.ts';
import { MetricsPort } from './metrics-port.ts';
import type { Observer } from './observer.ts';
import { type Prepared, Reload } from './reload.ts';
import { configuredJobs } from './state.ts';
import { type Notifier, reloading } from './systemd.ts';
import type { Transfers } from './transfers.ts';
import { PLAIN_VIEW_HINT, plainView, ViewThread, viewSettingsOf } from './view-thread.ts';
import { FileWatch, watchedFiles } from './watch-files.ts';

export interface ProcessOptions {
  readonly version: string;
  /** In place of `logging.level`. */
  readonly logLevel?: Config['logging']['level'] | undefined;
  readonly config: Config;
  readonly log: AdjustableLog;
  readonly secrets: Secrets;
  readonly logLinesLost: () => number;
  readonly notifier: Notifier;
  readonly stop: AbortSignal;
}

export interface DaemonOptions extends ProcessOptions {
  readonly store: Store;
  readonly transfers: Transfers;
  readonly onReady: () => void;
}

/** Another process removed or replaced the state: writes are lost, so it must be opened again. */
export class StateGone extends JobtailError {
  /** The one in force. */
  readonly config: Config;

  constructor(config: Config) {
    super('store', `the state in ${config.state.directory} was removed or replaced while the agent used it`, {
      hint: 'stop the agent before its state is touched; offsets are recovered from the mirrors',
    });
    this.config = config;
  }
}

/** systemd waits this long for the first attempt to sign in. */
const FIRST_SIGN_IN_MS = 30_000;
const TURN_MS = 5_000;

export class Daemon {
  readonly #options: DaemonOptions;
  readonly #health: AgentHealth;
  readonly #port: MetricsPort;
  readonly #observer: Observer;
  readonly #turnMs: number;
  #engine: Engine | undefined;
  readonly #view: ViewThread;
  readonly #api: ApiThread;
  #reportedAt = Number.NEGATIVE_INFINITY;
  #stateGone: (() => void) | undefined;
  #fleet: FleetMember | undefined;
  #isDrained = false;
  readonly #underWay = new UnderWay();

  constructor(options: DaemonOptions) {
    this.#options = options;
    this.#health = new AgentHealth(
      () => performance.now(),
      (outage) => this.#saveOutage(outage),
    );
    this.#saveOutage(undefined);
    const { watchdogMs = Number.POSITIVE_INFINITY } = options.notifier;
    this.#turnMs = Math.min(TURN_MS, watchdogMs / 4);
    this.#view = new ViewThread({
      log: options.log,
      onState: (lacking) => {
        this.#health.view = lacking;
      },
    });
    this.#api = new ApiThread(options.log);
    this.#observer = observing(this.#health, this.#view.counts);
    this.#port = new MetricsPort({
      ...options,
      health: this.#health,
      observer: this.#observer,
      callsWaiting: () => this.#engine?.callsWaiting() ?? 0,
      fleetMember: () => this.#fleet,
    });
  }

  /** Follows jobs until it is stopped; rejects with StateGone if the state was removed. */
  async run(): Promise<void> {
    const { config, log, stop, store, secrets } = this.#options;
    let inForce = config;
    const connectBy = (by: Config) => {
      // Before they are read; also those of a refused configuration, which may have to be corrected.
      watched.watch(watchedFiles([inForce, by], path.join(store.directory, WAKE_FILE), reporters));
      const { capabilities } = store;
      return connect(by, log, { observer: this.#observer, secrets, capabilities, signsInAgain: true });
    };
    const reload = new Reload({
      current: config,
      connect: connectBy,
      log,
      onVerdict: (refused) => {
        if (refused !== undefined) this.#observer.emit('reloaded', 'refused');
        this.#health.refused = refused;
        if (this.#health.isReady) this.#options.notifier.send({ STATUS: this.#statusText() });
      },
    });
    const watched = new FileWatch();
    const reporters = {
      onWake: () => this.#engine?.agent.refresh(),
      onConfig: (how: { readonly asked: boolean }) => reload.check(how),
      onSecret: () => this.#engine?.agent.tryAgain(({ exitCode }) => exitCode === EXIT.signIn),
    };
    const hangup = () => reload.check({ asked: true });
    try {
      process.on('SIGHUP', hangup);
      this.#fleet = await this.#joinFleet(config);
      // Without the file, chokidar would watch its directory, with every write of the database.
      store.wake();
      let at: Prepared | undefined = { config, connection: await connectBy(config) };
      reload.check({ asked: false });
      while (at !== undefined) {
        inForce = at.config;
        const { connection } = at;
        at = await this.#follow(at, reload).finally(() => connection.close());
      }
    } finally {
      process.off('SIGHUP', hangup);
      watched.close();
      await reload.close();
      await this.#fleet?.stop();
      await this.#port.close();
      await Promise.all([this.#view.close(), this.#api.close()]);
      if (stop.aborted || this.#isDrained) log.info({}, 'stopped');
    }
  }

  /** Follows jobs with one configuration; resolves with the next one, or with undefined at a stop. */
  async #follow({ config, connection }: Prepared, reload: Reload): Promise<Prepared | undefined> {
    const { log, store, transfers, stop, notifier } = this.#options;
    log.level = this.#options.logLevel ?? config.logging.level;
    warnOfPlainHttp(config, log);
    const { remote, jobService, share } = connection;
    const fleet = this.#fleet;
    const degraded = () => (this.#health.isReady ? this.#health.unready() : undefined);
    const { secrets } = connection;
    const hasJobService = jobService !== null;
    const ofNotify = { config, store, log, degraded, hasJobService, secrets, underWay: this.#underWay };
    const notifications = new Notifications(ofNotify);
    const engine = buildEngine({
      config,
      store,
      transfers,
      remote,
      jobService,
      share,
      log,
      catchUp: () => notifications.catchUp(),
      observer: this.#observer,
      ...(fleet && { ownership: fleet, knownJobs: fleet.knownJobs, shared: fleet }),
    });
    const { agent } = engine;
    const over = new AbortController();
    let isReplaced = false;
    const endKeepUp = transfers.keepUp(remote);
    const retention = new Retention({
      rule: config.retention,
      clock: systemClock,
      log,
      serviceAheadMs: () => connection.serviceClock.aheadMs,
      withJobs: (work) =>
        fleet !== undefined && hasFleet(config)
          ? withJobsOfFleet(config, log, work)
          : work(store, (jobId, deleteFiles) => agent.forget(jobId, deleteFiles)),
    });
    this.#engine = engine;
    try {
      await this.#port.serve(config);
      await this.#serveView(config);
      await this.#api.use(config);
      agent.onTurn(this.#turnMs, () => {
        this.#turned(agent);
        if (this.#health.failure !== undefined && agent.jobs === 0) this.#signInAgain(connection);
      });
      // In a fleet, a command is placed for each configured job, and its owner follows it.
      agent.start(fleet === undefined ? configuredJobs(config) : null, config.watchMine);
      fleet?.attach(agent, configuredJobs(config), () => notifications.unsent());
      notifications.start();
      retention.start();
      log.info({ jobs: agent.jobs, pid: process.pid }, 'agent ready');
      if (!this.#health.isReady) await this.#firstSignIn(connection, agent, over.signal);
      if (stop.aborted) return undefined;
      this.#health.isReady = true;
      this.#options.onReady();
      notifier.send({ READY: '1', STATUS: this.#statusText() });
      const gone = new Promise<never>((_, reject) => {
        this.#stateGone = () => reject(new StateGone(config));
      });
      const stopped = once(stop, 'abort', over).then(() => undefined);
      const next = await Promise.race([reload.next(), stopped, gone, ...(fleet ? [fleet.ended] : [])]);
      isReplaced = next !== undefined;
      if (isReplaced) this.#observer.emit('reloaded', 'taken');
      // Stopped by a signal or a command, or replaced by a new configuration.
      else if (fleet !== undefined && (!stop.aborted || config.fleet?.drainOnStop === true)) await this.#drain(fleet);
      return next;
    } finally {
      over.abort();
      this.#engine = undefined;
      notifier.send(stop.aborted ? { STOPPING: '1', STATUS: 'stopping' } : reloading());
      fleet?.detach();
      const removed = retention.stop();
      await agent.stop();
      await removed;
      await (isReplaced ? notifications.replace() : notifications.stop());
      await endKeepUp();
      // Private keys end with the process, or with the state that requested them.
      if (stop.aborted || this.#isDrained || store.isGone()) await transfers.endAll(remote, over.signal);
    }
  }

  /** Without `fleet` in the configuration, it forgets jobs of an earlier membership: other agents own them now. */
  async #joinFleet(config: Config): Promise<FleetMember | undefined> {
    const { store, log } = this.#options;
    if (!hasFleet(config)) {
      const left = store.fleetLeases.all();
      for (const { jobId } of left) store.transaction(() => store.portableRows.forget(jobId));
      if (left.length > 0) log.warn({ jobs: left.length }, 'left the fleet, other agents keep its jobs');
      return undefined;
    }
    const fleet = await fleetOf({ ...this.#options, config, unready: () => this.#health.unready() });
    fleet.start();
    return fleet;
  }

  async #drain(fleet: FleetMember): Promise<void> {
    this.#options.notifier.send({ STATUS: 'handing off the jobs to other agents' });
    await fleet.drain();
    this.#isDrained = true;
  }

  /** The attempt counts, not its success: the agent waits for a service that is down. A longer one goes on. */
  async #firstSignIn({ session }: Prepared['connection'], agent: Agent, over: AbortSignal): Promise<void> {
    const enough = new LinkedAbort(this.#options.stop);
    const attempt = session.current(over).catch((thrown: unknown) => {
      if (!over.aborted) agent.serviceFailed(asJobtailError(thrown));
    });
    void attempt.finally(() => enough.abort());
    await sleep(systemClock, FIRST_SIGN_IN_MS, enough.signal).catch(() => {});
    enough.release();
  }

  /** Without jobs, no call would find out that the service answers again, except for the list of the job service. */
  #signInAgain({ session, jobService }: Prepared['connection']): void {
    const signedIn = session.current(this.#options.stop).then((grant) => {
      if (jobService === null && this.#health.failure !== undefined) session.lost(grant);
    });
    signedIn.catch(() => {});
  }

  /** For `agent status`; a full disk must not stop the agent. */
  #saveOutage(outage: Outage | undefined): void {
    try {
      saveOutage(this.#options.store.directory, outage);
    } catch (thrown) {
      this.#options.log.debug({ err: asJobtailError(thrown).message }, 'outage not stored');
    }
  }

  #turned(agent: Agent): void {
    const now = performance.now();
    this.#health.turned();
    if (this.#options.store.isGone()) this.#stateGone?.();
    if (now - this.#reportedAt < this.#turnMs * 0.9 || this.#engine?.agent !== agent) return;
    this.#reportedAt = now;
    this.#options.notifier.send({ WATCHDOG: '1', ...(this.#health.isReady ? { STATUS: this.#statusText() } : {}) });
  }

  #statusText(): string {
    const text = this.#health.text(this.#engine?.agent.jobs ?? 0, this.#options.store);
    return this.#fleet?.numbers.isUp === false ? `${text}, no connection to the database of the fleet` : text;
  }

  /** The view reads the state and the mirrors in its own thread. */
  async #serveView(config: Config): Promise<void> {
    const { version, log } = this.#options;
    const plain = plainView(config.view);
    if (plain !== undefined)
      log.warn({ scope: 'the view', code: 'config', err: plain, hint: PLAIN_VIEW_HINT }, 'view not encrypted');
    const settings = { program: version, agentPid: process.pid };
    const { view, fleet } = config;
    await this.#view.use(view === null ? null : { settings: viewSettingsOf(config, settings), fleet });
  }
}
