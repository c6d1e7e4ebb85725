/** How the service stands, as the calls and sign-ins of the agent show it: for STATUS= and /readyz. */
import type { ErrorCode } from '../errors.ts';

/** What keeps all jobs from being followed, in words that go on "the service ...". */
const DOWN: Partial<Readonly<Record<ErrorCode, string>>> = {
  unreachable: 'cannot be reached',
  tls: 'cannot be trusted (TLS)',
  timeout: 'does not answer',
  interrupted: 'breaks off its answers',
  'rate-limited': 'allows no more calls for now',
  unavailable: 'is not available',
  redirected: 'has moved',
  'http-status': 'answers with an error',
  malformed: 'answers with something else',
  'unexpected-answer': 'answers with something else',
  'sign-in-refused': 'refuses the sign-in',
  'secret-unavailable': 'cannot be signed in to: the secret cannot be read',
};

export class Standing {
  readonly #now: () => number;
  #failure: { readonly code: ErrorCode; readonly since: number } | undefined;

  /** `now` is in milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** How one call or sign-in ended. */
  note(outcome: 'ok' | ErrorCode): void {
    if (outcome === 'aborted') return;
    if (outcome === 'ok' || DOWN[outcome] === undefined) this.#failure = undefined;
    else this.#failure = { code: outcome, since: this.#failure?.since ?? this.#now() };
  }

  /** What is wrong, and for how many milliseconds; undefined while the service answers. */
  get failure(): { readonly text: string; readonly forMs: number } | undefined {
    if (this.#failure === undefined) return undefined;
    const { code, since } = this.#failure;
    return { text: `the service ${DOWN[code]}`, forMs: this.#now() - since };
  }
}
