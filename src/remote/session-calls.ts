/** What all calls of the service have in common, whatever its protocol: the session, and the report of each request. */
import { performance } from 'node:perf_hooks';
import type { Grant, Session } from '../agent/ports.ts';
import { asJobtailError, type ErrorCode, JobtailError } from '../errors.ts';
import type { Secrets } from '../redact.ts';
import { secretOf } from './grants.ts';

/** One request and its answer, for logs and metrics. */
export interface CallEvent {
  readonly operation: string;
  readonly durationMs: number;
  readonly outcome: 'ok' | ErrorCode;
  /** Bytes of the answer. */
  readonly bytes: number;
}

export interface SessionCallsOptions {
  readonly session: Session;
  /** What the session gives goes into them, and nothing of them into an error. */
  readonly secrets: Secrets;
  readonly onCall: (event: CallEvent) => void;
}

/** One request and its answer; counts the bytes of the answer, also of one that ends in an error. */
export type Attempt<T> = (grant: Grant, count: { bytes: number }) => Promise<T>;

export class SessionCalls {
  readonly #options: SessionCallsOptions;

  constructor(options: SessionCallsOptions) {
    this.#options = options;
  }

  /** A session that is lost is renewed once, and the attempt repeated once. @throws JobtailError */
  async call<T>(operation: string, attempt: Attempt<T>, signal: AbortSignal): Promise<T> {
    const { session } = this.#options;
    const grant = await session.current(signal);
    try {
      return await this.#reported(operation, attempt, grant);
    } catch (error) {
      if (!(error instanceof JobtailError && error.policy.signIn)) throw error;
      session.lost(grant);
    }
    return await this.#reported(operation, attempt, await session.current(signal));
  }

  async #reported<T>(operation: string, attempt: Attempt<T>, grant: Grant): Promise<T> {
    const { secrets, onCall } = this.#options;
    secrets.add('session', secretOf(grant));
    const count = { bytes: 0 };
    const startedMs = performance.now();
    const report = (outcome: CallEvent['outcome']) =>
      onCall({ operation, durationMs: performance.now() - startedMs, outcome, bytes: count.bytes });
    try {
      const answered = await attempt(grant, count);
      report('ok');
      return answered;
    } catch (thrown) {
      const error = secrets.hideIn(asJobtailError(thrown));
      report(error.code);
      throw error;
    }
  }
}
