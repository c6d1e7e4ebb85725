/** One generated history: a cluster, a service, a clock, and the real agent on them. */
import fs from 'node:fs';
import path from 'node:path';
import type { Config } from '../../../src/config/config.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { type JobId, LIVE_FILE_NAMES } from '../../../src/job.ts';
import { RENEWED_MS } from '../../../src/store/jobs.ts';
import type { Store } from '../../../src/store/store.ts';
import { memoryDirectory } from '../../support/temp-directory.ts';
import { SimulatedJob } from '../cluster.ts';
import { checkFiles } from '../safety.ts';
import { begun, SimulatedWorld } from '../simulated-world.ts';
import { LifeProcess } from './process.ts';
import { Promises } from './promises.ts';
import { LifeService } from './service.ts';
import { type Fault, type JobPlan, lineOf, type Setting, type Step } from './steps.ts';

export const MINUTE_MS = 60_000;
const FIRST_JOB = 501;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** A stop takes no longer, whatever hangs (docs/service.md). */
const MAX_STOP_MS = 15_000;
/** A file is flushed so late after the end of its job, at most. */
const FLUSHED_MS = 40_000;
const MANY = 60;
/** A history that is not settled by then never is. */
const SETTLED_OLD_MS = 10 * MINUTE_MS;

let usual: Promise<Config> | undefined;

/** Read once: a file of configuration takes longer than a history. */
async function usualConfig(): Promise<Config> {
  const directory = fs.mkdtempSync(path.join(memoryDirectory(), 'jobtail-life-'));
  try {
    fs.writeFileSync(path.join(directory, 'password'), 'hunter-secret\n', { mode: 0o600 });
    const file = path.join(directory, 'config.yaml');
    fs.writeFileSync(
      file,
      `service: {protocol: soap, fileTransferUrl: 'https://m.example.org/F', jobsUrl: 'https://m.example.org/J', namespace: 'http://m.example.org/', baseUrl: 'https://m.example.org', timeoutSeconds: 10}
auth: {username: alice, passwordFile: password}
mirror: {directory: ${directory}/mirror, minFreeBytes: 0}
state: {directory: ${directory}/state}
poll: {minIntervalSeconds: 60, maxIntervalSeconds: 120}
results: {intervalSeconds: 1200, transfer: service}
notify: [{on: [finished, failed, canceled, started, results-complete], url: 'https://pager.example.org/'}]
`,
    );
    return await loadConfig(file);
  } finally {
    fs.rmSync(directory, { recursive: true });
  }
}

export class World extends SimulatedWorld {
  readonly setting: Setting;
  readonly service: LifeService;
  readonly promises: Promises;
  agent!: LifeProcess;
  config: Config;
  #isChanged = false;
  /** How far the clock of this machine was set ahead. */
  clockMs = 0;

  private constructor(setting: Setting, config: Config) {
    super(setting.chance, 'life', (ms) => new Promise((resolve) => void this.agent.clock.timer(ms, resolve)));
    this.setting = setting;
    this.disk.onTransaction = () => {
      this.#isChanged = true;
      this.agent?.changed();
    };
    this.service = new LifeService(setting, this.chance, {
      wallMs: () => this.time.wallMs,
      isFollowed: (jobId) => this.promises.isFollowed(jobId),
    });
    this.promises = new Promises(this);
    this.time.onEvent = () => this.#look();
    const at = (name: string) => path.join(this.directory, name);
    const { mine, retention } = setting;
    this.config = {
      ...config,
      service: { ...config.service, concurrency: setting.concurrency },
      mirror: { ...config.mirror, directory: at('mirror') },
      state: { ...config.state, directory: at('state') },
      watchMine: ruleOf(mine),
      retention: { settledMs: retention ? SETTLED_OLD_MS : null, deleteFiles: true },
    };
  }

  static async make(setting: Setting): Promise<World> {
    usual ??= usualConfig();
    return await begun(new World(setting, await usual), (world) => world.#begin());
  }

  get store(): Store {
    return this.agent.store;
  }

  get isUp(): boolean {
    return this.agent?.process.isAlive === true;
  }

  get jobs(): readonly SimulatedJob[] {
    return [...this.service.jobs.values()];
  }

  job(number: number): SimulatedJob | undefined {
    return this.jobs[number % this.jobs.length];
  }

  /** A kill may come while it starts. */
  start(only?: JobId): void {
    const { config, time, service, chance, promises } = this;
    this.note(only === undefined ? 'the agent starts' : `a command follows job ${only}`);
    const isDirect = this.setting.transfer === 'direct';
    const place = { config, time, service, chance, isDirect, isCommand: only !== undefined };
    const log = (line: string) => this.note(line);
    this.agent = this.disk.aside(() => new LifeProcess({ ...place, log, onEvent: (event) => promises.event(event) }));
    this.agent.process.wallAheadMs = this.clockMs;
    promises.started(only);
    try {
      if (only !== undefined) this.#follow(only);
      this.agent.start();
    } catch (error) {
      if (!this.disk.isDead) throw error;
    }
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
      clock.timer(RENEWED_MS, renew);
    };
    clock.timer(RENEWED_MS, renew);
  }

  async stop(): Promise<void> {
    if (!this.isUp) return;
    this.note('the agent stops');
    const removed = this.promises.removed;
    await this.time.passWhile(this.agent.stop(), MAX_STOP_MS, this.agent.process);
    const more = this.promises.removed - removed;
    if (more > 2) throw new Error(`${more} old jobs were removed within a stop`);
  }

  async kill(): Promise<void> {
    this.note('the agent is killed');
    this.disk.isDead = true;
    this.agent.kill();
    await this.machine.settle();
    this.disk.restart();
    this.promises.killed();
  }

  async pass(ms: number): Promise<void> {
    await this.time.pass(ms);
    while (this.disk.isDead) {
      await this.kill();
      this.start();
    }
    this.#check();
  }

  async act(step: Step): Promise<void> {
    await this.pass(step.afterMs);
    this.note(`- ${lineOf(step)}`);
    await this.#act(step);
    if (!this.isUp && !this.disk.isDead) this.start();
    await this.pass(0);
    this.checkFiles();
  }

  command(work: (store: Store) => void): void {
    if (!this.isUp || this.disk.isDead) return;
    this.disk.aside(() => this.store.transaction(() => work(this.store)));
    this.agent.changed();
    this.agent.refresh();
  }

  protected override killAll(): void {
    this.agent?.kill();
  }

  #begin(): void {
    const { time, setting } = this;
    for (const [index, plan] of setting.jobs.entries()) this.#submit(index, plan);
    const jobs = setting.jobs.flatMap(({ followed }, index) => (followed === 'config' ? [index] : []));
    this.config = { ...this.config, watch: this.#configured(jobs) };
    this.service.lasting = setting.jobs.flatMap(({ fault }, job) => (fault === null ? [] : [{ ...fault, job }]));
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
    for (const [name, kind] of results.entries()) job.result(this.service.resultName(name, kind), kind, beganAt);
    for (let name = 0; hasMany && name < MANY; name += 1) job.result(`/out/many-${name}.dat`, 'file', beganAt);
    if (state !== 'running') job.to('Finished', beganAt + 30 * MINUTE_MS);
  }

  #configured(numbers: readonly number[]): Config['watch'] {
    const ids = new Set(numbers.flatMap((number) => this.job(number)?.id ?? []));
    return [...ids].map((job) => ({
      ...{ job, tasks: null, files: LIVE_FILE_NAMES, results: true, settleAfterMs: null, stallAfterMs: null },
    })) as Config['watch'];
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
    const isConfigured = this.config.watch.some(({ job }) => job === jobId);
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
        return job.result(service.resultName(step.name, step.kind), step.kind, now);
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
        service.faults.push(this.#faultOf(step.fault));
        return;
      case 'heal':
        return this.heal();
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
      case 'configure':
        await this.stop();
        for (const { job: id } of this.config.watch) this.promises.unwatched(id);
        this.config = { ...this.config, watch: this.#configured(step.jobs), watchMine: ruleOf(step.mine) };
        for (const { job: id } of this.config.watch) this.promises.watched(id);
        return;
      case 'restart':
        return this.stop();
      case 'set-clock':
        this.clockMs += step.ms;
        this.agent.process.wallAheadMs = this.clockMs;
        return;
      case 'kill':
        if (step.calls === 0) return this.kill();
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
    const { service } = this;
    service.faults = [];
    service.delays.list = 0;
    service.delays.report = 0;
    service.forgotten.list.clear();
    service.forgotten.report.clear();
  }

  #faultOf(fault: Fault): Fault {
    return fault.job === null ? fault : { ...fault, job: fault.job % this.jobs.length };
  }

  #look(): void {
    if (!this.#isChanged || !this.isUp || this.disk.isDead) return;
    this.#isChanged = false;
    this.disk.aside(() => this.promises.look());
  }

  #check(): void {
    this.requireNone(this.service.offence);
    if (!this.isUp) return;
    this.disk.aside(() => this.promises.look());
    this.disk.aside(() => this.promises.check());
  }

  /** What holds of the files at every moment (safety.ts). */
  checkFiles(): void {
    const { service, mirrors, disk } = this;
    disk.aside(() => checkFiles({ service, mirrors, disk, store: this.isUp ? this.store : undefined }));
  }
}

function ruleOf(maxJobs: number | null) {
  return maxJobs === null ? null : { include: ['**'], exclude: [], maxAgeMs: DAY_MS, maxJobs };
}
