/**
 * What the token proves without being sent: that a server is the view (an answer to a challenge), and that a link was made
 * by its owner (a ticket). Both are bound to one start of the server, and neither can stand for the other.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** A link opens the view for so long. */
export const TICKET_MS = 60_000;
const NONCE = /^[A-Za-z0-9_-]{22,86}$/;

/** What answers at an address: `GET api/hello?nonce=...`. */
export interface Hello {
  /** Names this start of the server. */
  readonly start: string;
  readonly proof: string;
}

export interface Challenge {
  readonly nonce: string;
  /** Where the connection of the challenge ends: whoever passes it on to the view has another one. */
  readonly endpoint: string;
}

export const newNonce = (): string => randomBytes(32).toString('base64url');
export const isNonce = (text: string): boolean => NONCE.test(text);

/** The end of a TCP connection as both of its sides write it. */
export const endpointOf = (address: string | undefined, port: number | undefined): string =>
  `${address?.replace(/^::ffff:/i, '')} ${port}`;

export const proofOf = (token: string, start: string, { nonce, endpoint }: Challenge): string =>
  seal(token, ['proof', start, nonce, endpoint]);

/** A ticket for one entry within the next minute. */
export function ticketFor(token: string, start: string, now: number): string {
  const [until, nonce] = [String(now + TICKET_MS), newNonce()];
  return `${until}.${nonce}.${seal(token, ['ticket', start, until, nonce])}`;
}

/** The nonce of a ticket, and when it ends; undefined if it is none of this start, or over. */
export function openTicket(token: string, start: string, ticket: string, now: number) {
  const [, until = '', nonce = '', seen = ''] =
    /^([0-9]{1,16})\.([A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{43})$/.exec(ticket) ?? [];
  if (!isSame(seen, seal(token, ['ticket', start, until, nonce]))) return undefined;
  const left = Number(until) - now;
  return left > 0 && left <= TICKET_MS ? { nonce, until: Number(until) } : undefined;
}

/** Whether two texts are the same; takes as long wherever they differ. */
export function isSame(seen: string, wanted: string): boolean {
  const [a, b] = [Buffer.from(seen), Buffer.from(wanted)];
  return a.length === b.length && timingSafeEqual(a, b);
}

const seal = (token: string, parts: readonly string[]): string =>
  createHmac('sha256', token)
    .update(['jobtail view', ...parts].join('\n'))
    .digest('base64url');
