/**
 * What lets this page in (../proof.ts has the threat). This browser stores only what ends with this start of the view.
 * The key of the session, which opens its later starts, is in the memory of this page alone, and never sent: after a
 * restart, the server proves first that it has the same key.
 */
import type { PageSession, ProvenHello } from '../contract/addresses.ts';

/** A proxy may show several views under one origin. */
const STORED_AS = `jobtail-session ${location.pathname}`;
const stored = () => localStorage.getItem(STORED_AS) ?? '';

const MAX_PROOF_MS = 10_000;

interface Key {
  readonly number: string;
  readonly secret: CryptoKey;
}

/** Undefined before an entry, and where the browser has no cryptography: at an address that is not encrypted. */
let key: Key | undefined;
let wrongTicket: Response | undefined;
let entering = enterBy(new URLSearchParams(location.search).get('ticket'));
let proving: Promise<boolean> | undefined;

/** Whether this page goes on by itself after a restart of the view. */
export const canGoOn = () => key !== undefined;

/** Calls back when another tab was let in: this one is, too. */
export function onEntry(entered: () => void): void {
  addEventListener('storage', (event) => {
    if (event.key !== STORED_AS || event.newValue === null) return;
    entering = take(`Bearer ${event.newValue}`).then(() => entered());
  });
}

/** A response of the server with the session of this page; 401 without one. */
export async function request(to: string, signal: AbortSignal | null): Promise<Response> {
  await entering;
  const shown = stored();
  const response = await send(to, shown, signal);
  if (response.status !== 401) return response;
  if (stored() !== shown || (await isProven())) return await send(to, stored(), signal);
  return wrongTicket?.clone() ?? response;
}

/** Whether what answers has proven to be the view of this session, whose later starts it opens to this page. */
export function isProven(): Promise<boolean> {
  proving ??= prove().finally(() => {
    proving = undefined;
  });
  return proving;
}

async function prove(): Promise<boolean> {
  if (key === undefined) return false;
  const { number, secret } = key;
  const nonce = base64url(crypto.getRandomValues(new Uint8Array(32)));
  const signal = AbortSignal.timeout(MAX_PROOF_MS);
  const response = await fetch(`api/hello?nonce=${nonce}&session=${number}`, { cache: 'no-store', signal });
  const { start, proof } = (await response.json().catch(() => ({}))) as Partial<ProvenHello>;
  if (start === undefined || proof !== (await seal(secret, 'proof', start, nonce))) return false;
  localStorage.setItem(STORED_AS, `${number}.${await seal(secret, 'access', start)}`);
  return true;
}

async function enterBy(ticket: string | null): Promise<void> {
  // It is used up, and no reader of the address needs it.
  if (ticket !== null) history.replaceState(null, '', location.pathname + location.hash);
  if (ticket !== null) wrongTicket = await take(`Ticket ${ticket}`);
  if ((ticket === null || wrongTicket !== undefined) && stored() !== '') await take(`Bearer ${stored()}`);
}

/** A session for what this shows; the refusal, if there is one. A server that does not answer is asked again later. */
async function take(authorization: string): Promise<Response | undefined> {
  const response = await fetch('api/session', { headers: { authorization }, cache: 'no-store' }).catch(() => undefined);
  if (response?.ok !== true) return response;
  const { access, key: given } = (await response.json()) as PageSession;
  wrongTicket = undefined;
  const [number = '', secret = ''] = given.split('.');
  const hmac = { name: 'HMAC', hash: 'SHA-256' };
  const imported = await crypto.subtle?.importKey('raw', new TextEncoder().encode(secret), hmac, false, ['sign']);
  key = imported && { number, secret: imported };
  if (access !== stored()) localStorage.setItem(STORED_AS, access);
  return undefined;
}

const send = (to: string, access: string, signal: AbortSignal | null) =>
  fetch(to, { signal, ...(access !== '' && { headers: { authorization: `Bearer ${access}` } }) });

/** As the server makes it (../proof.ts). */
async function seal(secret: CryptoKey, ...parts: readonly string[]): Promise<string> {
  const text = new TextEncoder().encode(['jobtail view', ...parts].join('\n'));
  return base64url(new Uint8Array(await crypto.subtle.sign('HMAC', secret, text)));
}

const base64url = (bytes: Uint8Array) =>
  btoa(String.fromCharCode(...bytes)).replace(/[+/=]/g, (sign) => ({ '+': '-', '/': '_' })[sign] ?? '');
