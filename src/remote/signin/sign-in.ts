/** The session of this agent's user: signs in on demand, once for all waiting calls, with pauses after failures. */
import type { Grant, Session } from '../../agent/ports/server.ts';
import { API_KEY, type AuthSettings, NEXT_SIGN_IN, secretNameOf } from '../../auth.ts';
import { BackOff } from '../../back-off.ts';
import { asJobtailError, JobtailError } from '../../errors.ts';
import { withoutStop } from '../../printable.ts';
import type { Secrets } from '../../redact.ts';
import { Secret } from '../../system/secret.ts';
import type { HttpSender } from '../http/http-client.ts';
import { callOperation } from './operation.ts';

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
  readonly http: HttpSender;
  /** Whether this process signs in again after a pause, which its errors then name. */
  readonly signsInAgain: boolean;
  readonly onSignIn: (event: SignInEvent) => void;
  readonly onWarning: (message: string) => void;
  readonly secrets: Secrets;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly nowMs: () => number;
  readonly random: () => number;
}

/** A sign-in is under way, once for all calls that wait for it. */
interface OpeningSession {
  readonly result: Promise<Grant>;
  readonly stop: AbortController;
  waiting: number;
}

export class SignIn implements Session {
  readonly #options: SignInOptions;
  readonly #secret: Secret;
  readonly #backOff: BackOff;
  readonly #refusals: BackOff;
  /** The secret of the last sign-in. */
  #read: string | undefined;
  #grant: Grant | undefined;
  /** Since when the grant is in force, by `nowMs`; infinite if there is none. */
  signedInAt = Number.POSITIVE_INFINITY;
  #opening: OpeningSession | undefined;
  /** The last one: the next sign-in waits for the end of its pause. */
  #failure: JobtailError | undefined;

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
    if (this.#grant !== undefined) return this.#grant;
    if (signal.aborted) throw stopped();
    return this.#wait(this.#opening ?? this.#begin(), signal);
  }

  /** Drops `grant` if it is the current one: a late report about an older one, even with the same code, is ignored. */
  lost(grant: Grant): void {
    if (this.#grant !== grant) return;
    this.#grant = undefined;
    this.signedInAt = Number.POSITIVE_INFINITY;
  }

  refused(grant: Grant, thrown: JobtailError): JobtailError {
    if (this.#grant !== grant) return thrown;
    // It was accepted for so long.
    if (this.#options.nowMs() - this.signedInAt > MAX_PAUSE_AFTER_REFUSAL_MS) this.#refusals.reset();
    this.lost(grant);
    const error = this.#failed(thrown);
    this.#options.onSignIn({ kind: 'failed', error, tookMs: 0 });
    return this.#withNextTry(error);
  }

  hasOtherSecret(): Promise<boolean> {
    return this.#secret.hasChanged();
  }

  #begin(): OpeningSession {
    const stop = new AbortController();
    const result = Promise.resolve()
      .then(() => this.#signIn(stop.signal))
      .finally(() => this.#end(opening));
    const opening: OpeningSession = { result, stop, waiting: 0 };
    this.#opening = opening;
    return opening;
  }

  /** However it ends, a sign-in does not stay under way. */
  #end(opening: OpeningSession): void {
    if (this.#opening === opening) this.#opening = undefined;
  }

  /** Rejects with `aborted` when `signal` fires. The sign-in is stopped when its last caller has gone. */
  #wait(opening: OpeningSession, signal: AbortSignal): Promise<Grant> {
    opening.waiting += 1;
    return new Promise((resolve, reject) => {
      const leave = () => {
        reject(stopped());
        opening.waiting -= 1;
        if (opening.waiting > 0) return;
        opening.stop.abort();
        this.#end(opening);
      };
      const stay = () => signal.removeEventListener('abort', leave);
      signal.addEventListener('abort', leave, { once: true });
      opening.result.then(resolve, reject).finally(stay);
    });
  }

  /** `signal` fires when no call waits any more: then the outcome does not count. */
  async #signIn(signal: AbortSignal): Promise<Grant> {
    if (this.#failure !== undefined) await this.#respectPause(this.#failure, signal);
    const startedMs = this.#options.nowMs();
    let grant: Grant;
    try {
      grant = await this.#attempt(signal);
    } catch (thrown) {
      if (signal.aborted) throw stopped();
      const error = this.#failed(thrown);
      this.#options.onSignIn({ kind: 'failed', error, tookMs: this.#options.nowMs() - startedMs });
      throw this.#withNextTry(error);
    }
    if (signal.aborted) throw stopped();
    this.#grant = grant;
    this.signedInAt = this.#options.nowMs();
    this.#backOff.reset();
    // Of a key, the calls show whether it is accepted.
    if (grant.kind !== 'api-key') this.#refusals.reset();
    this.#options.onSignIn({ kind: 'signed-in', grant: grant.kind, tookMs: this.#options.nowMs() - startedMs });
    return grant;
  }

  #failed(thrown: unknown): JobtailError {
    const error = this.#options.secrets.hideIn(asJobtailError(thrown));
    this.#failure = error;
    // For passing errors, the back-off of the caller suffices.
    if (error.code === 'sign-in-refused') this.#refusals.lengthen();
    else if (!error.policy.passes) this.#backOff.lengthen();
    this.#backOff.pause(error.retryAfterMs ?? 0);
    return error;
  }

  get #remainingMs(): number {
    return Math.max(this.#backOff.remainingMs, this.#refusals.remainingMs);
  }

  async #respectPause(error: JobtailError, signal: AbortSignal): Promise<void> {
    if (this.#remainingMs === 0) return;
    // Retry-After applies even to a new secret.
    const mayBeMended = error.retryAfterMs === undefined && (await this.#isOther(error, signal));
    if (signal.aborted) throw stopped();
    if (!mayBeMended) throw this.#withNextTry(error);
  }

  /** Whether the secret was changed. The same one in a file that was written again is refused again. */
  async #isOther(error: JobtailError, signal: AbortSignal): Promise<boolean> {
    if (!(await this.#secret.hasChanged())) return false;
    return error.code !== 'sign-in-refused' || (await this.#secret.read(signal).catch(() => undefined)) !== this.#read;
  }

  #withNextTry(error: JobtailError): JobtailError {
    const seconds = Math.ceil(this.#remainingMs / 1000);
    if (seconds === 0) return error;
    const next = this.#options.signsInAgain ? `${NEXT_SIGN_IN}${seconds} s, or when the secret changes` : '';
    const message = next === '' ? error.message : `${withoutStop(error.message)}${next}`;
    return new JobtailError(error.code, message, {
      hint: error.hint,
      retryAfterMs: error.retryAfterMs === undefined ? undefined : this.#remainingMs,
    });
  }

  async #attempt(signal: AbortSignal): Promise<Grant> {
    const { auth } = this.#options;
    const written = await this.#secret.read(signal);
    if (auth.method === API_KEY && written !== this.#read) this.#refusals.reset();
    this.#read = written;
    const isToken = secretNameOf(auth.method) === 'token';
    const secret = isToken ? tokenOf(written) : written;
    for (const text of new Set([written, secret])) this.#options.secrets.add('sign-in', text);
    if (auth.method === 'session-code') return { kind: 'session', code: secret };
    if (auth.method === API_KEY) return { kind: 'api-key', key: `${auth.username}:${secret}` };
    try {
      const { baseUrl, http, secrets } = this.#options;
      return await callOperation(auth, { baseUrl, http, secret, secretPlace: this.#secret.place, secrets, signal });
    } catch (thrown) {
      if (thrown instanceof JobtailError) throw isToken ? namingExpiry(thrown, secret) : thrown;
      // A defect; as a cause it could contain the request.
      const text = thrown instanceof Error ? thrown.message : '';
      throw new JobtailError('internal', `the sign-in failed: ${this.#options.secrets.safeText(text)}`);
    }
  }
}

/** Not found out before the call: the clock of this machine may be wrong. */
function namingExpiry(error: JobtailError, token: string): JobtailError {
  const { code, message, hint, retryAfterMs } = error;
  const expiry = error.policy.passes ? '' : expiryOf(token, Date.now());
  return expiry === '' ? error : new JobtailError(code, message, { hint: `${expiry}; ${hint}`, retryAfterMs });
}

const stopped = () => new JobtailError('aborted', 'the sign-in was stopped');

/** The token alone: issuers print it with `Bearer`, in quotes, or in the JSON of a token endpoint. */
export function tokenOf(text: string): string {
  const { access_token: found = text } = objectOf(text);
  return String(found)
    .trim()
    .replace(/^"(.+)"$|^'(.+)'$/, '$1$2')
    .replace(/^bearer\s+/i, '')
    .trim();
}

/** Why a JSON web token may be refused: it is too old by the clock of this machine; '' if it is not, or is none. */
export function expiryOf(token: string, now: number): string {
  const { exp } = objectOf(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
  const endsAt = typeof exp === 'number' ? exp * 1000 : Number.NaN;
  const date = new Date(endsAt);
  return endsAt < now && !Number.isNaN(date.getTime()) ? `the token expired on ${date.toISOString()}` : '';
}

/** The members of a JSON object; none of anything else. */
function objectOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}
