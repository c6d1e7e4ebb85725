/**
 * How the view and its pages prove themselves to each other. The threat: while the agent restarts, another user of this
 * machine can listen on its port, and gets what browsers send there, and what they stored for its pages. So no page
 * sends or stores what opens a later start of the view: the key of its session stays in its memory, and it goes on
 * after a restart only where the server has proven to have that key.
 *
 * All is derived from the token, and nothing is stored. A ticket opens the view once, for the person who got a link. A
 * session has a key, and what a request shows of it (`access`) ends with this start of the view, as does a pass, which is for one
 * address. Each is bound to its use: none can stand for another.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { PageSession, ProvenHello } from './contract/addresses.ts';

/** A link opens the view for so long. */
export const TICKET_MS = 60_000;
const NONCE = /^[A-Za-z0-9_-]{22,86}$/;

export const newNonce = (): string => randomBytes(32).toString('base64url');
export const isNonce = (text: string): boolean => NONCE.test(text);

/** The end of a TCP connection as both of its sides write it. */
export const endpointOf = (address: string | undefined, port: number | undefined): string =>
  `${address?.replace(/^::ffff:/i, '')} ${port}`;

/** Pages make the same seals (page/session.ts). */
export const seal = (key: string, ...parts: readonly string[]): string =>
  createHmac('sha256', key)
    .update(['jobtail view', ...parts].join('\n'))
    .digest('base64url');

/** Whether two texts are the same; takes as long wherever they differ. */
export function isSame(seen: string, wanted: string): boolean {
  const [a, b] = [Buffer.from(seen), Buffer.from(wanted)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** A ticket for one entry within the next minute. */
export function ticketFor(token: string, start: string, now: number): string {
  const [until, nonce] = [String(now + TICKET_MS), newNonce()];
  return `${until}.${nonce}.${seal(token, 'ticket', start, until, nonce)}`;
}

/** The nonce of a ticket, and when it ends; undefined if it is none of this start, or over. */
export function openTicket(token: string, start: string, ticket: string, now: number) {
  const [, until = '', nonce = '', seen = ''] =
    /^([0-9]{1,16})\.([A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{43})$/.exec(ticket) ?? [];
  if (!isSame(seen, seal(token, 'ticket', start, until, nonce))) return undefined;
  const left = Number(until) - now;
  return left > 0 && left <= TICKET_MS ? { nonce, until: Number(until) } : undefined;
}

export class Proofs {
  readonly #token: string;
  /** Where the view listens: another one with the same token proves nothing to pages of this one. */
  readonly #place: () => string;
  readonly #start = randomBytes(16).toString('base64url');
  /** Nonces of tickets that were used, until they would have ended. */
  readonly #used = new Map<string, number>();

  constructor(token: string, place: () => string) {
    this.#token = token;
    this.#place = place;
  }

  /** To `agent view`, which has the token. `endpoint`: a proxy in between has another one. */
  hello(nonce: string, endpoint: string): ProvenHello {
    return { start: this.#start, proof: seal(this.#token, 'proof', this.#start, nonce, endpoint) };
  }

  /** To the page of a session. */
  helloTo(number: string, nonce: string): ProvenHello {
    return { start: this.#start, proof: seal(this.#secretOf(number), 'proof', this.#start, nonce) };
  }

  ticket(): string {
    return ticketFor(this.#token, this.#start, Date.now());
  }

  /** Whether a ticket opens the view: it does so once. */
  takes(ticket: string): boolean {
    const now = Date.now();
    for (const [nonce, until] of this.#used) if (until <= now) this.#used.delete(nonce);
    const opened = openTicket(this.#token, this.#start, ticket, now);
    if (opened === undefined || this.#used.has(opened.nonce)) return false;
    this.#used.set(opened.nonce, opened.until);
    return true;
  }

  /** Whether a request that shows this is one of a session, or of a program that has the token. */
  admits(bearer: string): boolean {
    const [number = ''] = bearer.split('.', 1);
    return (isNonce(number) && isSame(bearer, this.#accessOf(number))) || isSame(digest(bearer), digest(this.#token));
  }

  /** That of a page that loads again, by what it stored; else a new one. */
  session(bearer: string): PageSession {
    const [number = '', access] = bearer.split('.');
    const own = access === undefined ? newNonce() : number;
    return { access: this.#accessOf(own), key: `${own}.${this.#secretOf(own)}` };
  }

  /** For a link or a frame, which send no header: opens this address. */
  pass(address: string): string {
    return seal(this.#token, 'pass', this.#start, address);
  }

  #secretOf(number: string): string {
    return seal(this.#token, 'session', this.#place(), number);
  }

  #accessOf(number: string): string {
    return `${number}.${seal(this.#secretOf(number), 'access', this.#start)}`;
  }
}

const digest = (text: string) => createHash('sha256').update(text).digest('base64url');
