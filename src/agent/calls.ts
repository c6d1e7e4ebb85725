/**
 * The queue of all calls to the service: limits their number at a time, and their rate by the agent's share of the
 * server. What a person waits for comes first, then live polls.
 */
import { setMaxListeners } from 'node:events';
import PQueue from 'p-queue';
import { JobtailError } from '../errors.ts';
import { stopped } from '../in-turn.ts';
import { LinkedAbort } from '../linked-abort.ts';
import { type Clock, systemClock } from '../system/clock.ts';
import { HangingCalls, type ShortCall } from './hanging-calls.ts';
import type { JobService, Remote } from './ports/server.ts';
import type { ServerShare } from './server-share.ts';

/** The agents of a fleet, which share the service. */
export interface SharedService {
  readonly sharers: number;
  called(): void;
}

interface CallsOptions {
  /** Maximum calls at a time. */
  readonly concurrency: number;
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

/** Where the polls of a lane wait for a place in the queue. There each holds 9 kB, in one more p-queue 1.2, here 0.4. */
export class Entrance {
  #inside = 0;
  readonly #waiting = new Set<() => void>();

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Resolves with what lets the next poll in, when it may enter itself, or is stopped. */
  enter(signal: AbortSignal): Promise<() => void> {
    return new Promise((entered) => {
      const admit = () => {
        signal.removeEventListener('abort', admit);
        this.#waiting.delete(admit);
        this.#inside += 1;
        let isInside = true;
        entered(() => {
          if (isInside) this.#leave();
          isInside = false;
        });
      };
      if (signal.aborted || this.#inside < MAX_QUEUED_POLLS) admit();
      else {
        this.#waiting.add(admit);
        signal.addEventListener('abort', admit, { once: true });
      }
    });
  }

  #leave(): void {
    this.#inside -= 1;
    const [admitNext] = this.#waiting;
    if (this.#inside < MAX_QUEUED_POLLS) admitNext?.();
  }
}

/** A queue that waits so much longer than the share requires, without a running call, is stuck. */
const STALLED_MS = 60_000;

/** The right to make one call. `make` ends it with the call, which may hang from then on. */
interface Slot {
  make<T>(call: () => Promise<T>): Promise<T>;
  end(): void;
}

export class Calls {
  readonly clock: Clock;
  readonly entrances = { live: new Entrance(), wanted: new Entrance(), patient: new Entrance() } as const;
  readonly #share: ServerShare;
  readonly #shared: SharedService | undefined;
  readonly #concurrency: number;
  readonly #queue = new PQueue();
  /** With several calls at a time, one place is for calls that do not take long: here the others wait for the rest. */
  readonly #long: PQueue | undefined;
  readonly #waitingIn: Record<Lane, number> = { asked: 0, begun: 0, live: 0, raw: 0, wanted: 0, ending: 0, patient: 0 };
  /** Grows with the costs of the calls that began. */
  #turn = 0;
  /** When a call last began or ended, or the queue became non-empty. */
  #movedAt = 0;
  #cancelTimer: (() => void) | undefined;
  #hanging: HangingCalls | undefined;

  constructor({ concurrency, share, clock = systemClock, shared }: CallsOptions) {
    this.#share = share;
    this.clock = clock;
    this.#shared = shared;
    this.#concurrency = concurrency;
    if (concurrency > 1) this.#long = new PQueue();
    share.onMove((answer) => {
      if (answer !== undefined) this.#hanging?.answered(answer.firstByteMs);
      this.#pace();
    });
    this.#pace();
  }

  /** From now on, finds out whether other calls work while one hangs; see `HangingCalls`. */
  watchHanging(shortCall: ShortCall, onEnd: (calls: number, isAnswered: boolean) => void): void {
    const call: ShortCall = async (kind, signal) => {
      await this.#share.pauseOver(this.clock, signal);
      await this.#counted(() => shortCall(kind, signal));
    };
    const isWanted = () => this.waiting > 0;
    const openSince = () => this.#share.openSince;
    const onChange = () => this.#pace();
    this.#hanging = new HangingCalls({ clock: this.clock, shortCall: call, isWanted, openSince, onChange, onEnd });
  }

  /** Whether calls wait, none runs, and neither the share nor a pause of the server is the reason. */
  get stalled(): boolean {
    const since = Math.max(this.#movedAt, this.#share.opensAt);
    return this.waiting > 0 && this.#queue.pending === 0 && this.clock.monotonic() - since > STALLED_MS;
  }

  get waiting(): number {
    const { live, wanted, patient } = this.entrances;
    const outside = live.waiting + wanted.waiting + patient.waiting;
    return Object.values(this.#waitingIn).reduce((sum, count) => sum + count, outside);
  }

  /** Makes one call in its turn; rejects with `aborted` if the signal fires before. */
  async run<T>(lane: Lane, signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    return await (await this.slot(lane, signal)).make(call);
  }

  /** Resolves when it is the turn of one call; rejects with `aborted` if the signal fires before. */
  slot(lane: Lane, signal: AbortSignal): Promise<Slot> {
    if (signal.aborted) return Promise.reject(stopped());
    // One signal may abort many waiting calls. A running call ends by itself, and keeps its slot until then.
    setMaxListeners(0, signal);
    const wait = new LinkedAbort(signal, stopped);
    const { cost, isLong } = LANES[lane];
    if (this.waiting === 0) this.#moved();
    this.#waitingIn[lane] += 1;
    const turn = this.#turn + cost * this.#waitingIn[lane];
    const options = { priority: -turn, signal: wait.signal };
    const endWait = () => {
      wait.release();
      this.#waitingIn[lane] -= 1;
    };
    this.#pace();
    return new Promise((begun, failed) => {
      const hold = () =>
        new Promise<void>((free) => {
          endWait();
          this.#turn = Math.max(this.#turn, turn);
          begun(this.#slotOf(isLong, signal, free));
        });
      const enqueue = () => this.#queue.add(hold, options);
      const added = isLong && this.#long !== undefined ? this.#long.add(enqueue, options) : enqueue();
      added.catch((error: unknown) => {
        endWait();
        failed(error);
        this.#pace();
      });
    });
  }

  #slotOf(isLong: boolean, signal: AbortSignal, free: () => void): Slot {
    this.#moved();
    this.#share.begun();
    this.#shared?.called();
    let isOver = false;
    const end = () => {
      if (isOver) return;
      isOver = true;
      free();
      this.#moved();
      this.#share.ended();
    };
    const make = async <T>(call: () => Promise<T>): Promise<T> => {
      const ended = this.#hanging?.begun(isLong);
      try {
        return await call();
      } catch (error) {
        throw signal.aborted && !(error instanceof JobtailError) ? stopped() : error;
      } finally {
        ended?.();
        end();
      }
    };
    return { make, end };
  }

  /** Counts a call that is made beside the queue. */
  async #counted(call: () => Promise<unknown>): Promise<void> {
    this.#share.begun();
    this.#shared?.called();
    await call().finally(() => this.#share.ended());
  }

  #pace(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#share.divideAmong(this.#shared?.sharers ?? 1);
    const { count = 0, long = 0 } = this.#hanging?.hanging ?? {};
    this.#share.hanging = count;
    const delayMs = this.#share.opensAt - this.clock.monotonic();
    if (delayMs > 0) this.#queue.pause();
    // Each of these starts calls.
    this.#queue.concurrency = this.#concurrency + count;
    if (this.#long !== undefined) this.#long.concurrency = this.#concurrency - 1 + long;
    if (delayMs <= 0) this.#queue.start();
    else if (this.waiting > 0) this.#cancelTimer = this.clock.timer(delayMs, () => this.#pace());
  }

  #moved(): void {
    this.#movedAt = this.clock.monotonic();
  }
}

/** The calls of one poll. The first one is made in a slot that is taken before anything is opened. */
export class CallSlot {
  readonly #calls: Calls;
  readonly #lane: Lane;
  readonly #signal: AbortSignal;
  #slot: Slot | undefined;
  /** How long its longest call took, without its time in the queue. */
  longestMs = 0;

  constructor(calls: Calls, lane: Lane, signal: AbortSignal) {
    this.#calls = calls;
    this.#lane = lane;
    this.#signal = signal;
  }

  async take(): Promise<void> {
    this.#slot = await this.#calls.slot(this.#lane, this.#signal);
  }

  /** Makes a call: the first one in the slot that was taken, each other one in its turn. */
  async run<T>(lane: Lane, signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    const taken = this.#slot;
    this.#slot = undefined;
    const slot = taken ?? (await this.#calls.slot(lane, signal));
    const { clock } = this.#calls;
    const begunAt = clock.monotonic();
    return await slot.make(call).finally(() => {
      this.longestMs = Math.max(this.longestMs, clock.monotonic() - begunAt);
    });
  }

  end(): void {
    this.#slot?.end();
    this.#slot = undefined;
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
