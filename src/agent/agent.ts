/**
 * The loop: what is due is visited, at its own time and one visit a job at a time; failures are waited out, said once,
 * and delay no other job. The work itself is elsewhere and just returns or throws.
 */
import { setMaxListeners } from 'node:events';
import { asJobtailError, type JobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import type { JobRow, RequestRow, WatchOrder } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import type { Calls } from './calls.ts';
import { QueuedRemote } from './calls.ts';
import { ERRANDS, type Errand, Errands } from './errands.ts';
import { completePass, type PassSummary } from './final-pass.ts';
import { backOff, type IntervalLimits, nextInterval, withJitter } from './interval.ts';
import { type PollContext, pollJob, troubleFrom } from './poll.ts';
import type { Clock, Log, Remote } from './ports.ts';
import type { Results } from './results/results.ts';
import { Troubles } from './troubles.ts';

export interface AgentOptions {
  readonly store: Store;
  readonly remote: Remote;
  readonly calls: Calls;
  readonly poll: PollContext;
  readonly results: Results;
  readonly mirrorDirectory: string;
  readonly intervals: IntervalLimits;
  readonly resultsIntervalMs: number;
  readonly clock: Clock;
  readonly log: Log;
  /** In [0, 1), for jitter. */
  readonly random: () => number;
  /** Follow this job alone, whatever else is watched. */
  readonly only?: JobId;
  /** Told how many bytes were appended to the live mirrors of a job. */
  readonly onAppended?: (bytes: number) => void;
}

/** A poll that took longer makes the next one of its job patient. */
const SLOW_MS = 5_000;
/** Many jobs that start together are spread over this time. */
const SPREAD_MS = 1_000;
const FEW_JOBS = 16;
/** How long the answers to commands are kept. */
const ANSWERS_MS = 24 * 60 * 60_000;

/** What is known of a job that is followed. */
interface Followed {
  intervalMs: number;
  /** Its last poll took long. */
  slow: boolean;
}

interface Failing {
  readonly times: number;
  readonly error: JobtailError;
}

export class Agent {
  readonly #options: AgentOptions;
  readonly #errands: Errands;
  readonly #troubles: Troubles;
  readonly #stop = new AbortController();
  readonly #followed = new Map<JobId, Followed>();
  /** Requests of commands that a pass under way answers. */
  readonly #serving = new Set<number>();
  /** The errands of a job that failed last time. */
  readonly #failing = new Map<JobId, Map<Errand, Failing>>();

  constructor(options: AgentOptions) {
    this.#options = options;
    this.#errands = new Errands({ clock: options.clock, run: (jobId, errand) => this.#run(jobId, errand) });
    this.#troubles = new Troubles(options.log);
    // Every call in flight listens to it.
    setMaxListeners(0, this.#stop.signal);
  }

  /** Begins to follow what the store and the configuration say. */
  start(orders: readonly WatchOrder[]): void {
    this.configure(orders);
    this.refresh();
  }

  /** Brings the jobs of the configuration into the store; a job that left it is brought to its end. */
  configure(orders: readonly WatchOrder[]): void {
    const { store, clock, log } = this.#options;
    const wanted = new Set(orders.map((order) => order.jobId));
    for (const order of orders) {
      const row = store.jobs.get(order.jobId);
      const overruled =
        row !== undefined && row.state !== 'watched' && (row.source === 'command' || row.state === 'settled');
      if (overruled)
        log.info(
          { jobId: order.jobId, state: row.state },
          `job ${order.jobId} is not followed, though configured: it is ${row.state}`,
        );
      else store.transaction(() => store.jobs.watch(order, clock.now()));
    }
    for (const row of store.jobs.all()) {
      if (row.source === 'config' && row.state === 'watched' && !wanted.has(row.jobId))
        store.jobs.setState(row.jobId, 'ending');
    }
  }

  /** Looks at the store: jobs that are new, that are to end, and what commands asked for. */
  refresh(): void {
    const { store, clock, only } = this.#options;
    const requests = store.requests.open().filter(({ requestId }) => !this.#serving.has(requestId));
    const asked = new Set(requests.map((request) => request.jobId));
    for (const job of store.jobs.all()) {
      if (only !== undefined && job.jobId !== only) continue;
      if (job.state === 'ending' || asked.has(job.jobId)) this.#startPass(job.jobId, asked.has(job.jobId));
      else if (job.state !== 'watched') this.#forget(job.jobId);
      else this.#follow(job);
    }
    for (const request of requests) {
      if (store.jobs.get(request.jobId) === undefined)
        answer(store, request, { error: `job ${request.jobId} is not watched` });
    }
    store.requests.forgetAnswered(clock.now() - ANSWERS_MS);
  }

  /** Calls back at least every `everyMs` while the scheduler advances: it goes round, and calls get their turn. */
  onTurn(everyMs: number, callback: () => void): void {
    this.#errands.onTurn(everyMs, () => {
      if (!this.#options.calls.stalled) callback();
    });
  }

  /** Ends calls in flight, waits until everything that was appended is committed. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#errands.stop();
  }

  /** Jobs that are followed. */
  get jobs(): number {
    return this.#followed.size;
  }

  #follow(job: JobRow): void {
    if (this.#followed.has(job.jobId)) return;
    const { intervals, random, log } = this.#options;
    this.#followed.set(job.jobId, { intervalMs: intervals.minIntervalMs, slow: false });
    log.info({ jobId: job.jobId, source: job.source }, `following job ${job.jobId}`);
    this.#errands.due(job.jobId, 'live', this.#followed.size > FEW_JOBS ? random() * SPREAD_MS : 0);
    // A first poll tells which of the listed files are live files.
    const afterPollMs = this.#options.store.liveFiles.ofJob(job.jobId).length > 0 ? intervals.minIntervalMs : 0;
    if (job.results) this.#errands.due(job.jobId, 'results', afterPollMs);
  }

  #forget(jobId: JobId): void {
    this.#followed.delete(jobId);
    this.#failing.delete(jobId);
    this.#errands.cancel(jobId);
  }

  /** One pass that runs, or that failed and waits for its time, is enough, unless a command asked since it began. */
  #startPass(jobId: JobId, asked: boolean): void {
    if (asked || !this.#errands.has(jobId, 'pass')) this.#errands.due(jobId, 'pass', 0);
  }

  /** One errand; never rejects. */
  async #run(jobId: JobId, errand: Errand): Promise<void> {
    try {
      if (errand === 'live') await this.#poll(jobId);
      else if (errand === 'results') await this.#syncResults(jobId);
      else await this.#pass(jobId);
      this.#troubles.worked(`job ${jobId}`);
    } catch (thrown) {
      const error = asJobtailError(thrown);
      if (error.code !== 'aborted' || !this.#stop.signal.aborted) this.#failed(jobId, errand, error);
    }
  }

  async #poll(jobId: JobId): Promise<void> {
    const { clock, poll, intervals, random, log } = this.#options;
    const followed = this.#followed.get(jobId);
    if (followed === undefined) return;
    const startedAt = clock.monotonic();
    const patient = followed.slow || this.#failing.get(jobId)?.has('live') === true;
    const remote = this.#remote(patient ? 'patient' : 'live');
    const polled = await pollJob(jobId, poll, { remote, final: false, signal: this.#stop.signal });
    followed.slow = clock.monotonic() - startedAt > SLOW_MS;

    for (const [file, error] of polled.errors) this.#troubles.failed(`job ${jobId} ${file}`, error);
    for (const file of polled.ends.keys()) this.#troubles.worked(`job ${jobId} ${file}`);
    if (polled.appended > 0) {
      log.debug({ jobId, bytes: polled.appended }, 'grown');
      this.#options.onAppended?.(polled.appended);
    }
    if (polled.refused > 0)
      log.warn({ jobId, refused: polled.refused }, `job ${jobId}: the service sent entries that were not asked for`);
    this.#went(jobId, ['live'], polled.appended > 0, polled.refused);

    // A second look is wanted as soon as news are.
    const news = polled.appended > 0 || [...polled.ends.values()].includes('witness');
    followed.intervalMs = nextInterval(followed.intervalMs, news, intervals);
    if (!this.#followed.has(jobId)) return;
    if (this.#isSettled(jobId)) this.#errands.due(jobId, 'pass', 0);
    else this.#errands.due(jobId, 'live', withJitter(followed.intervalMs, random()));
  }

  async #syncResults(jobId: JobId): Promise<void> {
    const { results, resultsIntervalMs, random, log } = this.#options;
    const end = await results.sync(jobId, { remote: this.#remote('patient'), final: false, signal: this.#stop.signal });
    if (end.changed + end.failed > 0)
      log.info({ jobId, ...end }, `job ${jobId}: ${end.changed} results new or changed, ${end.failed} failed`);
    if (this.#failing.get(jobId)?.has('results')) this.#went(jobId, ['results'], false);
    if (this.#followed.has(jobId)) this.#errands.due(jobId, 'results', withJitter(resultsIntervalMs, random()));
  }

  /** The complete pass that ending, settling or asking commands want; answers them. */
  async #pass(jobId: JobId): Promise<void> {
    const { store, poll, results, mirrorDirectory, clock, intervals, log } = this.#options;
    const job = store.jobs.get(jobId);
    if (job === undefined) return;
    const requests = store.requests.open().filter((request) => request.jobId === jobId);
    for (const { requestId } of requests) this.#serving.add(requestId);
    const options = { poll, results, mirrorDirectory, clock, pauseMs: intervals.minIntervalMs };
    const settling = this.#isSettled(jobId);
    try {
      const summary = await completePass(jobId, {
        ...options,
        remote: this.#remote('live'),
        signal: this.#stop.signal,
      });
      if (summary.appended > 0) this.#options.onAppended?.(summary.appended);
      const settled = settling && summary.appended === 0;
      // A command may have changed the state meanwhile, and that counts.
      const current = store.jobs.get(jobId)?.state ?? job.state;
      const ended = job.state === 'ending' && current === 'ending';
      const state = ended ? 'ended' : settled && current === 'watched' ? 'settled' : current;
      store.jobs.setState(jobId, state);
      if (state !== 'watched')
        await results.endTransfer(jobId, { remote: this.#remote('live'), signal: this.#stop.signal });
      this.#went(jobId, ERRANDS, summary.appended > 0);
      for (const request of requests) answer(store, request, { summary });
      const { verified, openEnds } = summary;
      const level = openEnds.length > 0 ? 'warn' : 'info';
      log[level](
        { jobId, state, verified, openEnds },
        `complete pass over job ${jobId}: ${state}, ${verified} files verified`,
      );
      if (state === 'watched') this.#resume(job, intervals.minIntervalMs);
      else this.#forget(jobId);
      // What was asked for meanwhile wants a pass of its own.
      const more = store.requests.open().some((request) => request.jobId === jobId);
      if (more || state === 'ending') this.#errands.due(jobId, 'pass', 0);
    } catch (thrown) {
      const { message, code, hint } = asJobtailError(thrown);
      if (!this.#stop.signal.aborted)
        for (const request of requests) answer(store, request, { error: message, code, hint });
      throw thrown;
    } finally {
      for (const { requestId } of requests) this.#serving.delete(requestId);
    }
  }

  /** After a pass, the job is polled again as before. */
  #resume(job: JobRow, delayMs: number): void {
    if (!this.#followed.has(job.jobId)) {
      this.#follow(job);
      return;
    }
    this.#errands.due(job.jobId, 'live', delayMs);
    if (job.results) this.#errands.due(job.jobId, 'results', Math.max(delayMs, this.#options.resultsIntervalMs));
  }

  #failed(jobId: JobId, errand: Errand, error: JobtailError): void {
    const { store, intervals, random, log } = this.#options;
    const failing = this.#failing.get(jobId) ?? new Map<Errand, Failing>();
    const times = (failing.get(errand)?.times ?? 0) + 1;
    this.#failing.set(jobId, failing.set(errand, { times, error }));
    this.#troubles.failed(`job ${jobId}`, error);
    if (error.code === 'internal') log.debug({ jobId, stack: error.stack }, 'where it happened');
    const delayMs = withJitter(backOff(times, error.retryAfterMs, intervals), random());
    try {
      this.#note(jobId, false, 0);
      const job = store.jobs.get(jobId);
      // A pass that a command asked for is not tried again: the command was told. One that ends the job is.
      if (errand === 'pass' && job?.state === 'watched') {
        failing.delete('pass');
        this.#resume(job, delayMs);
        return;
      }
    } catch (thrown) {
      this.#troubles.failed('the state', asJobtailError(thrown));
    }
    if (errand === 'pass' || this.#followed.has(jobId)) this.#errands.due(jobId, errand, delayMs);
  }

  /** Errands of a job went through. */
  #went(jobId: JobId, errands: readonly Errand[], grew: boolean, refused = 0): void {
    for (const errand of errands) this.#failing.get(jobId)?.delete(errand);
    this.#note(jobId, grew, refused);
  }

  /** Keeps how the job stands, for `status`. */
  #note(jobId: JobId, grew: boolean, refused: number): void {
    const { store, clock } = this.#options;
    const now = clock.now();
    const failing = this.#failing.get(jobId);
    const worst = ERRANDS.flatMap((errand) => failing?.get(errand) ?? [])[0];
    const error = troubleFrom(worst?.error, store.jobs.get(jobId)?.error ?? null, now);
    const failures = worst?.times ?? 0;
    store.transaction(() =>
      store.jobs.endVisit(jobId, { polledAt: now, grownAt: grew ? now : null, refused, failures, error }),
    );
  }

  /** Quiet for as long as its order says it takes to settle. */
  #isSettled(jobId: JobId): boolean {
    const job = this.#options.store.jobs.get(jobId);
    if (job === undefined || job.settleAfterMs === null || job.state !== 'watched') return false;
    return this.#options.clock.now() - (job.grownAt ?? job.watchedAt) >= job.settleAfterMs;
  }

  #remote(lane: 'live' | 'patient'): Remote {
    return new QueuedRemote(this.#options.remote, this.#options.calls, lane);
  }
}

/** What a command that asked for a pass is told. */
export type PassAnswer =
  | { readonly summary: PassSummary }
  | { readonly error: string; readonly code?: string; readonly hint?: string | undefined };

function answer(store: Store, request: RequestRow, text: PassAnswer): void {
  store.requests.answer(request.requestId, JSON.stringify(text));
}
