/**
 * The queue of all calls to the service: limits their number at a time, and their rate by the agent's share of the
 * server. What a person waits for comes first, then live polls. Calls that may take long (whole files, slow jobs) get the
 * slots that polls leave free, at least half of them.
 */
import { setMaxListeners } from 'node:events';
import PQueue from 'p-queue';
import { type ErrorCode, JobtailError } from '../errors.ts';
import { type Clock, systemClock } from '../system/clock.ts';
import { HangingCalls, type ShortCall } from './hanging-calls.ts';
import { Places } from './places.ts';
import type { JobService, Remote } from './ports/server.ts';
import type { ServerShare } from './server-share.ts';

/** The agents of a fleet, which share the service. */
export interface SharedService {
  readonly sharers: number;
  called(): void;
}

interface CallsOptions {
  readonly concurrency: number;
  /** Maximum calls at a time on a connection with a long round trip; `concurrency` if omitted. */
  readonly maxConcurrency?: number;
  readonly share: ServerShare;
  readonly clock?: Clock;
  readonly shared?: SharedService | undefined;
}

/**
 * What a call is for. While calls of all lanes wait, each lane gets a share of 1 / cost of them: no lane waits for ever.
 * asked: a short call that a command waits for. begun: the next request of a poll, which has mirrors open. live: a poll.
 * raw: the whole file of a live file of a running job. wanted: a poll of a job that is over, a call of a complete pass that
 * no command waits for, and each download of a pass. ending: the next request of such a poll. patient: any other call that
 * may take long, or whose job was slow before.
 */
const LANES = {
  asked: { cost: 0.5, isLong: false },
  begun: { cost: 1, isLong: false },
  live: { cost: 2, isLong: false },
  raw: { cost: 2, isLong: true },
  wanted: { cost: 4, isLong: true },
  ending: { cost: 4, isLong: false },
  patient: { cost: 8, isLong: true },
} as const;
type Lane = keyof typeof LANES;

export const MAX_QUEUED_POLLS = 200;

/** Where the polls of a lane wait for a place in the queue. There each holds 9 kB, in one more p-queue 1.2, here 0.2. */
export class Entrance {
  #inside = 0;
  readonly #waiting = new Map<AbortSignal, () => void>();

  get waiting(): number {
    return this.#waiting.size;
  }

  /** `signal`: that of the job, which has one poll at a time. */
  enter(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.set(signal, resolve);
      if (this.#inside < MAX_QUEUED_POLLS) this.admit(signal);
    });
  }

  /** Lets a poll in that waits, in its turn or because it is stopped. */
  admit(signal: AbortSignal): void {
    const enter = this.#waiting.get(signal);
    if (enter === undefined) return;
    this.#waiting.delete(signal);
    this.#inside += 1;
    enter();
  }

  leave(): void {
    this.#inside -= 1;
    const [next] = this.#waiting.keys();
    if (next !== undefined && this.#inside < MAX_QUEUED_POLLS) this.admit(next);
  }
}

/** A queue that waits so much longer than the share requires, without a running call, is stuck. */
const STALLED_MS = 60_000;

/** Of the slots that polls used at the same time, half are still reserved after this time. */
const HALF_LIFE_MS = 60_000;

export class Calls {
  readonly #share: ServerShare;
  readonly clock: Clock;
  readonly #shared: SharedService | undefined;
  readonly #queue = new PQueue();
  readonly #longQueue = new PQueue();
  readonly #waitingIn: Record<Lane, number> = { asked: 0, begun: 0, live: 0, raw: 0, wanted: 0, ending: 0, patient: 0 };
  readonly entrances = { live: new Entrance(), wanted: new Entrance(), patient: new Entrance() } as const;
  /** Grows with the costs of the calls that began. */
  #turn = 0;
  readonly #places: Places;
  #runningShort = 0;
  /** Short calls at a time: the maximum, which shrinks with time. */
  #reserved = { calls: 0, at: 0 };
  /** When a call last began or ended, or the queue became non-empty. */
  #movedAt = 0;
  #cancelTimer: (() => void) | undefined;
  #hanging: HangingCalls | undefined;

  constructor({ concurrency, maxConcurrency = concurrency, share, clock = systemClock, shared }: CallsOptions) {
    this.#share = share;
    this.clock = clock;
    this.#shared = shared;
    this.#places = new Places(concurrency, maxConcurrency);
    this.#limit(concurrency);
    share.onMove((answer) => {
      if (answer !== undefined) {
        this.#places.answered(answer, this.waiting > 0);
        this.#hanging?.answered();
      }
      this.#pace();
    });
  }

  /** From now on, finds out whether other calls work while one hangs; see `HangingCalls`. */
  watchHanging(shortCall: ShortCall, onEnd: (calls: number, isAnswered: boolean) => void): void {
    const call: ShortCall = async (kind, signal) => {
      await this.#share.pauseOver(this.clock, signal);
      this.#share.begun();
      try {
        this.#shared?.called();
        await shortCall(kind, signal);
      } finally {
        this.#share.ended();
      }
    };
    const isWanted = () => this.waiting > 0;
    const openSince = () => this.#share.openSince;
    const onChange = () => this.#pace();
    this.#hanging = new HangingCalls({ clock: this.clock, shortCall: call, isWanted, openSince, onChange, onEnd });
  }

  /** Whether calls wait, none runs, and neither the share nor a pause of the server is the reason. */
  get stalled(): boolean {
    const isIdle = this.waiting > 0 && this.#queue.pending === 0;
    const since = Math.max(this.#movedAt, this.#share.opensAt);
    return isIdle && this.clock.monotonic() - since > STALLED_MS;
  }

  get waiting(): number {
    const { live, wanted, patient } = this.entrances;
    const outside = live.waiting + wanted.waiting + patient.waiting;
    return Object.values(this.#waitingIn).reduce((sum, count) => sum + count, outside);
  }

  /** Makes one call in its turn; rejects with `aborted` if the signal fires before. */
  run<T>(lane: Lane, signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    return this.occupy(lane, signal, () => this.make(lane, call));
  }

  /** Makes a call in an occupied slot: from now on, it may hang. */
  async make<T>(lane: Lane, call: () => Promise<T>): Promise<T> {
    const ended = this.#hanging?.begun(LANES[lane].isLong);
    return await call().finally(ended);
  }

  /** Occupies a slot in its turn until `work` ends; rejects with `aborted` if the signal fires before. */
  async occupy<T>(lane: Lane, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    if (signal.aborted) throw stopped();
    // One signal may abort many waiting calls. A running call ends by itself, and keeps its slot until then.
    setMaxListeners(0, signal);
    const wait = new AbortController();
    const leave = () => wait.abort(stopped());
    signal.addEventListener('abort', leave, { once: true });
    const endWait = () => {
      signal.removeEventListener('abort', leave);
      this.#waitingIn[lane] -= 1;
    };
    if (this.waiting === 0) this.#moved();
    this.#waitingIn[lane] += 1;
    this.#pace();
    const { cost, isLong } = LANES[lane];
    const turn = this.#turn + cost * this.#waitingIn[lane];
    const begin = () => {
      endWait();
      this.#turn = Math.max(this.#turn, turn);
      return this.#hold(isLong, signal, work);
    };
    const options = { priority: -turn, signal: wait.signal };
    const enqueue = () => this.#queue.add(begin, options);
    try {
      return await (isLong ? this.#longQueue.add(enqueue, options) : enqueue());
    } finally {
      if (wait.signal.aborted) {
        endWait();
        this.#pace();
      }
    }
  }

  async #hold<T>(isLong: boolean, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    this.#runningShort += Number(!isLong);
    this.#moved();
    this.#share.begun();
    try {
      this.#shared?.called();
      return await work();
    } catch (error) {
      if (error instanceof JobtailError && LOST.has(error.code)) this.#places.lost();
      if (signal.aborted && !(error instanceof JobtailError)) throw stopped();
      throw error;
    } finally {
      this.#runningShort -= Number(!isLong);
      this.#moved();
      this.#share.ended();
    }
  }

  #pace(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    const sharers = this.#shared?.sharers ?? 1;
    this.#share.divideAmong(sharers);
    this.#limit(this.#places.among(sharers));
    const delayMs = this.#share.opensAt - this.clock.monotonic();
    if (delayMs <= 0) this.#queue.start();
    else {
      this.#queue.pause();
      if (this.waiting > 0) this.#cancelTimer = this.clock.timer(delayMs, () => this.#pace());
    }
  }

  #limit(places: number): void {
    const now = this.clock.monotonic();
    const { calls, at } = this.#reserved;
    this.#reserved = { calls: Math.max(this.#runningShort, calls * 2 ** ((at - now) / HALF_LIFE_MS)), at: now };
    const reserved = Math.min(Math.ceil(places / 2), Math.max(1, Math.ceil(this.#reserved.calls)));
    const { count = 0, long = 0 } = this.#hanging?.hanging ?? {};
    this.#share.hanging = count;
    // With one place, a long call that waits in front of it would delay more urgent ones.
    setConcurrency(this.#longQueue, places > 1 ? places - reserved + long : Number.POSITIVE_INFINITY);
    setConcurrency(this.#queue, places + count);
  }

  #moved(): void {
    this.#movedAt = this.clock.monotonic();
  }
}

/** Setting it starts calls. */
function setConcurrency(queue: PQueue, calls: number): void {
  if (queue.concurrency !== calls) queue.concurrency = calls;
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
  /** How long its longest call took, without its time in the queue. */
  longestMs = 0;

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
      this.#calls.occupy(this.#lane, this.#signal, occupied).catch(failed);
    });
  }

  /** Makes a call: the first one in the acquired slot, each other one in its turn. */
  async run<T>(lane: Lane, signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    const release = this.#release;
    if (release === undefined) return await this.#calls.run(lane, signal, () => this.#serve(call));
    this.#release = undefined;
    const made = this.#calls.make(this.#lane, () => this.#serve(call));
    release(made);
    return await made;
  }

  async #serve<T>(call: () => Promise<T>): Promise<T> {
    const { clock } = this.#calls;
    const begunAt = clock.monotonic();
    return await call().finally(() => {
      this.longestMs = Math.max(this.longestMs, clock.monotonic() - begunAt);
    });
  }

  end(): void {
    this.#release?.();
    this.#release = undefined;
  }
}

/** The service with its calls in this lane; downloads are calls that may take long in any case. */
export function queuedRemote(remote: Remote, calls: Calls | CallSlot, lane: Lane): Remote {
  const ofDownload = LANES[lane].isLong ? lane : 'wanted';
  return {
    readParts: (job, wanted, signal) => calls.run(lane, signal, () => remote.readParts(job, wanted, signal)),
    listChangedFiles: (job, signal) => calls.run(lane, signal, () => remote.listChangedFiles(job, signal)),
    downloadFile: (job, path, sink, signal, silentMs) =>
      calls.run(ofDownload, signal, () => remote.downloadFile(job, path, sink, signal, silentMs)),
    getTransferMethod: (job, signal) => calls.run(lane, signal, () => remote.getTransferMethod(job, signal)),
    endTransfer: (job, method, signal) => calls.run(lane, signal, () => remote.endTransfer(job, method, signal)),
    reasonAgainst: (name) => remote.reasonAgainst?.(name),
    divide: (job, wanted) => remote.divide?.(job, wanted) ?? [wanted],
  };
}

export const queuedJobService = (service: JobService, calls: Calls, lane: Lane): JobService => ({
  getJob: (jobId, signal) => calls.run(lane, signal, () => service.getJob(jobId, signal)),
  listJobs: (signal) => calls.run(lane, signal, () => service.listJobs(signal)),
});
