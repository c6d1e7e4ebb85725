/** The session of this agent's user: signs in when it is needed, once for all who wait, and not again and again. */
import { performance } from 'node:perf_hooks';
import type { Grant, Session } from '../../agent/ports.ts';
import { BackOff } from '../../back-off.ts';
import { asJobtailError, JobtailError } from '../../errors.ts';
import { Secrets } from '../../redact.ts';
import { type HttpClient, readBody } from '../http/http-client.ts';
import { readGrant } from './answer.ts';
import { bodyOf, type OperationSettings, type SignInSettings, secretNameOf, urlOf } from './operation.ts';
import { refusalOf } from './refusal.ts';
import { Secret } from './secret.ts';
import { SharedCall } from './shared-call.ts';

const MAX_ANSWER_BYTES = 64 * 1024;
const MAX_QUOTED_CHARACTERS = 8192;
const FIRST_PAUSE_MS = 5000;
const MAX_PAUSE_MS = 5 * 60_000;

/** What happened, for the log and the metrics. Holds no secret. */
export type SignInEvent =
  | { readonly kind: 'signed-in'; readonly grant: Grant['kind']; readonly tookMs: number }
  | { readonly kind: 'failed'; readonly error: JobtailError; readonly tookMs: number };

export interface SignInOptions {
  /** {base_url}; may be null with the method `session-code`. */
  readonly baseUrl: string | null;
  readonly auth: SignInSettings;
  readonly http: Pick<HttpClient, 'request'>;
  readonly onSignIn?: (event: SignInEvent) => void;
  /** A secret that others can read, for example. */
  readonly onWarning?: (message: string) => void;
  /** What is read and what is given goes into them, and nothing of them into a message. */
  readonly secrets?: Secrets;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** A clock that never jumps, in milliseconds. */
  readonly nowMs?: () => number;
  readonly random?: () => number;
}

export class SignIn implements Session {
  readonly #options: SignInOptions;
  readonly #nowMs: () => number;
  readonly #secret: Secret;
  readonly #secrets: Secrets;
  readonly #call = new SharedCall((signal) => this.#renew(signal));
  readonly #backOff: BackOff;
  #grant: Grant | undefined;
  #failure: JobtailError | undefined;

  constructor(options: SignInOptions) {
    const { auth, env = process.env, onWarning = () => undefined, random = Math.random } = options;
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.#secrets = options.secrets ?? new Secrets();
    this.#secret = new Secret({ source: auth.secret, name: secretNameOf(auth.method), env, onWarning });
    this.#backOff = new BackOff({ firstMs: FIRST_PAUSE_MS, maxMs: MAX_PAUSE_MS, nowMs: this.#nowMs, random });
  }

  /**
   * The grant in force, or a new one. After a failure that somebody must mend, it rejects at once with that failure
   * until the pause is over (5 s, doubling up to 5 min) or the file of the secret has changed.
   * @throws JobtailError sign-in-refused, secret-unavailable, unexpected-answer, malformed, http-status, aborted, and
   *   what src/http throws
   */
  async current(signal: AbortSignal): Promise<Grant> {
    return this.#grant ?? this.#call.join(signal);
  }

  /** Drops `grant` if it is the one in force; a late word about a former one, even with the same code, is passed over. */
  lost(grant: Grant): void {
    if (this.#grant === grant) this.#grant = undefined;
  }

  async #renew(signal: AbortSignal): Promise<Grant> {
    await this.#respectPause();
    const startedMs = this.#nowMs();
    let grant: Grant;
    try {
      grant = await this.#attempt(signal);
    } catch (thrown) {
      // Nobody waits for it any more: that is no failure.
      if (signal.aborted) throw stopped();
      const error = this.#failed(thrown);
      this.#options.onSignIn?.({ kind: 'failed', error, tookMs: this.#nowMs() - startedMs });
      throw error;
    }
    if (signal.aborted) throw stopped();
    this.#grant = grant;
    this.#failure = undefined;
    this.#backOff.reset();
    this.#options.onSignIn?.({ kind: 'signed-in', grant: grant.kind, tookMs: this.#nowMs() - startedMs });
    return grant;
  }

  /** Begins the pause that a failure calls for. */
  #failed(thrown: unknown): JobtailError {
    const error = this.#secrets.hideIn(asJobtailError(thrown));
    this.#failure = error;
    // What passes by itself: the caller's own back-off is enough.
    if (!error.policy.passes) this.#backOff.lengthen();
    this.#backOff.pause(error.retryAfterMs ?? 0);
    return this.#withNextTry(error);
  }

  async #respectPause(): Promise<void> {
    if (this.#failure === undefined || this.#backOff.remainingMs === 0) return;
    // The server's wish counts whatever the secret is.
    const mayBeMended = this.#failure.retryAfterMs === undefined && (await this.#secret.hasChanged());
    if (!mayBeMended) throw this.#withNextTry(this.#failure);
  }

  #withNextTry(error: JobtailError): JobtailError {
    const seconds = Math.ceil(this.#backOff.remainingMs / 1000);
    if (seconds === 0) return error;
    return new JobtailError(error.code, `${error.message}; no other sign-in is sent for ${seconds} s`, {
      ...(error.hint === undefined ? {} : { hint: error.hint }),
      ...(error.retryAfterMs === undefined ? {} : { retryAfterMs: this.#backOff.remainingMs }),
    });
  }

  async #attempt(signal: AbortSignal): Promise<Grant> {
    const { auth } = this.#options;
    const secret = await this.#secret.read(signal);
    this.#secrets.add('sign-in', secret);
    if (auth.method === 'session-code') return { kind: 'session', code: secret };
    try {
      return await this.#callOperation(auth, secret, signal);
    } catch (thrown) {
      if (thrown instanceof JobtailError) throw thrown;
      // A defect; as a cause it could carry the request.
      const said = thrown instanceof Error ? thrown.message : '';
      throw new JobtailError('internal', `the sign-in failed: ${this.#secrets.safeText(said)}`);
    }
  }

  async #callOperation(auth: OperationSettings, secret: string, signal: AbortSignal): Promise<Grant> {
    const { baseUrl, http } = this.#options;
    if (baseUrl === null)
      throw new JobtailError('config', 'service.baseUrl is missing', { hint: 'set service.baseUrl' });
    const url = urlOf(baseUrl, auth);
    const headers = { accept: 'application/json', 'Content-Type': 'application/json' };
    const answer = await http.request({ method: 'POST', url, headers, body: bodyOf(auth, secret), signal });
    const { status, contentType, retryAfterMs } = answer;
    if (status < 200 || status > 299) {
      const text = await beginningOf(answer.body);
      throw refusalOf({ status, retryAfterMs, text }, { url, secrets: this.#secrets, secretPlace: this.#secret.place });
    }
    const text = new TextDecoder().decode(await readBody(answer, MAX_ANSWER_BYTES));
    const { method, sessionCodeField } = auth;
    const rules = { secret, secrets: this.#secrets, isToken: method !== 'password', sessionCodeField };
    return readGrant({ text, contentType }, rules);
  }
}

/** Enough of an error page to quote it; how long it is does not matter. */
async function beginningOf(body: AsyncIterable<Buffer>): Promise<string> {
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length >= MAX_QUOTED_CHARACTERS) break;
  }
  return text;
}

const stopped = () => new JobtailError('aborted', 'the sign-in was stopped');
