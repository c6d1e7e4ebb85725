/**
 * All calls to the service pass here, the one place that delays them: so many at a time, as often as the agent's share
 * of the server allows, live polls before everything else. Calls that may take long (whole files, jobs that answered
 * slowly or not at all) have the slots that polls leave free, and at least half of them; and one call in five is such a
 * call when there are more polls than the limits allow.
 */
import { setMaxListeners } from 'node:events';
import PQueue, { type Queue } from 'p-queue';
import { type ErrorCode, JobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import type { JobInformation } from '../job-information.ts';
import { type Clock, systemClock } from '../system/clock.ts';
import { Places } from './places.ts';
import type { JobService, Listing, PartRequest, Parts, Remote, Sink, TransferMethod } from './ports.ts';
import type { ServerShare } from './server-share.ts';

/** Calls that other agents make to the same service count, too. */
export interface CallBudget {
  /** Agents that share the service. */
  readonly sharers: number;
  /** Resolves when a call may be made. */
  take(signal: AbortSignal): Promise<void>;
}

export interface CallsOptions {
  /** Calls at a time, at least. */
  readonly concurrency: number;
  /** Calls at a time on a long wire; `concurrency` if left out. */
  readonly maxConcurrency?: number;
  readonly share: ServerShare;
  readonly clock?: Pick<Clock, 'monotonic' | 'timer'>;
  readonly budget?: CallBudget | undefined;
}

/**
 * The queues, in the order in which they are served. begun: the next request of a poll, which holds mirrors open
 * meanwhile. live: a poll that people wait for. raw: the whole file of a live file. patient: any other call that may
 * take long, or whose job took long before.
 */
const LANES = ['begun', 'live', 'raw', 'patient'] as const;
export type Lane = (typeof LANES)[number];
const isLong = (lane: Lane) => lane === 'raw' || lane === 'patient';

/** However many polls wait, one call in so many is a raw one, and one a patient one. */
const PATIENT_EVERY = 5;

/** Calls that wait this much longer than the share requires, though none runs, would wait forever. */
const STALLED_MS = 60_000;

/** Slots that polls used within the last two of these periods are left to polls; a quiet job is polled each minute. */
const PERIOD_MS = 60_000;

type Start = () => Promise<unknown>;
interface LaneOptions {
  readonly id?: string;
  readonly lane?: Lane;
  readonly signal?: AbortSignal;
}

/** The order in which p-queue starts calls. */
class Lanes implements Queue<Start, LaneOptions> {
  readonly #waiting: Readonly<Record<Lane, Map<string, Start>>> = {
    begun: new Map(),
    live: new Map(),
    raw: new Map(),
    patient: new Map(),
  };
  /** Calls that began since one of this lane did, while others of it waited. */
  readonly #passedOver: Record<Lane, number> = { begun: 0, live: 0, raw: 0, patient: 0 };
  readonly #hasLongSlot: () => boolean;

  constructor(hasLongSlot: () => boolean) {
    this.#hasLongSlot = hasLongSlot;
  }

  /** Calls that may begin if there is a slot. */
  get size(): number {
    return this.#startable().reduce((count, lane) => count + this.#waiting[lane].size, 0);
  }

  enqueue(start: Start, { id = '', lane = 'patient' }: LaneOptions = {}): void {
    this.#waiting[lane].set(id, start);
  }

  dequeue(): Start | undefined {
    const startable = this.#startable();
    const neglected = startable.findLast((lane) => isLong(lane) && this.#passedOver[lane] >= PATIENT_EVERY - 1);
    const lane = neglected ?? startable[0];
    if (lane === undefined) return undefined;
    for (const other of LANES) {
      const isPassedOver = other !== lane && this.#waiting[other].size > 0;
      this.#passedOver[other] = isPassedOver ? this.#passedOver[other] + 1 : 0;
    }
    const [[id, start] = []] = this.#waiting[lane];
    if (id !== undefined) this.#waiting[lane].delete(id);
    return start;
  }

  remove(id: string): void {
    for (const lane of LANES) this.#waiting[lane].delete(id);
  }

  filter({ lane }: LaneOptions): Start[] {
    return LANES.filter((other) => lane === undefined || other === lane).flatMap((other) => [
      ...this.#waiting[other].values(),
    ]);
  }

  setPriority(): void {
    throw new JobtailError('internal', 'a call keeps its lane');
  }

  #startable(): readonly Lane[] {
    return LANES.filter((lane) => this.#waiting[lane].size > 0 && (!isLong(lane) || this.#hasLongSlot()));
  }
}

export class Calls {
  readonly #share: ServerShare;
  readonly #clock: Pick<Clock, 'monotonic' | 'timer'>;
  readonly #budget: CallBudget | undefined;
  readonly #queue: PQueue<Lanes, LaneOptions>;
  #waiting = 0;
  readonly #places: Places;
  /** Raw and patient calls among those that run. */
  #runningLong = 0;
  /** Most other calls at a time, in this period and the one before. */
  #maxShort = { now: 0, before: 0, endsAt: 0 };
  /** When a call last began or ended, or the first one came to wait. */
  #movedAt = 0;
  #cancelTimer: (() => void) | undefined;

  constructor({ concurrency, maxConcurrency = concurrency, share, clock = systemClock, budget }: CallsOptions) {
    this.#share = share;
    this.#clock = clock;
    this.#budget = budget;
    this.#places = new Places(concurrency, maxConcurrency);
    const hasLongSlot = () => this.#runningLong < this.#longSlots;
    const queueClass = class extends Lanes {
      constructor() {
        super(hasLongSlot);
      }
    };
    this.#queue = new PQueue({ concurrency, queueClass });
    share.onMove((answer) => {
      if (answer !== undefined) this.#places.answered(answer, this.#waiting > 0);
      this.#pace();
    });
  }

  /** Whether calls wait, none runs, and neither the share nor a pause of the server is the reason. */
  get stalled(): boolean {
    const isIdle = this.#waiting > 0 && this.#queue.pending === 0;
    const since = Math.max(this.#movedAt, this.#share.opensAt);
    return isIdle && this.#clock.monotonic() - since > STALLED_MS;
  }

  /** Calls that wait for their turn. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Runs one call when it is its turn; rejects with `aborted` if the signal fires before. */
  async run<T>(lane: Lane, signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    if (signal.aborted) throw stopped();
    // One signal may stop many calls that wait. A call that runs ends by itself, and has its slot until then.
    setMaxListeners(0, signal);
    const wait = new AbortController();
    const leave = () => wait.abort(stopped());
    signal.addEventListener('abort', leave, { once: true });
    const endWait = () => {
      signal.removeEventListener('abort', leave);
      this.#waiting -= 1;
    };
    if (this.#waiting === 0) this.#moved();
    this.#waiting += 1;
    this.#pace();
    const begin = () => {
      endWait();
      return this.#make(lane, signal, call);
    };
    try {
      return await this.#queue.add(begin, { lane, signal: wait.signal });
    } finally {
      if (wait.signal.aborted) {
        endWait();
        this.#pace();
      }
    }
  }

  async #make<T>(lane: Lane, signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    if (isLong(lane)) this.#runningLong += 1;
    else this.#countShort();
    this.#moved();
    this.#share.begun();
    try {
      await this.#budget?.take(signal);
      return await call();
    } catch (error) {
      if (error instanceof JobtailError && LOST.has(error.code)) this.#places.lost();
      if (signal.aborted && !(error instanceof JobtailError)) throw stopped();
      throw error;
    } finally {
      if (isLong(lane)) this.#runningLong -= 1;
      this.#moved();
      this.#share.ended();
    }
  }

  /** Holds all calls until the share opens. */
  #pace(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    const sharers = Math.max(1, this.#budget?.sharers ?? 1);
    this.#share.divideAmong(sharers);
    const places = this.#places.among(sharers);
    if (this.#queue.concurrency !== places) this.#queue.concurrency = places;
    const delayMs = this.#share.opensAt - this.#clock.monotonic();
    if (delayMs <= 0) this.#queue.start();
    else {
      this.#queue.pause();
      if (this.#waiting > 0) this.#cancelTimer = this.#clock.timer(delayMs, () => this.#pace());
    }
  }

  /** Slots for calls that may take long. */
  get #longSlots(): number {
    const { concurrency } = this.#queue;
    const { now, before } = this.#shortOfPeriod();
    return Math.max(1, Math.floor(concurrency / 2), concurrency - Math.max(1, now, before));
  }

  #countShort(): void {
    const period = this.#shortOfPeriod();
    period.now = Math.max(period.now, this.#queue.pending - this.#runningLong);
  }

  #shortOfPeriod() {
    const monotonic = this.#clock.monotonic();
    const { now, endsAt } = this.#maxShort;
    const isOld = monotonic >= endsAt + PERIOD_MS;
    if (monotonic >= endsAt) this.#maxShort = { now: 0, before: isOld ? 0 : now, endsAt: monotonic + PERIOD_MS };
    return this.#maxShort;
  }

  #moved(): void {
    this.#movedAt = this.#clock.monotonic();
  }
}

/** Ends of a call that a server with too many calls may cause. */
const LOST: ReadonlySet<ErrorCode> = new Set(['timeout', 'interrupted', 'unreachable']);

const stopped = () => new JobtailError('aborted', 'it was stopped');

/** A slot among the calls for one poll: its first call acquires it before anything is opened. */
export class CallSlot {
  readonly #calls: Calls;
  readonly #lane: Lane;
  readonly #signal: AbortSignal;
  #giveBack: (() => void) | undefined;

  constructor(calls: Calls, lane: Lane, signal: AbortSignal) {
    this.#calls = calls;
    this.#lane = lane;
    this.#signal = signal;
  }

  /** Waits for a place among the calls; rejects with `aborted` if the signal fires before. */
  async take(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const occupied = () =>
        new Promise<void>((giveBack) => {
          this.#giveBack = giveBack;
          resolve();
        });
      this.#calls.run(this.#lane, this.#signal, occupied).catch(reject);
    });
  }

  /** Makes a call: the first one in the place that was taken, each other one when it is its turn. */
  async run<T>(lane: Lane, signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    const giveBack = this.#giveBack;
    if (giveBack === undefined) return await this.#calls.run(lane, signal, call);
    this.#giveBack = undefined;
    return await call().finally(giveBack);
  }

  /** Gives the place back, if it was taken and not used. */
  end(): void {
    this.#giveBack?.();
    this.#giveBack = undefined;
  }
}

/** The service, with every call passed through a lane. */
export class QueuedRemote implements Remote {
  readonly #remote: Remote;
  readonly #calls: Pick<Calls, 'run'>;
  readonly #lane: Lane;

  constructor(remote: Remote, calls: Pick<Calls, 'run'>, lane: Lane) {
    this.#remote = remote;
    this.#calls = calls;
    this.#lane = lane;
  }

  readParts(jobId: JobId, wanted: readonly PartRequest[], signal: AbortSignal): Promise<Parts> {
    return this.#calls.run(this.#lane, signal, () => this.#remote.readParts(jobId, wanted, signal));
  }

  listChangedFiles(jobId: JobId, signal: AbortSignal): Promise<Listing> {
    return this.#calls.run(this.#lane, signal, () => this.#remote.listChangedFiles(jobId, signal));
  }

  downloadFile(jobId: JobId, path: string, sink: Sink, signal: AbortSignal, silentMs?: number): Promise<number> {
    return this.#calls.run(this.#lane === 'raw' ? 'raw' : 'patient', signal, () =>
      this.#remote.downloadFile(jobId, path, sink, signal, silentMs),
    );
  }

  getTransferMethod(jobId: JobId, signal: AbortSignal): Promise<TransferMethod | null> {
    return this.#calls.run(this.#lane, signal, () => this.#remote.getTransferMethod(jobId, signal));
  }

  endTransfer(jobId: JobId, method: TransferMethod, signal: AbortSignal): Promise<void> {
    return this.#calls.run(this.#lane, signal, () => this.#remote.endTransfer(jobId, method, signal));
  }

  reasonAgainst(name: string): string | undefined {
    return this.#remote.reasonAgainst?.(name);
  }

  divide(jobId: JobId, wanted: readonly PartRequest[]): readonly (readonly PartRequest[])[] {
    return this.#remote.divide?.(jobId, wanted) ?? [wanted];
  }
}

/** The job service, with every call in the low-priority queue. */
export class QueuedJobService implements JobService {
  readonly #service: JobService;
  readonly #calls: Pick<Calls, 'run'>;

  constructor(service: JobService, calls: Pick<Calls, 'run'>) {
    this.#service = service;
    this.#calls = calls;
  }

  getJob(jobId: JobId, signal: AbortSignal): Promise<JobInformation> {
    return this.#calls.run('patient', signal, () => this.#service.getJob(jobId, signal));
  }

  listJobs(signal: AbortSignal): Promise<readonly JobInformation[]> {
    return this.#calls.run('patient', signal, () => this.#service.listJobs(signal));
  }
}
