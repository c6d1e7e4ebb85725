/**
 * The loop: what is due is visited, at its own time and one visit a job at a time; failures are waited out, said once,
 * and delay no other job. The work itself is elsewhere and just returns or throws.
 */
import { asJobtailError, type JobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import type { JobRow, RequestRow, WatchOrder } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import type { Calls } from './calls.ts';
import { QueuedRemote } from './calls.ts';
import { completePass, type PassSummary } from './final-pass.ts';
import { backOff, type IntervalLimits, nextInterval, withJitter } from './interval.ts';
import { type PollContext, pollJob, troubleFrom } from './poll.ts';
import type { Clock, Log, Remote } from './ports.ts';
import type { Results } from './results.ts';
import { Schedule } from './schedule.ts';
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
}

type Errand = 'live' | 'results' | 'pass';

/** A poll that took longer makes the next one of its job patient. */
const SLOW_MS = 5_000;
/** Half of the errands of many jobs that start together are spread over this time. */
const SPREAD_MS = 1_000;

export class Agent {
  readonly #options: AgentOptions;
  readonly #schedule = new Schedule();
  readonly #troubles: Troubles;
  readonly #stop = new AbortController();
  /** Visits under way, by errand; a pass waits for the others of its job. */
  readonly #running = new Map<string, Promise<void>>();
  readonly #intervals = new Map<JobId, number>();
  /** Errands that failed last time, and how often in a row. */
  readonly #failing = new Map<string, { readonly times: number; readonly error: JobtailError }>();
  readonly #slow = new Set<JobId>();
  #cancelTimer: (() => void) | undefined;

  constructor(options: AgentOptions) {
    this.#options = options;
    this.#troubles = new Troubles(options.log);
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
    const asked = new Set(store.requests.open().map((request) => request.jobId));
    for (const job of store.jobs.all()) {
      if (only !== undefined && job.jobId !== only) continue;
      const followed = job.state === 'watched' || job.state === 'ending';
      if (!followed) this.#forget(job.jobId);
      else if (job.state === 'ending' || asked.has(job.jobId)) this.#due(job.jobId, 'pass', 0);
      else this.#follow(job);
    }
    for (const request of store.requests.open()) {
      if (store.jobs.get(request.jobId) === undefined)
        this.#answer(request, { error: `job ${request.jobId} is not watched` });
    }
    store.requests.forgetAnswered(clock.now() - 24 * 60 * 60_000);
    this.#arm();
  }

  /** Ends calls in flight, waits until everything that was appended is committed. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#cancelTimer?.();
    await Promise.all(this.#running.values());
  }

  /** Jobs that are followed. */
  get jobs(): number {
    return this.#intervals.size;
  }

  #follow(job: JobRow): void {
    if (this.#intervals.has(job.jobId)) return;
    const { intervals, random } = this.#options;
    this.#intervals.set(job.jobId, intervals.minIntervalMs);
    this.#options.log.info({ jobId: job.jobId, source: job.source }, `following job ${job.jobId}`);
    this.#due(job.jobId, 'live', this.#intervals.size > 16 ? random() * SPREAD_MS : 0);
    if (job.results) this.#due(job.jobId, 'results', 0);
  }

  #forget(jobId: JobId): void {
    if (!this.#intervals.delete(jobId)) return;
    for (const errand of ['live', 'results', 'pass'] as const) this.#schedule.remove(nameOf(jobId, errand));
  }

  #due(jobId: JobId, errand: Errand, delayMs: number): void {
    const name = nameOf(jobId, errand);
    if (errand === 'pass' && this.#running.has(name)) return;
    this.#schedule.set(name, this.#options.clock.monotonic() + delayMs);
    this.#arm();
  }

  #arm(): void {
    this.#cancelTimer?.();
    const next = this.#schedule.nextDue();
    if (next === undefined || this.#stop.signal.aborted) return;
    const { clock } = this.#options;
    // Timers hold at most 2^31 ms; an hour is long enough to look again.
    const delayMs = Math.min(Math.max(0, next - clock.monotonic()), 60 * 60_000);
    this.#cancelTimer = clock.timer(delayMs, () => this.#runDue());
  }

  #runDue(): void {
    for (const name of this.#schedule.takeDue(this.#options.clock.monotonic())) {
      const [errand, jobId] = name.split(' ') as [Errand, JobId];
      const visit = this.#visit(jobId, errand).finally(() => this.#running.delete(name));
      this.#running.set(name, visit);
    }
    this.#arm();
  }

  /** One visit; never rejects. */
  async #visit(jobId: JobId, errand: Errand): Promise<void> {
    const scope = `job ${jobId}`;
    // A pass has the job for itself; what is due meanwhile is done by it.
    const others = (['live', 'results', 'pass'] as const).filter((other) => other !== errand);
    if (errand === 'pass') await Promise.all(others.map((other) => this.#running.get(nameOf(jobId, other))));
    else if (this.#running.has(nameOf(jobId, 'pass'))) return;
    try {
      if (errand === 'live') await this.#poll(jobId);
      else if (errand === 'results') await this.#syncResults(jobId);
      else await this.#pass(jobId);
      this.#troubles.worked(scope);
    } catch (thrown) {
      const error = asJobtailError(thrown);
      if (error.code === 'aborted' && this.#stop.signal.aborted) return;
      this.#failed(jobId, errand, error);
    }
  }

  async #poll(jobId: JobId): Promise<void> {
    const { clock, store, poll, intervals, random, log } = this.#options;
    const startedAt = clock.monotonic();
    const patient = this.#slow.has(jobId) || this.#failing.has(nameOf(jobId, 'live'));
    const remote = this.#remote(patient ? 'patient' : 'live');
    const polled = await pollJob(jobId, poll, { remote, final: false, signal: this.#stop.signal });
    if (clock.monotonic() - startedAt > SLOW_MS) this.#slow.add(jobId);
    else this.#slow.delete(jobId);

    const grew = polled.appended > 0 || [...polled.ends.values()].includes('witness');
    const intervalMs = nextInterval(this.#intervals.get(jobId), grew, intervals);
    for (const [file, error] of polled.errors) this.#troubles.failed(`job ${jobId} ${file}`, error);
    for (const file of polled.ends.keys()) this.#troubles.worked(`job ${jobId} ${file}`);
    if (polled.appended > 0) log.debug({ jobId, bytes: polled.appended }, 'grown');
    if (polled.refused > 0)
      log.warn({ jobId, refused: polled.refused }, 'the service sent entries that were not asked for');
    this.#failing.delete(nameOf(jobId, 'live'));
    this.#noteVisit(jobId, polled.appended > 0, polled.refused);

    const job = store.jobs.get(jobId);
    if (job !== undefined && this.#intervals.has(jobId)) {
      this.#intervals.set(jobId, intervalMs);
      if (isSettled(job, clock.now())) this.#due(jobId, 'pass', 0);
      else this.#due(jobId, 'live', withJitter(intervalMs, random()));
    }
  }

  async #syncResults(jobId: JobId): Promise<void> {
    const { results, resultsIntervalMs, random, log } = this.#options;
    const end = await results.sync(jobId, { remote: this.#remote('patient'), final: false, signal: this.#stop.signal });
    if (this.#failing.delete(nameOf(jobId, 'results'))) this.#noteVisit(jobId, false);
    if (end.fetched + end.failed > 0) log.debug({ jobId, ...end }, 'results synced');
    if (this.#intervals.has(jobId)) this.#due(jobId, 'results', withJitter(resultsIntervalMs, random()));
  }

  /** The complete pass that ended, settling or asking commands want; answers them. */
  async #pass(jobId: JobId): Promise<void> {
    const { store, poll, results, mirrorDirectory, clock, intervals, log } = this.#options;
    const requests = store.requests.open().filter((request) => request.jobId === jobId);
    const job = store.jobs.get(jobId);
    if (job === undefined) return;
    let summary: PassSummary;
    try {
      summary = await completePass(jobId, {
        poll,
        results,
        mirrorDirectory,
        remote: this.#remote('live'),
        clock,
        pauseMs: intervals.minIntervalMs,
        signal: this.#stop.signal,
      });
    } catch (thrown) {
      const error = asJobtailError(thrown);
      if (!this.#stop.signal.aborted) {
        for (const request of requests)
          this.#answer(request, { error: error.message, code: error.code, hint: error.hint });
      }
      throw error;
    }
    const settled = isSettled(job, clock.now()) && summary.openEnds.length === 0;
    const state = job.state === 'ending' ? 'ended' : settled ? 'settled' : 'watched';
    store.jobs.setState(jobId, state);
    for (const errand of ['live', 'results', 'pass'] as const) this.#failing.delete(nameOf(jobId, errand));
    this.#noteVisit(jobId, summary.appended > 0);
    for (const request of requests) this.#answer(request, { summary });
    const { verified, openEnds } = summary;
    log.info({ jobId, state, verified, openEnds }, `complete pass over job ${jobId}: ${state}`);
    if (state === 'watched') this.#resume(job, 0);
    else this.#forget(jobId);
  }

  /** After a pass, the job is polled again as before. */
  #resume(job: JobRow, delayMs: number): void {
    if (!this.#intervals.has(job.jobId)) {
      this.#follow(job);
      return;
    }
    this.#due(job.jobId, 'live', Math.max(delayMs, this.#options.intervals.minIntervalMs));
    if (job.results) this.#due(job.jobId, 'results', Math.max(delayMs, this.#options.resultsIntervalMs));
  }

  #failed(jobId: JobId, errand: Errand, error: JobtailError): void {
    const { store, intervals, random, log } = this.#options;
    const name = nameOf(jobId, errand);
    const times = (this.#failing.get(name)?.times ?? 0) + 1;
    this.#failing.set(name, { times, error });
    this.#troubles.failed(`job ${jobId}`, error);
    if (error.code === 'internal') log.debug({ jobId, stack: error.stack }, 'where it happened');
    const delayMs = withJitter(backOff(times, error.retryAfterMs, intervals), random());
    try {
      this.#noteVisit(jobId, false);
      const job = store.jobs.get(jobId);
      // A pass that a command asked for is not tried again: the command was told. One that ends the job is.
      if (errand === 'pass' && job?.state === 'watched') {
        this.#resume(job, delayMs);
        return;
      }
    } catch (thrown) {
      this.#troubles.failed('the state', asJobtailError(thrown));
    }
    if (errand === 'pass' || this.#intervals.has(jobId)) this.#due(jobId, errand, delayMs);
  }

  #noteVisit(jobId: JobId, grew: boolean, refused = 0): void {
    const { store, clock } = this.#options;
    const now = clock.now();
    const errands = ['live', 'pass', 'results'] as const;
    const failing = errands.flatMap((errand) => this.#failing.get(nameOf(jobId, errand)) ?? []);
    const error = troubleFrom(failing[0]?.error, store.jobs.get(jobId)?.error ?? null, now);
    const failures = failing[0]?.times ?? 0;
    store.transaction(() =>
      store.jobs.endVisit(jobId, { polledAt: now, grownAt: grew ? now : null, refused, failures, error }),
    );
  }

  #answer(request: RequestRow, answer: PassAnswer): void {
    this.#options.store.requests.answer(request.requestId, JSON.stringify(answer));
  }

  #remote(lane: 'live' | 'patient'): Remote {
    return new QueuedRemote(this.#options.remote, this.#options.calls, lane);
  }
}

/** What a command that asked for a pass is told. */
export type PassAnswer =
  | { readonly summary: PassSummary }
  | { readonly error: string; readonly code?: string; readonly hint?: string | undefined };

const nameOf = (jobId: JobId, errand: Errand) => `${errand} ${jobId}`;

/** Quiet for as long as its order says it takes to settle. */
function isSettled(job: JobRow, now: number): boolean {
  if (job.settleAfterMs === null || job.state !== 'watched') return false;
  return now - (job.grownAt ?? job.watchedAt) >= job.settleAfterMs;
}
