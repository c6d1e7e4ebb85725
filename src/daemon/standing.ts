/** How the service stands, as the calls and sign-ins of the agent show it: for STATUS= and /readyz. */
import { ERROR_POLICIES, type ErrorCode } from '../errors.ts';

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
    if (outcome === 'ok' || ERROR_POLICIES[outcome].standing === null) this.#failure = undefined;
    else this.#failure = { code: outcome, since: this.#failure?.since ?? this.#now() };
  }

  /** What is wrong, and for how many milliseconds; undefined while the service answers. */
  get failure(): { readonly text: string; readonly forMs: number } | undefined {
    if (this.#failure === undefined) return undefined;
    const { code, since } = this.#failure;
    return { text: `the service ${ERROR_POLICIES[code].standing}`, forMs: this.#now() - since };
  }
}
