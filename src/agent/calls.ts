/**
 * All calls to the service pass here, the one place that delays them: so many at a time, as often as the agent's share
 * of the server allows, live polls before everything else. Calls that may take long (whole files, jobs that answered
 * slowly or not at all) share half of the slots, so that they delay no other job; and one call in five is such a call
 * when there are more polls than the limits allow.
 */
import { setMaxListeners } from 'node:events';
import { JobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import type { JobInformation } from '../job-information.ts';
import { type Clock, systemClock } from '../system/clock.ts';
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
  /** Calls at a time. */
  readonly concurrency: number;
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

/** However many polls wait, one call in so many is a raw one, and one a patient one. */
const PATIENT_EVERY = 5;

/** Calls that wait although none runs, for so long beyond what the share asks for, will wait for ever. */
const STALLED_MS = 60_000;

interface Waiting {
  readonly start: () => void;
}

export class Calls {
  readonly #concurrency: number;
  readonly #share: ServerShare;
  readonly #clock: Pick<Clock, 'monotonic' | 'timer'>;
  readonly #budget: CallBudget | undefined;
  readonly #queues: Readonly<Record<Lane, Set<Waiting>>> = {
    begun: new Set(),
    live: new Set(),
    raw: new Set(),
    patient: new Set(),
  };
  #running = 0;
  /** Raw and patient calls among those that run. */
  #runningLong = 0;
  /** Calls that began since one of this queue did, while others of it waited. */
  readonly #passedOver: Record<Lane, number> = { begun: 0, live: 0, raw: 0, patient: 0 };
  /** When a call last began or ended, or the first one came to wait. */
  #movedAt = 0;
  #cancelTimer: (() => void) | undefined;

  constructor({ concurrency, share, clock = systemClock, budget }: CallsOptions) {
    this.#concurrency = concurrency;
    this.#share = share;
    this.#clock = clock;
    this.#budget = budget;
  }

  /** Whether calls wait, none runs, and neither the share nor a pause of the server is the reason. */
  get stalled(): boolean {
    const isIdle = this.waiting > 0 && this.#running === 0;
    const since = Math.max(this.#movedAt, this.#share.opensAt);
    return isIdle && this.#clock.monotonic() - since > STALLED_MS;
  }

  /** Calls that wait for their turn. */
  get waiting(): number {
    return LANES.reduce((count, lane) => count + this.#queues[lane].size, 0);
  }

  /** Runs one call when it is its turn; rejects with `aborted` if the signal fires before. */
  async run<T>(lane: Lane, signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    await this.#turn(lane, signal);
    try {
      await this.#budget?.take(signal);
      return await call();
    } catch (error) {
      if (signal.aborted && !(error instanceof JobtailError)) throw stopped();
      throw error;
    } finally {
      this.#running -= 1;
      if (isLong(lane)) this.#runningLong -= 1;
      this.#share.ended();
      this.#move();
      this.#startDue();
    }
  }

  #turn(lane: Lane, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(stopped());
        return;
      }
      // One signal may stop many calls that wait.
      setMaxListeners(0, signal);
      if (this.waiting === 0) this.#move();
      const queue = this.#queues[lane];
      const leave = () => {
        queue.delete(waiting);
        reject(stopped());
        this.#startDue();
      };
      const waiting: Waiting = {
        start: () => {
          signal.removeEventListener('abort', leave);
          queue.delete(waiting);
          resolve();
        },
      };
      signal.addEventListener('abort', leave, { once: true });
      queue.add(waiting);
      this.#startDue();
    });
  }

  /** Starts the calls that may begin now; sets a timer for the next one if only the share delays it. */
  #startDue(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#share.divideAmong(this.#budget?.sharers ?? 1);
    for (let lane = this.#nextLane(); lane !== undefined; lane = this.#nextLane()) {
      const delayMs = this.#share.opensAt - this.#clock.monotonic();
      if (delayMs > 0) {
        this.#cancelTimer = this.#clock.timer(delayMs, () => this.#startDue());
        return;
      }
      this.#start(lane);
    }
  }

  /** The queue that is served next; undefined if no call waits for which there is a slot. */
  #nextLane(): Lane | undefined {
    if (this.#running >= this.#concurrency) return undefined;
    const hasSlot = this.#runningLong < Math.max(1, Math.floor(this.#concurrency / 2));
    const waiting = LANES.filter((lane) => this.#queues[lane].size > 0 && (hasSlot || !isLong(lane)));
    const neglected = waiting.findLast((lane) => isLong(lane) && this.#passedOver[lane] >= PATIENT_EVERY - 1);
    return neglected ?? waiting[0];
  }

  #start(lane: Lane): void {
    const [first] = this.#queues[lane];
    this.#running += 1;
    if (isLong(lane)) this.#runningLong += 1;
    for (const other of LANES) {
      const isPassedOver = other !== lane && this.#queues[other].size > 0;
      this.#passedOver[other] = isPassedOver ? this.#passedOver[other] + 1 : 0;
    }
    this.#share.begun();
    this.#move();
    first?.start();
  }

  #move(): void {
    this.#movedAt = this.#clock.monotonic();
  }
}

const isLong = (lane: Lane) => lane === 'raw' || lane === 'patient';
const stopped = () => new JobtailError('aborted', 'it was stopped');

/** A place among the calls for one visit: its first call has it before anything is opened for it. */
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
      const held = () =>
        new Promise<void>((giveBack) => {
          this.#giveBack = giveBack;
          resolve();
        });
      this.#calls.run(this.#lane, this.#signal, held).catch(reject);
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

  downloadFile(jobId: JobId, path: string, sink: Sink, signal: AbortSignal): Promise<number> {
    return this.#calls.run(this.#lane === 'raw' ? 'raw' : 'patient', signal, () =>
      this.#remote.downloadFile(jobId, path, sink, signal),
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

/** The service that tells of jobs, with every call passed through the patient lane. */
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
