/**
 * The queue of all calls to the service: limits their number at a time, and their rate by the agent's share of the
 * server. What a person waits for comes first, then live polls.
 */
import { setMaxListeners } from 'node:events';
import PQueue from 'p-queue';
import { JobtailError, stopped } from '../errors.ts';
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

/** Lets in what waits, by its turn. What was let in is inside until its call ends. */
class Gate {
  readonly #queue = new PQueue();
  inside = 0;

  /** Resolves when it is in, after `onEnter`; rejects if the signal fires before. */
  async enter(turn: number, signal: AbortSignal, onEnter: () => void): Promise<void> {
    const enter = () => {
      this.inside += 1;
      onEnter();
    };
    await this.#queue.add(enter, { priority: -turn, signal });
  }

  /** Lets in until so many are inside; `onEnter` calls it again. */
  admit(max: number): void {
    if (this.inside < max) this.#queue.start();
    else this.#queue.pause();
  }
}

/** A queue that waits so much longer than the share requires, without a running call, is stuck. */
const STALLED_MS = 60_000;

/** Ends the right to make one call; called once. */
type EndSlot = () => void;

export class Calls {
  readonly clock: Clock;
  readonly entrances = { live: new Entrance(), wanted: new Entrance(), patient: new Entrance() } as const;
  readonly #share: ServerShare;
  readonly #shared: SharedService | undefined;
  readonly #concurrency: number;
  readonly #queue = new Gate();
  /** With several calls at a time, one place is for calls that do not take long: here the others wait for the rest. */
  readonly #long: Gate | undefined;
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
    if (concurrency > 1) this.#long = new Gate();
    share.onResponse(({ firstByteMs }) => {
      this.#hanging?.responded(firstByteMs);
      this.#pace();
    });
  }

  /** From now on, finds out whether other calls work while one hangs; see `HangingCalls`. */
  watchHanging(shortCall: ShortCall, onEnd: (calls: number, hasResponse: boolean) => void): void {
    const share = this.#share;
    this.#hanging = new HangingCalls({
      clock: this.clock,
      shortCall: async (kind, signal) => {
        await share.pauseOver(this.clock, signal);
        this.#begin();
        await shortCall(kind, signal).finally(() => this.#end());
      },
      isWanted: () => this.waiting > 0,
      openSince: () => share.openSince,
      onChange: () => this.#pace(),
      onEnd,
    });
  }

  /** Whether calls wait, none runs, and neither the share nor a pause of the server is the reason. */
  get stalled(): boolean {
    const since = Math.max(this.#movedAt, this.#share.opensAt);
    return this.waiting > 0 && this.#queue.inside === 0 && this.clock.monotonic() - since > STALLED_MS;
  }

  get waiting(): number {
    const { live, wanted, patient } = this.entrances;
    const outside = live.waiting + wanted.waiting + patient.waiting;
    return Object.values(this.#waitingIn).reduce((sum, count) => sum + count, outside);
  }

  /** Makes one call in its turn, or in a slot of its lane; rejects with `aborted` if the signal fires before. */
  async run<T>(lane: Lane, signal: AbortSignal, call: () => Promise<T>, slot = this.slot(lane, signal)): Promise<T> {
    const endSlot = await slot;
    const ended = this.#hanging?.begun(LANES[lane].isLong);
    try {
      return await call();
    } catch (error) {
      throw signal.aborted && !(error instanceof JobtailError) ? stopped() : error;
    } finally {
      ended?.();
      endSlot();
    }
  }

  /** Resolves when it is the turn of one call; rejects with `aborted` if the signal fires before. */
  async slot(lane: Lane, signal: AbortSignal): Promise<EndSlot> {
    // One signal may abort many waiting calls. A running call ends by itself, and keeps its slot until then.
    setMaxListeners(0, signal);
    const { cost, isLong } = LANES[lane];
    if (this.waiting === 0) this.#movedAt = this.clock.monotonic();
    this.#waitingIn[lane] += 1;
    const turn = this.#turn + cost * this.#waitingIn[lane];
    const begin = () => {
      this.#waitingIn[lane] -= 1;
      this.#turn = Math.max(this.#turn, turn);
      this.#begin();
    };
    const gates = isLong && this.#long !== undefined ? [this.#long, this.#queue] : [this.#queue];
    const entered: Gate[] = [];
    this.#pace();
    try {
      for (const gate of gates) {
        await gate.enter(turn, signal, gate === this.#queue ? begin : () => this.#pace());
        entered.push(gate);
      }
    } catch (error) {
      this.#waitingIn[lane] -= 1;
      for (const gate of entered) gate.inside -= 1;
      this.#pace();
      throw signal.aborted ? stopped() : error;
    }
    return () => {
      for (const gate of entered) gate.inside -= 1;
      this.#end();
    };
  }

  #begin(): void {
    this.#movedAt = this.clock.monotonic();
    this.#share.begun();
    this.#shared?.called();
    this.#pace();
  }

  #end(): void {
    this.#movedAt = this.clock.monotonic();
    this.#share.ended();
    this.#pace();
  }

  #pace(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#share.divideAmong(this.#shared?.sharers ?? 1);
    const { count = 0, long = 0 } = this.#hanging?.hanging ?? {};
    this.#share.hanging = count;
    const delayMs = this.#share.opensAt - this.clock.monotonic();
    if (delayMs > 0 && this.waiting > 0) this.#cancelTimer = this.clock.timer(delayMs, () => this.#pace());
    // Each of these starts calls, which pace the next ones.
    this.#queue.admit(delayMs > 0 ? 0 : this.#concurrency + count);
    this.#long?.admit(this.#concurrency - 1 + long);
  }
}

/** The calls of one poll. The first one is made in a slot that is taken before anything is opened. */
export class CallSlot {
  readonly #calls: Calls;
  readonly #lane: Lane;
  readonly #signal: AbortSignal;
  #slot: EndSlot | undefined;
  /** How long its longest call took, without its time in the queue. */
  longestMs = 0;

  constructor(calls: Calls, lane: Lane, signal: AbortSignal) {
    this.#calls = calls;
    this.#lane = lane;
    this.#signal = signal;
  }

  /** In place of a slot that no call needed. */
  async take(): Promise<void> {
    this.end();
    this.#slot = await this.#calls.slot(this.#lane, this.#signal);
  }

  /** Makes a call: the first one in the slot that was taken, each other one in its turn. */
  async run<T>(lane: Lane, signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    const timed = async () => {
      const begunAt = this.#calls.clock.monotonic();
      return await call().finally(() => {
        this.longestMs = Math.max(this.longestMs, this.#calls.clock.monotonic() - begunAt);
      });
    };
    const taken = this.#slot;
    this.#slot = undefined;
    if (taken === undefined) return await this.#calls.run(lane, signal, timed);
    return await this.#calls.run(this.#lane, signal, timed, Promise.resolve(taken));
  }

  end(): void {
    this.#slot?.();
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
