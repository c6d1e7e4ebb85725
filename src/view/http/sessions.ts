/**
 * Who may ask. A browser shows a ticket once and gets a session, which ends with this start of the server; a program sends
 * the token itself.
 */
import { createHash, randomBytes } from 'node:crypto';
import { type Challenge, type Hello, openTicket, proofOf, ticketFor } from '../proof.ts';
import { tokenCheck } from './token.ts';

/** Beyond it, the session that was used longest ago ends. */
const MAX_SESSIONS = 1_000;

export class Sessions {
  readonly #token: string;
  readonly #isToken: (shown: string | undefined) => boolean;
  readonly #start = randomBytes(16).toString('base64url');
  /** Digests of the cookies, the one used longest ago first. */
  readonly #open = new Set<string>();
  /** Nonces of tickets that were used, until they would have ended. */
  readonly #used = new Map<string, number>();

  constructor(token: string) {
    this.#token = token;
    this.#isToken = tokenCheck(token);
  }

  hello(challenge: Challenge): Hello {
    return { start: this.#start, proof: proofOf(this.#token, this.#start, challenge) };
  }

  ticket(): string {
    return ticketFor(this.#token, this.#start, Date.now());
  }

  /** A new session for a ticket; undefined if it is none, used already, or too old. */
  enter(ticket: string): string | undefined {
    const now = Date.now();
    for (const [nonce, until] of this.#used) if (until <= now) this.#used.delete(nonce);
    const opened = openTicket(this.#token, this.#start, ticket, now);
    if (opened === undefined || this.#used.has(opened.nonce)) return undefined;
    this.#used.set(opened.nonce, opened.until);
    const session = randomBytes(32).toString('base64url');
    this.#open.add(digest(session));
    for (const oldest of this.#open) {
      if (this.#open.size <= MAX_SESSIONS) break;
      this.#open.delete(oldest);
    }
    return session;
  }

  /** Whether a request that shows these may be answered. */
  admits({ cookies, bearer }: { readonly cookies: readonly string[]; readonly bearer: string | undefined }): boolean {
    return cookies.some((cookie) => this.#isOpen(digest(cookie))) || this.#isToken(bearer);
  }

  #isOpen(session: string): boolean {
    if (!this.#open.delete(session)) return false;
    this.#open.add(session);
    return true;
  }
}

const digest = (text: string) => createHash('sha256').update(text).digest('base64url');
