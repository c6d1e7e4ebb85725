/** One generated history: a cluster, a service, a clock, and the real agent on them. */
import { type JobId, LIVE_FILE_NAMES } from '../../../src/job.ts';
import { RENEWED_MS } from '../../../src/store/jobs.ts';
import type { Store } from '../../../src/store/store.ts';
import { type Settings, type SimulatedAgent, USUAL } from '../agent.ts';
import { type ResultKind, SimulatedJob } from '../cluster.ts';
import { ended, mendSecret, reload, verified } from '../commands.ts';
import type { Fault } from '../faults.ts';
import { begun } from '../simulated-world.ts';
import { World } from '../world.ts';
import { Promises } from './promises.ts';
import { type FaultPlan, type JobPlan, lineOf, type Setting, type Step } from './steps.ts';

export const MINUTE_MS = 60_000;
const FIRST_JOB = 501;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** A file is flushed so late after the end of its job, at most. */
const FLUSHED_MS = 40_000;
const MANY = 60;
/** A history that is not settled by then never is. */
const SETTLED_OLD_MS = 10 * MINUTE_MS;

const SETTINGS = {
  ...{ ...USUAL, minIntervalSeconds: 60, maxIntervalSeconds: 120, resultsIntervalSeconds: 1_200 },
  ...{ requestsPerMinute: null, overlapBytes: 1_020, stallAfterMinutes: null, settleAfterMinutes: null },
};
/** Of a file of configuration, in days. */
const SETTLED_OLD_DAYS = SETTLED_OLD_MS / DAY_MS;

export class Life extends World {
  readonly setting: Setting;
  readonly promises: Promises;
  /** Faults that stay until all is healed. */
  lasting: readonly Fault[] = [];
  #isChanged = false;
  /** Of the machine, at the kill that is to come. */
  #hasPower = true;
  /** How far the clock of this machine was set ahead. */
  clockMs = 0;

  private constructor(setting: Setting) {
    super(setting.chance);
    this.setting = setting;
    const { service } = this;
    this.promises = new Promises(this);
    this.disk.onTransaction = () => {
      this.#isChanged = true;
      this.agent?.changed();
    };
    Object.assign(service, { workMs: setting.workMs, spelling: setting.spelling, clockMs: setting.clockMs });
    service.hasStamps = setting.hasDates;
    service.isFollowed = (jobId) => this.promises.isFollowed(jobId);
  }

  static of(setting: Setting): Promise<Life> {
    return begun(new Life(setting), (life) => life.#begin());
  }

  get jobs(): readonly SimulatedJob[] {
    return [...this.service.jobs.values()];
  }

  job(number: number): SimulatedJob | undefined {
    return this.jobs[number % this.jobs.length];
  }

  /** With a job, a command that holds the lock starts, and follows it. */
  override start(only?: JobId): void {
    const { setting, promises } = this;
    const onOpened = (agent: SimulatedAgent) => {
      this.agent = agent;
      agent.process.wallAheadMs = this.clockMs;
      // What is delivered is limited by time: what is to be delivered is looked at.
      const { outbox } = agent.store;
      const add = outbox.add.bind(outbox);
      outbox.add = (deliveries) => {
        add(deliveries);
        for (const { event } of deliveries) promises.event(event);
      };
      promises.started(only);
      if (only !== undefined) this.#follow(only);
    };
    super.begin({
      isCommand: only !== undefined,
      isDirect: setting.transfer === 'direct',
      hasRareTicks: true,
      onOpened,
    });
  }

  /** As `agent wait` does while it serves the state: it renews its request. */
  #follow(jobId: JobId): void {
    const { store, clock, process } = this.agent;
    const requestId = store.transaction(() => {
      if (store.jobs.get(jobId) === undefined && !store.jobs.isForgotten(jobId))
        store.jobs.watch(this.#requestOf(jobId), clock.now());
      return store.requests.add(jobId, 'follow', clock.now());
    });
    const renew = () => {
      if (!process.isAlive || this.disk.isDead) return;
      this.disk.aside(() => store.transaction(() => store.requests.renew(requestId, clock.now())));
      this.later(RENEWED_MS, renew);
    };
    this.later(RENEWED_MS, renew);
  }

  async stop(): Promise<void> {
    if (!this.isUp) return;
    this.note('the agent stops');
    const removed = this.promises.removed;
    await ended(this, this.agent.stop());
    const more = this.promises.removed - removed;
    if (more > 2) throw new Error(`${more} old jobs were removed within a stop`);
  }

  override async kill(hasPower: boolean): Promise<void> {
    await super.kill(hasPower);
    this.promises.killed();
  }

  override async pass(ms: number): Promise<void> {
    await this.time.pass(ms);
    while (this.disk.isDead) {
      await this.kill(this.#hasPower);
      this.start();
    }
    this.checkConduct();
    if (!this.isUp) return;
    this.disk.aside(() => this.promises.look());
    this.disk.aside(() => this.promises.check());
  }

  async act(step: Step): Promise<void> {
    await this.pass(step.afterMs);
    this.note(`- ${lineOf(step)}`);
    this.agent.line?.explain();
    await this.#act(step);
    if (!this.isUp && !this.disk.isDead) this.start();
    await this.pass(0);
    this.check();
  }

  command(work: (store: Store) => void): void {
    if (!this.isUp || this.disk.isDead) return;
    this.disk.aside(() => this.store.transaction(() => work(this.store)));
    this.agent.changed();
    this.agent.refresh();
  }

  async #begin(): Promise<void> {
    const { time, setting } = this;
    for (const [index, plan] of setting.jobs.entries()) this.#submit(index, plan);
    const jobs = setting.jobs.flatMap(({ followed }, index) => (followed === 'config' ? [index] : []));
    const retention = setting.retention ? `{settledDays: ${SETTLED_OLD_DAYS}, deleteFiles: true}` : '{}';
    await this.configure({
      ...SETTINGS,
      retention,
      concurrency: setting.concurrency,
      ...this.#configured(jobs, setting.mine),
    });
    this.lasting = setting.jobs.flatMap(({ fault }, job) => (fault === null ? [] : [this.#faultOf({ ...fault, job })]));
    this.fail();
    this.start();
    for (const [index, { followed, state }] of setting.jobs.entries()) {
      const job = this.job(index);
      if (followed === 'command' && state !== 'none' && job !== undefined) this.#watch(job.id, true);
    }
    this.note(`clock ${time.wallMs}`);
  }

  #submit(index: number, { state, lines, results, hasMany, ...plan }: JobPlan): void {
    const now = this.time.wallMs;
    const job = new SimulatedJob(`${FIRST_JOB + index}` as JobId, plan);
    this.service.jobs.set(job.id, job);
    if (state === 'none') return;
    const beganAt = state === 'long over' ? now - 10 * DAY_MS : now - 60 * MINUTE_MS;
    job.to('Configuring', beganAt);
    if (state === 'configuring') return;
    job.to('Queued', beganAt);
    if (state === 'queued') return;
    job.to('Running', beganAt);
    if (lines > 0) job.write(0, 'stdout', lines);
    for (const [name, kind] of results.entries()) job.result(resultName(name, kind), kind, beganAt);
    for (let name = 0; hasMany && name < MANY; name += 1) job.result(`/out/many-${name}.dat`, 'file', beganAt);
    if (state !== 'running') job.to('Finished', beganAt + 30 * MINUTE_MS);
  }

  #configured(numbers: readonly number[], mine: number | null): Pick<Settings, 'watch' | 'mine'> {
    return { watch: [...new Set(numbers.flatMap((number) => this.job(number)?.id ?? []))], mine };
  }

  #watch(jobId: JobId, results: boolean, onlyNew = false): void {
    this.command((store) => {
      if (onlyNew && store.jobs.get(jobId) !== undefined) return;
      store.jobs.watch({ ...this.#requestOf(jobId), results }, this.agent.clock.now());
      this.promises.watched(jobId);
    });
  }

  #requestOf(jobId: JobId) {
    const usual = { tasks: null, files: LIVE_FILE_NAMES, results: true, settleAfterMs: null } as const;
    const isConfigured = this.settings.watch.includes(jobId);
    return { jobId, ...usual, source: isConfigured ? 'config' : 'command' } as const;
  }

  async #act(step: Step): Promise<void> {
    const { service, time } = this;
    const now = time.wallMs;
    const job = 'job' in step ? this.job(step.job) : undefined;
    switch (step.do) {
      case 'start':
        return void (job !== undefined && job.state !== 'Running' && !job.isDeleted && job.to('Running', now));
      case 'queue':
        return void (job?.state === 'Configuring' && job.to('Queued', now));
      case 'end': {
        if (job?.state !== 'Running') return;
        job.end(step.state, now);
        const { deletedAfterMs } = step;
        const isSame = () => job.runs.at(-1)?.endedAt === now;
        if (deletedAfterMs !== null) this.later(deletedAfterMs, () => isSame() && job.to('Deleted', time.wallMs));
        return;
      }
      case 'delete':
        return void (job?.isOver && job.to('Deleted', now));
      case 'add-task':
        if (job?.state !== 'Running' || job.tasks.length > 2) return;
        job.addTask();
        return job.noteReport(now);
      case 'stop-showing':
        // What the text lacks is waited for.
        if (job !== undefined) service.failed.add(job.id);
        for (const [, , file, content] of job?.liveFiles() ?? []) {
          file.shownBytes ??= content.length;
          file.wasBehind = true;
        }
        return;
      case 'write':
      case 'result': {
        const isLate = job?.isOver && now - (job.endedAt ?? 0) > FLUSHED_MS;
        if (job === undefined || job.tasks.length === 0 || job.isDeleted || isLate) return;
        if (step.do === 'write') return job.write(this.chance.whole(0, 2), step.file, step.lines);
        return job.result(resultName(step.name, step.kind), step.kind, now);
      }
      case 'delay':
        service.delays[step.of] = step.ms;
        return;
      case 'forget-job':
        if (job !== undefined && step.of !== 'report') service.forgotten.list.add(job.id);
        if (job !== undefined && step.of !== 'list') service.forgotten.report.add(job.id);
        return;
      case 'spell':
        service.spelling = step.spelling;
        return;
      case 'fail':
        return void service.faults.unshift(this.#faultOf(step.fault));
      case 'heal':
        return this.heal();
      case 'rewrite':
        if (job?.state === 'Running') job.tasks[0]?.files.stdout.rewrite(step.lines);
        return;
      case 'pause':
        this.#allFail();
        return void service.faults.unshift({
          ...{ code: step.code, retryAfterMs: step.ms, share: 1, until: this.time.passedMs + step.ms },
        });
      case 'sessions':
        this.#allFail();
        service.refusesSignIn = step.areRefused;
        if (step.withCalls > 0) return service.forgetSessionsWith(step.withCalls);
        return service.forgetSessions();
      case 'release':
        return service.upgrade();
      case 'receiver':
        this.receiver.state = step.state;
        return;
      case 'disk':
        this.#allFail();
        return this.disk.failAfter(step.calls, step.code);
      case 'full-disk':
        this.#allFail();
        this.disk.full = step.full;
        return this.later(step.ms, () => {
          this.disk.full = 'no';
        });
      case 'slow-disk':
        this.disk.flushMs = step.ms;
        return;
      case 'standstill':
        this.agent.process.stoppedUntil = time.passedMs + step.ms;
        return;
      case 'verify':
        if (job !== undefined && this.isUp && !this.disk.isDead) await verified(this, job.id);
        return;
      case 'watch':
        return job && this.#watch(job.id, step.results);
      case 'wait':
        return job && this.#watch(job.id, true, true);
      case 'unwatch':
        return this.command((store) => {
          if (job === undefined || store.jobs.get(job.id)?.state !== 'watched') return;
          store.jobs.unwatch(job.id, step.isNow ? 'ended' : 'ending');
          if (!step.isNow) store.requests.add(job.id, 'unwatch', this.agent.clock.now());
          this.promises.unwatched(job.id);
        });
      case 'sync':
        return this.command((store) => {
          if (job === undefined || store.jobs.get(job.id) === undefined) return;
          this.promises.asked(store.requests.add(job.id, 'sync', this.agent.clock.now()), job.id, 'sync');
        });
      case 'forget':
        return this.command((store) => {
          if (job !== undefined && this.promises.mayForget(job.id))
            this.promises.asked(store.requests.add(job.id, 'forget-files', this.agent.clock.now()), job.id, 'forget');
        });
      case 'mine':
        return this.command((store) => {
          const rule = ruleOf(step.max);
          if (rule === null) store.watchMine.remove('command');
          else store.watchMine.save({ ...rule, source: 'command', since: this.agent.clock.now() });
        });
      case 'configure': {
        const changes = this.#configured(step.jobs, step.mine);
        for (const id of this.settings.watch) this.promises.unwatched(id);
        // Before the reload is over, jobs are followed again.
        for (const id of changes.watch) this.promises.watched(id);
        return reload(this, changes, false);
      }
      case 'restart':
        return this.stop();
      case 'set-clock':
        this.clockMs += step.ms;
        this.agent.process.wallAheadMs = this.clockMs;
        return;
      case 'kill':
        if (step.calls === 0) return this.kill(step.hasPower);
        this.#hasPower = step.hasPower;
        return this.disk.endAfter(step.calls, () => this.agent.kill());
      case 'foreground': {
        if (job === undefined) return;
        await this.stop();
        this.start(job.id);
        await this.pass(step.ms);
        return this.stop();
      }
      case 'nothing':
        return;
    }
  }

  heal(): void {
    const { service, disk } = this;
    this.fail();
    if (!disk.isDead) disk.heal();
    this.time.resume(this.agent.process);
    this.receiver.state = 'takes';
    if (service.refusesSignIn) mendSecret(this);
    service.refusesSignIn = false;
    service.delays.list = 0;
    service.delays.report = 0;
    service.forgotten.list.clear();
    service.forgotten.report.clear();
  }

  /** What fails from now on, beside what does until all is healed. */
  fail(...faults: readonly FaultPlan[]): void {
    this.service.faults = [...faults.map((fault) => this.#faultOf(fault)), ...this.lasting];
  }

  #allFail(): void {
    for (const { id } of this.jobs) this.service.failed.add(id);
  }

  #faultOf({ of, code, job }: FaultPlan): Fault {
    const jobId = job === null ? undefined : this.job(job)?.id;
    return { of, code, ...(jobId && { jobId }), share: 1, until: Number.POSITIVE_INFINITY };
  }

  override checkConduct(): void {
    super.checkConduct();
    if (!this.#isChanged || !this.isUp || this.disk.isDead) return;
    this.#isChanged = false;
    this.disk.aside(() => this.promises.look());
  }
}

const resultName = (name: number, kind: ResultKind) =>
  kind === 'bad name' ? `/out/\u0001${name}` : `/out/result-${name}.dat`;

function ruleOf(maxJobs: number | null) {
  return maxJobs === null ? null : { include: ['**'], exclude: [], maxAgeMs: DAY_MS, maxJobs };
}
