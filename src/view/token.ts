/**
 * What opens the view. The token is in a file that only its owner reads; it is made once and stays, so that pages stay
 * open over a restart of the agent (remove the file and restart for another one). It proves two things without being
 * sent: that a server is the view (the response to a challenge), and that its owner made a link (a ticket). Both are
 * bound to one start of the server, and neither can stand for the other. A browser shows a ticket once and gets a
 * session: a random number that is signed with the token, valid until there is another token. A program sends the token
 * itself.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { asJobtailError, JobtailError } from '../errors.ts';
import { openIfThere } from '../system/regular-files.ts';
import type { ViewSettings } from './settings.ts';

const TOKEN_BYTES = 32;
/** Long enough, also if an operator wrote it, and without characters that need an escape in an address. */
const TOKEN = /^[A-Za-z0-9_-]{32,256}$/;

export function tokenFileOf({ tokenFile, stateDirectory }: Pick<ViewSettings, 'tokenFile' | 'stateDirectory'>): string {
  return tokenFile ?? path.join(stateDirectory, 'view-token');
}

/** Undefined if there is no file. @throws JobtailError if it has no token, or others may read it */
export function readToken(file: string): string | undefined {
  let opened: number | undefined;
  try {
    opened = openIfThere(file);
  } catch (error) {
    throw asJobtailError(error);
  }
  if (opened === undefined) return undefined;
  try {
    const stat = fs.fstatSync(opened);
    if ((stat.mode & 0o077) !== 0) throw unusable(`others than its owner may read ${file}`, `chmod 600 ${file}`);
    const text = Buffer.alloc(512);
    const token = text.toString('latin1', 0, fs.readSync(opened, text)).trim();
    if (TOKEN.test(token)) return token;
    throw unusable(`${file} contains no token`, 'remove it, and start again: a new one is created');
  } finally {
    fs.closeSync(opened);
  }
}

/** The token of the file, which is made if it is not there. @throws JobtailError */
export function tokenOf(file: string): string {
  const found = readToken(file);
  if (found !== undefined) return found;
  const token = randomBytes(TOKEN_BYTES).toString('base64url');
  // Under its name only when it is whole.
  const partial = `${file}.${process.pid}.new`;
  try {
    fs.rmSync(partial, { force: true });
    fs.writeFileSync(partial, `${token}\n`, { flag: 'wx', mode: 0o600 });
    fs.renameSync(partial, file);
  } catch (error) {
    throw asJobtailError(error);
  }
  return token;
}

const unusable = (message: string, hint: string) => new JobtailError('config', message, { hint });

/** A link opens the view for so long. */
export const TICKET_MS = 60_000;
const NONCE = /^[A-Za-z0-9_-]{22,86}$/;

/** What answers at an address: `GET api/hello?nonce=...`. */
export interface Hello {
  /** Names this start of the server. */
  readonly start: string;
  readonly proof: string;
}

interface Challenge {
  readonly nonce: string;
  /** The server end of the connection of the challenge: a proxy in between has another one. */
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

const sessionOf = (token: string, number: string) => `${number}.${seal(token, ['session', number])}`;

export class Sessions {
  readonly #token: string;
  readonly #start = randomBytes(16).toString('base64url');
  /** Nonces of tickets that were used, until they would have ended. */
  readonly #used = new Map<string, number>();

  constructor(token: string) {
    this.#token = token;
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
    return sessionOf(this.#token, newNonce());
  }

  /** Whether a request that shows these may be answered. */
  admits({ cookies, bearer }: { readonly cookies: readonly string[]; readonly bearer: string | undefined }): boolean {
    return cookies.some((cookie) => this.#isSession(cookie)) || isSame(digest(bearer ?? ''), digest(this.#token));
  }

  #isSession(cookie: string): boolean {
    const [number = ''] = cookie.split('.', 1);
    return isNonce(number) && isSame(cookie, sessionOf(this.#token, number));
  }
}

const digest = (text: string) => createHash('sha256').update(text).digest('base64url');
