/**
 * The queue of all calls to the service: limits their number at a time, and their rate by the agent's share of the
 * server; live polls come first. Calls that may take long (whole files, slow jobs) get the slots that polls leave free,
 * at least half of them; and one call in five while polls exceed the limits.
 */
import { setMaxListeners } from 'node:events';
import PQueue, { type Queue } from 'p-queue';
import { type ErrorCode, JobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import { type Clock, sleep, systemClock } from '../system/clock.ts';
import { HangingCalls, type ShortCall } from './hanging-calls.ts';
import { Places } from './places.ts';
import type { JobService, Listing, PartRequest, Parts, Remote, Sink, TransferMethod } from './ports.ts';
import type { ServerShare } from './server-share.ts';

/** The calls of other agents to the same service. */
export interface CallBudget {
  readonly sharers: number;
  take(signal: AbortSignal): Promise<void>;
}

export interface CallsOptions {
  readonly concurrency: number;
  /** Maximum calls at a time on a connection with a long round trip; `concurrency` if omitted. */
  readonly maxConcurrency?: number;
  readonly share: ServerShare;
  readonly clock?: Pick<Clock, 'monotonic' | 'timer'>;
  readonly budget?: CallBudget | undefined;
}

/**
 * The queues, in the order in which they are served. begun: the next request of a poll, which has mirrors open. live: a
 * poll. raw: the whole file of a live file. patient: any other call that may take long, or whose job was slow before.
 */
const LANES = ['begun', 'live', 'raw', 'patient'] as const;
export type Lane = (typeof LANES)[number];
const isLong = (lane: Lane) => lane === 'raw' || lane === 'patient';

/** However many polls wait, one call in so many is a raw one, and one a patient one. */
const PATIENT_EVERY = 5;

/** A queue that waits so much longer than the share requires, without a running call, is stuck. */
const STALLED_MS = 60_000;

/** Slots that polls used within the last two of these periods stay reserved for polls. */
const PERIOD_MS = 60_000;

type Start = () => Promise<unknown>;
interface LaneOptions {
  readonly id?: string;
  readonly lane?: Lane;
  readonly signal?: AbortSignal;
}

/**
 * The queue of p-queue with lanes instead of its priorities: by priority alone, whole files would wait for as long as any
 * poll does. A second p-queue for them would need its own limit, and all calls share one.
 */
class Lanes implements Queue<Start, LaneOptions> {
  readonly #waiting: Readonly<Record<Lane, Map<string, Start>>> = {
    begun: new Map(),
    live: new Map(),
    raw: new Map(),
    patient: new Map(),
  };
  /** Calls of other lanes that began since one of this lane did, while it had calls waiting. */
  readonly #passedOver: Record<Lane, number> = { begun: 0, live: 0, raw: 0, patient: 0 };
  readonly #hasLongSlot: () => boolean;

  constructor(hasLongSlot: () => boolean) {
    this.#hasLongSlot = hasLongSlot;
  }

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
  #runningLong = 0;
  /** Maximum short calls at a time, in this period and the one before. */
  #maxShort = { now: 0, before: 0, endsAt: 0 };
  /** When a call last began or ended, or the queue became non-empty. */
  #movedAt = 0;
  #cancelTimer: (() => void) | undefined;
  #hanging: HangingCalls | undefined;

  constructor({ concurrency, maxConcurrency = concurrency, share, clock = systemClock, budget }: CallsOptions) {
    this.#share = share;
    this.#clock = clock;
    this.#budget = budget;
    this.#places = new Places(concurrency, maxConcurrency);
    const hasLongSlot = () => this.#runningLong - (this.#hanging?.long ?? 0) < this.#longSlots;
    const queueClass = class extends Lanes {
      constructor() {
        super(hasLongSlot);
      }
    };
    this.#queue = new PQueue({ concurrency, queueClass });
    share.onMove((answer) => {
      if (answer !== undefined) {
        this.#places.answered(answer, this.#waiting > 0);
        this.#hanging?.answered();
      }
      this.#pace();
    });
  }

  /** From now on, finds out whether other calls work while one hangs; see `HangingCalls`. */
  watchHanging(shortCall: ShortCall, onEnd: (calls: number, isAnswered: boolean) => void): void {
    const call: ShortCall = async (kind, signal) => {
      for (let waitMs = this.#share.pauseMs; waitMs > 0; waitMs = this.#share.pauseMs)
        await sleep(this.#clock, waitMs, signal);
      this.#share.begun();
      try {
        await this.#budget?.take(signal);
        await shortCall(kind, signal);
      } finally {
        this.#share.ended();
      }
    };
    const isWanted = () => this.#waiting > 0 && this.#share.pauseMs === 0;
    this.#hanging = new HangingCalls({
      clock: this.#clock,
      shortCall: call,
      isWanted,
      onChange: () => this.#pace(),
      onEnd,
    });
  }

  /** Whether calls wait, none runs, and neither the share nor a pause of the server is the reason. */
  get stalled(): boolean {
    const isIdle = this.#waiting > 0 && this.#queue.pending === 0;
    const since = Math.max(this.#movedAt, this.#share.opensAt);
    return isIdle && this.#clock.monotonic() - since > STALLED_MS;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Runs one call in its turn; rejects with `aborted` if the signal fires before. */
  async run<T>(lane: Lane, signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    if (signal.aborted) throw stopped();
    // One signal may abort many waiting calls. A running call ends by itself, and keeps its slot until then.
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
    const ended = this.#hanging?.begun(isLong(lane));
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
      ended?.();
      this.#share.ended();
    }
  }

  #pace(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    const sharers = Math.max(1, this.#budget?.sharers ?? 1);
    this.#share.divideAmong(sharers);
    const places = this.#places.among(sharers) + (this.#hanging?.count ?? 0);
    if (this.#queue.concurrency !== places) this.#queue.concurrency = places;
    const delayMs = this.#share.opensAt - this.#clock.monotonic();
    if (delayMs <= 0) this.#queue.start();
    else {
      this.#queue.pause();
      if (this.#waiting > 0) this.#cancelTimer = this.#clock.timer(delayMs, () => this.#pace());
    }
  }

  get #longSlots(): number {
    const concurrency = this.#queue.concurrency - (this.#hanging?.count ?? 0);
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

/** Failures that an overloaded server may cause. */
const LOST: ReadonlySet<ErrorCode> = new Set(['timeout', 'interrupted', 'unreachable']);

const stopped = () => new JobtailError('aborted', 'it was stopped');

/** A slot in the queue for one poll: its first call acquires it before anything is opened. */
export class CallSlot {
  readonly #calls: Calls;
  readonly #lane: Lane;
  readonly #signal: AbortSignal;
  #release: ((call?: Promise<unknown>) => void) | undefined;

  constructor(calls: Calls, lane: Lane, signal: AbortSignal) {
    this.#calls = calls;
    this.#lane = lane;
    this.#signal = signal;
  }

  async take(): Promise<void> {
    await new Promise<void>((taken, failed) => {
      const occupied = () =>
        new Promise<unknown>((release) => {
          this.#release = release;
          taken();
        });
      // Once the slot is taken, its end is the end of the first call, and the poll receives that.
      this.#calls.run(this.#lane, this.#signal, occupied).catch(failed);
    });
  }

  /** Makes a call: the first one in the acquired slot, each other one in its turn. */
  async run<T>(lane: Lane, signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    const release = this.#release;
    if (release === undefined) return await this.#calls.run(lane, signal, call);
    this.#release = undefined;
    const made = call();
    release(made);
    return await made;
  }

  end(): void {
    this.#release?.();
    this.#release = undefined;
  }
}

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

export const queuedJobService = (service: JobService, calls: Pick<Calls, 'run'>): JobService => ({
  getJob: (jobId, signal) => calls.run('patient', signal, () => service.getJob(jobId, signal)),
  listJobs: (signal) => calls.run('patient', signal, () => service.listJobs(signal)),
});
