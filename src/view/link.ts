/** Where a view listens, its link for a person, and whether the process that listens there is the view. */
import { once } from 'node:events';
import fs from 'node:fs';
import type { IncomingMessage } from 'node:http';
import path from 'node:path';
import { JobtailError } from '../errors.ts';
import type { ProvenHello } from './contract/addresses.ts';
import { endpointOf, isSame, newNonce, seal, ticketFor } from './proof.ts';
import type { ViewSettings } from './settings.ts';

type Listen = ViewSettings['listen'];
type ViewAddress = Pick<ViewSettings, 'listen' | 'publicUrl'>;

const ANSWER_MS = 3_000;
const MAX_HELLO_BYTES = 1_024;
/** At home, of a Unix socket: `ssh -L 9470:/path gateway`. */
const FORWARDED = 'http://127.0.0.1:9470/';

/** As it is written in an address; one that stands for all of this machine, as this machine. */
function hostOf(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}

/** Without a ticket: for a log, and for everybody. */
export function addressOf(listen: Listen, port?: number): string {
  return 'path' in listen ? listen.path : `http://${hostOf(listen.host)}:${port ?? listen.port}/`;
}

/** With a ticket, which opens the view once, within a minute: for a person. */
export function linkWith(ticket: string, { listen, publicUrl }: ViewAddress, port?: number): string {
  const base = publicUrl ?? ('path' in listen ? FORWARDED : addressOf(listen, port));
  return `${base}?ticket=${ticket}`;
}

type FoundView =
  | { readonly kind: 'view'; readonly start: string }
  | { readonly kind: 'nothing' }
  /** Something answered, and has not proven that it has the token. */
  | { readonly kind: 'unproven' };

/** Challenges what listens there. Without a token there is nothing that could be proven. */
export async function findView(listen: Listen, token: string | undefined): Promise<FoundView> {
  const nonce = newNonce();
  const where =
    'path' in listen
      ? { socketPath: listen.path }
      : { host: hostOf(listen.host).replace(/^\[(.*)\]$/, '$1'), port: listen.port };
  const hello = { ...where, path: `/api/hello?nonce=${nonce}` };
  // Loaded only here: in Node.js it loads `fetch`, a quarter of the start of a command.
  const { get } = await import('node:http');
  const signal = AbortSignal.timeout(ANSWER_MS);
  const request = get({ ...hello, agent: false, signal });
  let isConnected = false;
  request.once('socket', (socket) => socket.once('connect', () => (isConnected = true)));
  try {
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const { remoteAddress, remotePort } = response.socket;
    const endpoint = 'path' in listen ? listen.path : endpointOf(remoteAddress, remotePort);
    const { start, proof } = await helloIn(response);
    if (token !== undefined && isSame(proof, seal(token, 'proof', start, nonce, endpoint)))
      return { kind: 'view', start };
  } catch {
    // Refused, or an address that this machine cannot reach; or it is busy.
    if (!isConnected || signal.aborted) return { kind: 'nothing' };
  }
  return { kind: 'unproven' };
}

/** The link to a view that was found. */
export const linkTo = (start: string, token: string, place: ViewAddress): string =>
  linkWith(ticketFor(token, start, Date.now()), place);

/** What is in the way of a view, in words. */
export const unprovenText = (listen: Listen): string =>
  `another process listens at ${addressOf(listen)} and has not proven to be the view`;

/** Undefined if the directory of the socket is there, or there is no socket. */
export function missingDirectory(listen: Listen): JobtailError | undefined {
  if (!('path' in listen) || fs.existsSync(path.dirname(listen.path))) return undefined;
  return new JobtailError('config', `there is no directory ${path.dirname(listen.path)}`, {
    hint: 'create it, or set view.listen to another path; /run/agent is made when the unit starts',
  });
}

async function helloIn(response: IncomingMessage): Promise<ProvenHello> {
  let text = '';
  for await (const piece of response) {
    text += String(piece);
    if (text.length > MAX_HELLO_BYTES) throw new Error('this is no answer of a view');
  }
  const { start, proof } = JSON.parse(text) as Partial<ProvenHello>;
  if (typeof start !== 'string' || typeof proof !== 'string') throw new Error('this is no answer of a view');
  return { start, proof };
}
