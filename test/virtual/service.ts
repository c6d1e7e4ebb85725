/** The simulated service: jobs, sessions, delays and failures; it records forbidden actions of each agent. */

import type { DecodingOptions } from '../../simulator/operations/decoding.ts';
import { JobtailError } from '../../src/errors.ts';
import type { JobId } from '../../src/job.ts';
import type { Operation } from '../../src/operations.ts';
import type { HttpClient } from '../../src/remote/http/http-client.ts';
import { type Clock, sleep } from '../../src/system/clock.ts';
import type { Chance } from './chance.ts';
import { SimulatedJob } from './cluster.ts';
import { type Fault, isFor, statusOf } from './faults.ts';
import type { Line } from './line.ts';

export interface Call {
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

export class SimulatedService {
  readonly jobs = new Map<JobId, SimulatedJob>();
  faults: Fault[] = [];
  /** Passwords are refused. */
  refusesSignIn = false;
  /** Whether listings have the times at which their files were changed. */
  hasStamps: boolean;
  /** How it turns bytes into text. */
  decoding: DecodingOptions = {};
  /** What an agent did that it must not do. */
  readonly offences: string[] = [];
  calls = 0;
  /** Called with each call, of all agents. */
  onCall: (call: Call) => void = () => {};
  /** When the secret of a connection was refused; all are removed with what excuses another attempt. */
  refusals = new WeakMap<object, number>();
  readonly #chance: Chance;
  readonly #workMs: number;
  readonly #open = new Set<string>();
  /** The last session that each connection got, until a call with it is answered that it is lost. */
  readonly #valid = new Map<object, string>();
  #sessions = 0;
  #forgetsWith = Number.POSITIVE_INFINITY;

  constructor(chance: Chance) {
    this.#chance = chance;
    this.#workMs = chance.spread(2, 80);
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
    const job = call.jobId === undefined ? undefined : this.jobs.get(call.jobId);
    const asked = line.begun(call, job !== undefined && !job.isOver);
    let isAnswered = false;
    const hadSession = this.#open.has(call.session);
    if (line.running >= this.#forgetsWith) this.forgetSessions();
    try {
      const fault = this.#faultOf(call, clock);
      const slow = fault?.code === 'slow' ? 400 : 1;
      const workMs = this.#workMs * this.#chance.spread(0.5, 3) * slow;
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
        share.responded({ status: 200, firstByteMs: workMs, workMs, retryAfterMs: undefined });
        isAnswered = code !== 'cut';
        return code === 'cut' ? fault : undefined;
      }
      if (code === 'session-lost') {
        this.#deny(call.session);
        line.lost();
      }
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
        await sleep(clock, this.#workMs, signal);
        const fault = this.faults.find((each) => each.operations === undefined && each.jobId === undefined);
        const isDown = fault !== undefined && fault.share === 1 && fault.until > clock.monotonic();
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

  #faultOf(call: Call, clock: Clock): Fault | undefined {
    const now = clock.monotonic();
    this.faults = this.faults.filter(({ until }) => until > now);
    const fault = this.faults.find((one) => isFor(one, call) && this.#chance.is(one.share));
    if (fault !== undefined) fault.hits = (fault.hits ?? 0) + 1;
    return fault;
  }
}
