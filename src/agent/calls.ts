/**
 * All calls to the service pass here: so many at a time, so many a minute, live polls before everything else. Calls
 * that may take long (whole files, jobs that answered slowly or not at all) share half of the places, so that they
 * delay no other job; and they get a turn now and then when there are more polls than the limits allow.
 */
import PQueue from 'p-queue';
import { JobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import type { JobInformation } from '../job-information.ts';
import type { JobService, Listing, PartRequest, Parts, Remote, Sink, TransferMethod } from './ports.ts';

export interface CallLimits {
  /** Calls at a time. */
  readonly concurrency: number;
  readonly requestsPerMinute: number;
}

/** Calls that others make to the same service count, too. */
export interface CallBudget {
  /** Resolves when a call may be made. */
  take(signal: AbortSignal): Promise<void>;
}

/**
 * live: a poll that people wait for. begun: the next question of such a poll, which holds mirrors open meanwhile.
 * patient: a call that may take long, or whose job took long before.
 */
export type Lane = 'begun' | 'live' | 'patient';

const PRIORITY: Record<Lane, number> = { begun: 2, live: 1, patient: 0 };

/** However many polls wait, one call in so many is a patient one. */
const PATIENT_EVERY = 5;
const FIRST_OF_ALL = 3;

/** Calls that wait although none runs, for so long beyond what the rate asks for, will wait for ever. */
const STALLED_MS = 60_000;

export class Calls {
  readonly #all: PQueue;
  readonly #patient: PQueue;
  readonly #longestPauseMs: number;
  readonly #monotonic: () => number;
  readonly #budget: CallBudget | undefined;
  /** Patient calls that wait beside the others, the oldest first. */
  readonly #patiently: { readonly id: string; readonly signal: AbortSignal }[] = [];
  #lastId = 0;
  /** Calls that began since the last patient one. */
  #sincePatient = 0;
  /** When a call last began or ended, or the first one came to wait. */
  #movedAt = 0;

  constructor(
    { concurrency, requestsPerMinute }: CallLimits,
    monotonic = () => performance.now(),
    budget: CallBudget | undefined = undefined,
  ) {
    // Spread over the minute: a burst at its beginning would leave the rest of it without a poll.
    const intervalMs = Math.max(1_000, 60_000 / requestsPerMinute);
    const intervalCap = Math.max(1, Math.floor((requestsPerMinute * intervalMs) / 60_000));
    this.#all = new PQueue({ concurrency, interval: intervalMs, intervalCap, strict: true });
    this.#patient = new PQueue({ concurrency: Math.max(1, Math.floor(concurrency / 2)) });
    this.#longestPauseMs = 2 * intervalMs + STALLED_MS;
    this.#monotonic = monotonic;
    this.#budget = budget;
  }

  /** Calls wait, none runs, and the rate is no reason: nothing will come of it any more. */
  get stalled(): boolean {
    const idle = this.#all.size > 0 && this.#all.pending === 0;
    return idle && this.#monotonic() - this.#movedAt > this.#longestPauseMs;
  }

  /** Calls that wait for their turn. */
  get waiting(): number {
    return this.#all.size + this.#patient.size;
  }

  /** Runs one call when it is its turn; rejects with `aborted` if the signal fires before. */
  async run<T>(lane: Lane, signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    if (this.waiting === 0) this.#move();
    const budget = this.#budget;
    const moving = async () => {
      this.#move();
      if (budget !== undefined) await budget.take(signal);
      return call().finally(() => this.#move());
    };
    const inTurn = () => {
      this.#sincePatient += 1;
      // One that was stopped has left the queue already.
      const oldest = this.#patiently.find((call) => !call.signal.aborted);
      if (this.#sincePatient >= PATIENT_EVERY && oldest !== undefined) this.#all.setPriority(oldest.id, FIRST_OF_ALL);
      return moving();
    };
    try {
      if (lane === 'patient') return await this.#patient.add(() => this.#waitBeside(moving, signal), { signal });
      return await this.#all.add(inTurn, { priority: PRIORITY[lane], signal });
    } catch (error) {
      if (signal.aborted && !(error instanceof JobtailError)) throw new JobtailError('aborted', 'it was stopped');
      throw error;
    }
  }

  /** Waits beside the live calls. */
  async #waitBeside<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> {
    this.#lastId += 1;
    const id = `patient ${this.#lastId}`;
    const waiting = { id, signal };
    const leave = () => {
      const index = this.#patiently.indexOf(waiting);
      if (index >= 0) this.#patiently.splice(index, 1);
    };
    const begin = () => {
      leave();
      this.#sincePatient = 0;
      return call();
    };
    this.#patiently.push(waiting);
    try {
      return await this.#all.add(begin, { id, priority: PRIORITY.patient, signal });
    } finally {
      leave();
    }
  }

  #move(): void {
    this.#movedAt = this.#monotonic();
  }
}

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
    return this.#calls.run('patient', signal, () => this.#remote.downloadFile(jobId, path, sink, signal));
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
