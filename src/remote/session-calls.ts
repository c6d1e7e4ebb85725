/** The session, the requests, and a report of each, for all calls of the service by either protocol. */
import { performance } from 'node:perf_hooks';
import type { Grant, Session } from '../agent/ports/server.ts';
import { API_KEY_HEADER } from '../auth.ts';
import { BackOff } from '../back-off.ts';
import { asJobtailError, type ErrorCode, JobtailError } from '../errors.ts';
import type { Secrets } from '../redact.ts';
import type { HttpClient } from './http/http-client.ts';

export function secretOf(grant: Grant): string {
  switch (grant.kind) {
    case 'session':
      return grant.code;
    case 'bearer':
      return grant.token;
    case 'api-key':
      return grant.key;
  }
}

/** The headers of a grant; none for a session code, which is an argument. */
export function grantHeaders(grant: Grant): Readonly<Record<string, string>> {
  if (grant.kind === 'session') return {};
  const secret = secretOf(grant);
  if (!/^[\x20-\x7e]+$/.test(secret) || (grant.kind === 'bearer' && secret.includes(' '))) {
    const what = grant.kind === 'bearer' ? 'token' : 'user name or password';
    throw new JobtailError('config', `the ${what} contains characters that are not allowed in an HTTP header`, {
      hint: 'check the file or the command in the section auth',
    });
  }
  return grant.kind === 'bearer' ? { authorization: `Bearer ${secret}` } : { [API_KEY_HEADER]: secret };
}

export interface CallEvent {
  readonly operation: string;
  readonly durationMs: number;
  readonly outcome: 'ok' | ErrorCode;
  readonly bytes: number;
}

interface SessionCallsOptions {
  readonly session: Session;
  /** Grants are added to them, so that no error shows them. */
  readonly secrets: Secrets;
  readonly onCall: (event: CallEvent) => void;
  /** Waits before each request until the service allows one: a sign-in may outlast a requested pause. */
  readonly untilAllowed: (signal: AbortSignal) => Promise<void>;
  /** The monotonic clock; that of the machine if omitted. */
  readonly nowMs?: () => number;
}

/** Pauses between sign-ins for a job whose calls fail with each session. */
const IN_VAIN = { firstMs: 60_000, maxMs: 15 * 60_000, random: Math.random };
/** After so many sign-ins in a row without a call that succeeds, all jobs wait: a proxy may refuse everything. */
const MAX_IN_A_ROW = 3;
const ALL_IN_VAIN = { ...IN_VAIN, maxMs: IN_VAIN.firstMs };

/** The bytes of a response, also of one that ends in an error. */
export interface Count {
  bytes: number;
}

export type Attempt<T> = (grant: Grant, count: Count) => Promise<T>;

export class SessionCalls {
  readonly #options: SessionCallsOptions;
  /** By operation and job: the service may refuse that job alone with the words of a lost session. */
  readonly #inVain = new Map<string, BackOff>();
  readonly #nowMs: () => number;
  readonly #allInVain: BackOff;
  #inVainInARow = 0;

  constructor(options: SessionCallsOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.#allInVain = new BackOff({ ...ALL_IN_VAIN, nowMs: this.#nowMs });
  }

  /**
   * After a lost session, signs in and repeats the attempt once, unless that did not help the same operation for this
   * job, or several calls in a row, a moment ago, by the same secret. @throws JobtailError
   */
  async call<T>(operation: string, jobId: string, attempt: Attempt<T>, signal: AbortSignal): Promise<T> {
    const { session } = this.#options;
    const key = `${operation} ${jobId}`;
    const inVain = this.#inVain.get(key) ?? new BackOff({ ...IN_VAIN, nowMs: this.#nowMs });
    const waits = () => Math.max(inVain.remainingMs, this.#allInVain.remainingMs) > 0;
    const attempted = async (grant: Grant) => {
      const answered = await this.#reported(operation, attempt, grant, signal);
      this.#inVain.delete(key);
      this.#allInVain.reset();
      this.#inVainInARow = 0;
      return answered;
    };
    const grant = await session.current(signal);
    try {
      return await attempted(grant);
    } catch (error) {
      if (!isLost(error) || (waits() && !(await session.hasOtherSecret()))) throw error;
      session.lost(grant);
    }
    try {
      return await attempted(await session.current(signal));
    } catch (error) {
      if (isLost(error)) {
        inVain.lengthen();
        this.#inVain.set(key, inVain);
        this.#inVainInARow += 1;
        if (this.#inVainInARow >= MAX_IN_A_ROW) this.#allInVain.lengthen();
      }
      throw error;
    }
  }

  async #reported<T>(operation: string, attempt: Attempt<T>, grant: Grant, signal: AbortSignal): Promise<T> {
    const { session, secrets, onCall, untilAllowed } = this.#options;
    await untilAllowed(signal);
    secrets.add('session', secretOf(grant));
    const count = { bytes: 0 };
    const startedMs = this.#nowMs();
    const report = (outcome: CallEvent['outcome']) =>
      onCall({ operation, durationMs: this.#nowMs() - startedMs, outcome, bytes: count.bytes });
    try {
      const answered = await attempt(grant, count);
      report('ok');
      return answered;
    } catch (thrown) {
      const answer = secrets.hideIn(asJobtailError(thrown));
      const error = answer.code === 'sign-in-refused' ? session.refused(grant, answer) : answer;
      report(error.code);
      throw error;
    }
  }
}

const isLost = (error: unknown) => error instanceof JobtailError && error.code === 'session-lost';

export interface ServiceCallsOptions extends SessionCallsOptions {
  readonly http: HttpClient;
  readonly isSessionFault: (words: string) => boolean;
}
