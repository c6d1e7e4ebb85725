/** The simulated service: jobs, sessions, delays and failures; it records forbidden actions of each agent. */

import type { DecodingOptions } from '../../simulator/operations/decoding.ts';
import { JobtailError } from '../../src/errors.ts';
import type { JobId } from '../../src/job.ts';
import type { JobInformation } from '../../src/job-information.ts';
import type { Operation } from '../../src/operations.ts';
import type { HttpClient } from '../../src/remote/http/http-client.ts';
import { type Clock, sleep } from '../../src/system/clock.ts';
import type { Chance } from './chance.ts';
import { SimulatedJob, type Spelling } from './cluster.ts';
import { type Fault, type FaultOf, isFor, isOfAll, statusOf } from './faults.ts';
import type { Line } from './line.ts';
import type { SimulatedTime } from './time.ts';

export interface Call {
  readonly of: FaultOf;
  readonly operation: Operation;
  readonly jobId: JobId | undefined;
  /** Listed names and keys of live files that it wants. */
  readonly files: readonly string[];
  readonly session: string;
  readonly signal: AbortSignal;
  /** The time limit until the answer begins. */
  readonly silentMs: number;
}

/** How the releases turn bytes into text. */
const DECODERS: readonly DecodingOptions[] = [{}, { stream: true }, { swallowBom: true }, { olderRuntime: true }];
/** A call under way whose session is lost is answered so much later, at most. */
const MAX_LATE_MS = 5_000;
/** docs/guarantees.md: after a refusal the agent waits 5 minutes, a quarter more or less by chance. */
const REFUSED_MS = 3.7 * 60_000;
/** So much later, the agent has used a report. */
const USED_MS = 5_000;

/** A temporary key for the files of a job. */
export interface Key {
  readonly jobId: JobId;
  readonly publicKey: string;
}

export class SimulatedService {
  readonly jobs = new Map<JobId, SimulatedJob>();
  faults: Fault[] = [];
  /** Passwords are refused. */
  refusesSignIn = false;
  /** Whether listings have the times at which their files were changed. */
  hasStamps: boolean;
  /** How it turns bytes into text. */
  decoding: DecodingOptions = {};
  /** How late the list and reports of one job are. */
  readonly delays = { list: 0, report: 0 };
  /** Jobs that the list, or a report of one, does not have. */
  readonly forgotten = { list: new Set<JobId>(), report: new Set<JobId>() };
  spelling: Spelling = 'milliseconds';
  /** How far the clock of the cluster is ahead. */
  clockMs = 0;
  workMs: number;
  /** Temporary keys that are valid. */
  readonly keys = new Set<Key>();
  /** Jobs for which a call failed, and for which one hung. */
  readonly failed = new Set<JobId>();
  readonly hung = new Set<JobId>();
  /** It answered: its clock is known. */
  isKnown = false;
  /** Whether an agent follows a job: it uses each report of it. */
  isFollowed: (jobId: JobId) => boolean = () => false;
  /** What an agent did that it must not do. */
  readonly offences: string[] = [];
  calls = 0;
  /** Called with each call, of all agents. */
  onCall: (call: Call) => void = () => {};
  /** When the secret of a connection was refused; all are removed with what excuses another attempt. */
  refusals = new WeakMap<object, number>();
  readonly #chance: Chance;
  readonly #time: SimulatedTime;
  /** When the list first had each job as deleted. */
  readonly #deletedAt = new Map<JobId, number>();
  readonly #open = new Set<string>();
  /** The last session that each connection got, until a call with it is answered that it is lost. */
  readonly #valid = new Map<object, string>();
  #sessions = 0;
  #forgetsWith = Number.POSITIVE_INFINITY;

  constructor(chance: Chance, time: SimulatedTime) {
    this.#chance = chance;
    this.#time = time;
    this.workMs = chance.spread(2, 80);
    this.hasStamps = chance.is(0.5);
  }

  submit(jobId: JobId): SimulatedJob {
    const job = new SimulatedJob(jobId);
    job.to('Queued', 0);
    this.jobs.set(jobId, job);
    return job;
  }

  job(jobId: JobId): SimulatedJob {
    const job = this.jobs.get(jobId);
    if (job === undefined) throw new JobtailError('not-found', `there is no job ${jobId}`);
    return job;
  }

  /** The faults of a job; with `orAll`, those of all jobs, too. */
  faultsOf(jobId: JobId, orAll = false): Fault[] {
    return this.faults.filter((fault) => fault.jobId === jobId || (orAll && fault.jobId === undefined));
  }

  /** What is reported of a job, by the list or alone. */
  report(job: SimulatedJob, by: 'list' | 'report'): JobInformation[] {
    const delayMs = this.delays[by];
    const late = job.reportLate(this.#time.wallMs - delayMs);
    if (this.forgotten[by].has(job.id) || (delayMs > 0 && late === undefined)) return [];
    return [job.information(delayMs > 0 ? late : undefined, this.spelling, this.clockMs)];
  }

  list(clock: Clock): JobInformation[] {
    const all = [...this.jobs.values()].flatMap((job) => (job.isListed ? this.report(job, 'list') : []));
    // A pass asks for the report of one job, too, and tells nobody else.
    for (const { id, state } of all)
      if (state === 'Deleted' && !this.#deletedAt.has(id) && this.isFollowed(id))
        this.#deletedAt.set(id, clock.monotonic());
    return all;
  }

  /** Another release from now on, which may decode files in another way. */
  upgrade(): void {
    this.hasStamps = this.#chance.is(0.5);
    this.decoding = this.#chance.among(DECODERS);
    this.forgetSessions();
  }

  /** All sessions are lost. */
  forgetSessions(): void {
    this.#open.clear();
    this.#forgetsWith = Number.POSITIVE_INFINITY;
  }

  /** All sessions are lost as soon as so many calls of an agent are under way. */
  forgetSessionsWith(calls: number): void {
    this.#forgetsWith = calls;
  }

  /** Some time passes between two looks at the files, or at two parts of one. */
  pause(clock: Clock, signal: AbortSignal): Promise<void> {
    return sleep(clock, this.#chance.spread(1, 2_000), signal);
  }

  /** Serves one call: resolves when its answer is made; with the fault, if only a part of it comes. */
  async serve(call: Call, line: Line): Promise<Fault | undefined> {
    const { clock, share } = line;
    if (call.signal.aborted) throw new JobtailError('aborted', 'it was stopped');
    this.calls += 1;
    this.onCall(call);
    this.#checkDeleted(call, clock);
    const job = call.jobId === undefined ? undefined : this.jobs.get(call.jobId);
    const asked = line.begun(call, job !== undefined && !job.isOver);
    let isAnswered = false;
    const hadSession = this.#open.has(call.session);
    if (line.running >= this.#forgetsWith) this.forgetSessions();
    try {
      const fault = this.#faultOf(call, clock);
      const slow = fault?.code === 'slow' ? 400 : 1;
      const workMs = this.workMs * this.#chance.spread(0.5, 3) * slow;
      if (fault?.code === 'silent') {
        await sleep(clock, call.silentMs, call.signal);
        throw new JobtailError('timeout', 'the service did not start to respond in time');
      }
      await sleep(clock, Math.min(workMs, call.silentMs), call.signal);
      if (workMs > call.silentMs) throw new JobtailError('timeout', 'the service did not start to respond in time');
      const isLost = !this.#open.has(call.session);
      // Another one may have signed in before.
      if (isLost && hadSession) await sleep(clock, this.#chance.spread(1, MAX_LATE_MS), call.signal);
      const code = isLost ? 'session-lost' : fault?.code;
      if (code === undefined || code === 'slow' || code === 'cut') {
        this.isKnown = true;
        share.responded({ status: 200, firstByteMs: workMs, workMs, retryAfterMs: undefined });
        isAnswered = code !== 'cut';
        return code === 'cut' ? fault : undefined;
      }
      if (code === 'session-lost') {
        this.#deny(call.session);
        line.lost();
      }
      // What is refused is not asked again.
      if (code === 'fault' && call.of === 'revoke')
        for (const key of this.keys) if (key.jobId === call.jobId) this.keys.delete(key);
      const status = statusOf({ code });
      const retryAfterMs = isLost || (status ?? 0) < 400 ? undefined : fault?.retryAfterMs;
      if (status !== undefined) {
        share.responded({ status, firstByteMs: workMs, workMs, retryAfterMs });
        if (retryAfterMs !== undefined) line.pausedUntil = clock.monotonic() + retryAfterMs;
      }
      const hint = 'a fault of the simulation';
      // It quotes the secret that it was sent.
      throw new JobtailError(code, `the service answers ${code} to ${call.session}`, { hint, retryAfterMs });
    } finally {
      line.ended(asked, isAnswered);
    }
  }

  /** What the sign-in of one connection is sent over. */
  http(clock: Clock): Pick<HttpClient, 'request'> {
    const connection = {};
    return {
      request: async ({ signal }) => {
        this.#checkSignIn(connection, clock);
        await sleep(clock, this.workMs, signal);
        const fault = this.faults.find((each) => isOfAll(each) && each.until > clock.monotonic());
        const isDown = fault !== undefined;
        if (isDown && statusOf(fault) === undefined) throw new JobtailError('unreachable', 'no way to the service');
        const isRefused = this.refusesSignIn;
        this.refusals.set(connection, isRefused ? clock.monotonic() : Number.NEGATIVE_INFINITY);
        const session = `session-${++this.#sessions}-of-the-simulation`;
        if (!isRefused) {
          this.#open.add(session);
          this.#valid.set(connection, session);
        }
        const text = isRefused ? 'Wrong credentials' : JSON.stringify(session);
        const body = (async function* () {
          yield Buffer.from(text);
        })();
        const head = { contentType: 'application/json', charset: 'utf-8', retryAfterMs: undefined };
        return { status: isRefused ? 401 : 200, ...head, body };
      },
    };
  }

  #deny(session: string): void {
    for (const [connection, valid] of this.#valid) if (valid === session) this.#valid.delete(connection);
  }

  /** A refused secret is not sent again for minutes, and none while there is a session. */
  #checkSignIn(connection: object, clock: Clock): void {
    if (this.#valid.has(connection))
      this.offences.push('a sign-in although no call was answered that the session is lost');
    const againMs = clock.monotonic() - (this.refusals.get(connection) ?? Number.NEGATIVE_INFINITY);
    if (againMs < REFUSED_MS) this.offences.push(`a refused secret is sent again after ${againMs} ms`);
  }

  /** No file of a job is asked for that was reported as deleted. */
  #checkDeleted({ of, operation, jobId }: Call, clock: Clock): void {
    if (jobId === undefined || !['parts', 'raw', 'result'].includes(of)) return;
    const lateMs = clock.monotonic() - (this.#deletedAt.get(jobId) ?? Number.POSITIVE_INFINITY);
    if (lateMs > USED_MS)
      this.offences.push(`${operation} of job ${jobId} ${lateMs} ms after it was reported as deleted`);
  }

  #faultOf(call: Call, clock: Clock): Fault | undefined {
    const now = clock.monotonic();
    this.faults = this.faults.filter(({ until }) => until > now);
    const fault = this.faults.find((one) => isFor(one, call) && this.#chance.is(one.share));
    if (fault === undefined) return undefined;
    for (const id of fault.jobId === undefined ? this.jobs.keys() : [fault.jobId]) this.failed.add(id);
    if (fault.code === 'silent' && call.jobId !== undefined) this.hung.add(call.jobId);
    return fault;
  }
}
