/** The session of this agent's user: signs in on demand, once for all waiting calls, with pauses after failures. */
import type { Grant, Session } from '../../agent/ports.ts';
import { API_KEY, type AuthSettings, secretNameOf } from '../../auth.ts';
import { BackOff } from '../../back-off.ts';
import { asJobtailError, JobtailError } from '../../errors.ts';
import type { Secrets } from '../../redact.ts';
import type { HttpClient } from '../http/http-client.ts';
import { callOperation } from './operation.ts';
import { Secret } from './read-secret.ts';
import { FAULT_OR_UNKNOWN_USER } from './refusal.ts';

const SECRET_WORDS = { password: 'password', token: 'token', sessionCode: 'session code' } as const;
export const FIRST_PAUSE_MS = 5000;
export const MAX_PAUSE_MS = 5 * 60_000;
/** Sites lock an account after a few wrong passwords within minutes. */
export const FIRST_PAUSE_AFTER_REFUSAL_MS = 5 * 60_000;
export const MAX_PAUSE_AFTER_REFUSAL_MS = 60 * 60_000;

export type SignInEvent =
  | { readonly kind: 'signed-in'; readonly grant: Grant['kind']; readonly tookMs: number }
  | { readonly kind: 'failed'; readonly error: JobtailError; readonly tookMs: number };

export interface SignInOptions {
  /** {base_url}; may be null with the method `session-code`. */
  readonly baseUrl: string | null;
  readonly auth: AuthSettings;
  readonly http: Pick<HttpClient, 'request'>;
  readonly onSignIn: (event: SignInEvent) => void;
  readonly onWarning: (message: string) => void;
  readonly secrets: Secrets;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly nowMs: () => number;
  readonly random: () => number;
}

/** What the last sign-in left; nothing before the first one, and after the session was lost. */
type SignInState =
  | { readonly kind: 'none' }
  | { readonly kind: 'open'; readonly grant: Grant }
  | { readonly kind: 'failed'; readonly error: JobtailError };

export class SignIn implements Session {
  readonly #options: SignInOptions;
  readonly #secret: Secret;
  readonly #renewed = sharedCall((signal) => this.#renew(signal));
  readonly #backOff: BackOff;
  readonly #refusals: BackOff;
  #hasSucceeded = false;
  #state: SignInState = { kind: 'none' };

  constructor(options: SignInOptions) {
    const { auth, env, onWarning, random, nowMs } = options;
    this.#options = options;
    this.#secret = new Secret({ source: auth.secret, name: SECRET_WORDS[secretNameOf(auth.method)], env, onWarning });
    this.#backOff = new BackOff({ firstMs: FIRST_PAUSE_MS, maxMs: MAX_PAUSE_MS, nowMs, random });
    this.#refusals = new BackOff({
      firstMs: FIRST_PAUSE_AFTER_REFUSAL_MS,
      maxMs: MAX_PAUSE_AFTER_REFUSAL_MS,
      nowMs,
      random,
    });
  }

  /**
   * Returns the current grant, or a new one. After a lasting failure, it rejects at once with that failure until the
   * pause is over or the file of the secret has changed. The pause doubles from 5 s to 5 min after a fault of the
   * server, and from 5 min to 1 h after a refusal. @throws JobtailError sign-in-refused, secret-unavailable,
   * unexpected-answer, malformed, http-status, aborted, and what the HTTP client throws
   */
  async current(signal: AbortSignal): Promise<Grant> {
    return this.#state.kind === 'open' ? this.#state.grant : this.#renewed(signal);
  }

  /**
   * Drops `grant` if it is the current one; a late report about an older grant, even with the same code, is ignored.
   */
  lost(grant: Grant): void {
    if (this.#state.kind === 'open' && this.#state.grant === grant) this.#state = { kind: 'none' };
  }

  async #renew(signal: AbortSignal): Promise<Grant> {
    await this.#respectPause();
    const startedMs = this.#options.nowMs();
    let grant: Grant;
    try {
      grant = await this.#attempt(signal);
    } catch (thrown) {
      // No caller waits any more, so this is no failure.
      if (signal.aborted) throw stopped();
      const error = this.#failed(thrown);
      this.#options.onSignIn({ kind: 'failed', error, tookMs: this.#options.nowMs() - startedMs });
      throw error;
    }
    if (signal.aborted) throw stopped();
    this.#state = { kind: 'open', grant };
    this.#hasSucceeded = true;
    this.#backOff.reset();
    this.#refusals.reset();
    this.#options.onSignIn({ kind: 'signed-in', grant: grant.kind, tookMs: this.#options.nowMs() - startedMs });
    return grant;
  }

  #failed(thrown: unknown): JobtailError {
    const error = this.#options.secrets.hideIn(asJobtailError(thrown));
    this.#state = { kind: 'failed', error };
    // For passing errors, the back-off of the caller suffices.
    if (this.#mayBeRefusal(error)) this.#refusals.lengthen();
    else if (!error.policy.passes) this.#backOff.lengthen();
    this.#backOff.pause(error.retryAfterMs ?? 0);
    return this.#withNextTry(error);
  }

  /** Whether it may be a refusal: some releases answer an unknown user like a fault. */
  #mayBeRefusal({ code, hint }: JobtailError): boolean {
    return code === 'sign-in-refused' || (hint === FAULT_OR_UNKNOWN_USER && !this.#hasSucceeded);
  }

  get #remainingMs(): number {
    return Math.max(this.#backOff.remainingMs, this.#refusals.remainingMs);
  }

  async #respectPause(): Promise<void> {
    if (this.#state.kind !== 'failed' || this.#remainingMs === 0) return;
    const { error } = this.#state;
    // Retry-After applies even to a new secret.
    const mayBeMended = error.retryAfterMs === undefined && (await this.#secret.hasChanged());
    if (!mayBeMended) throw this.#withNextTry(error);
  }

  #withNextTry(error: JobtailError): JobtailError {
    const seconds = Math.ceil(this.#remainingMs / 1000);
    if (seconds === 0) return error;
    return new JobtailError(error.code, `${error.message}; next sign-in in ${seconds} s`, {
      hint: error.hint,
      retryAfterMs: error.retryAfterMs === undefined ? undefined : this.#remainingMs,
    });
  }

  async #attempt(signal: AbortSignal): Promise<Grant> {
    const { auth } = this.#options;
    const secret = await this.#secret.read(signal);
    this.#options.secrets.add('sign-in', secret);
    if (auth.method === 'session-code') return { kind: 'session', code: secret };
    if (auth.method === API_KEY) return { kind: 'api-key', key: `${auth.username}:${secret}` };
    try {
      const { baseUrl, http, secrets } = this.#options;
      return await callOperation(auth, { baseUrl, http, secret, secretPlace: this.#secret.place, secrets, signal });
    } catch (thrown) {
      if (thrown instanceof JobtailError) throw thrown;
      // A defect; as a cause it could contain the request.
      const text = thrown instanceof Error ? thrown.message : '';
      throw new JobtailError('internal', `the sign-in failed: ${this.#options.secrets.safeText(text)}`);
    }
  }
}

interface Call<T> {
  readonly result: Promise<T>;
  readonly stop: AbortController;
  waiting: number;
}

/**
 * A function that resolves with the result of the call under way, or of a new one; it rejects with `aborted` when its
 * signal fires. The signal of `work` fires when all waiting callers have gone.
 */
export function sharedCall<T>(work: (signal: AbortSignal) => Promise<T>): (signal: AbortSignal) => Promise<T> {
  let current: Call<T> | undefined;
  const forget = (call: Call<T>) => {
    if (current === call) current = undefined;
  };
  const start = () => {
    const stop = new AbortController();
    const call: Call<T> = { result: work(stop.signal), stop, waiting: 0 };
    call.result.finally(() => forget(call)).catch(() => {});
    return call;
  };
  return async (signal) => {
    if (signal.aborted) throw stopped();
    current ??= start();
    const call = current;
    call.waiting += 1;
    return new Promise((resolve, reject) => {
      const leave = () => {
        reject(stopped());
        call.waiting -= 1;
        if (call.waiting > 0) return;
        forget(call);
        call.stop.abort();
      };
      const stay = () => signal.removeEventListener('abort', leave);
      signal.addEventListener('abort', leave, { once: true });
      call.result.then(resolve, reject).finally(stay);
    });
  };
}

const stopped = () => new JobtailError('aborted', 'the sign-in was stopped');
