/** Where a view is: its link for a person, and whether what listens there has proven to be it. */
import { once } from 'node:events';
import http from 'node:http';
import { userAt } from './listen.ts';
import { endpointOf, type Hello, isSame, newNonce, proofOf, ticketFor } from './proof.ts';
import type { ViewSettings } from './settings.ts';

type Listen = ViewSettings['listen'];
type Place = Pick<ViewSettings, 'listen' | 'publicUrl'>;

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
export function linkWith(ticket: string, { listen, publicUrl }: Place, port?: number): string {
  const base = publicUrl ?? ('path' in listen ? FORWARDED : addressOf(listen, port));
  return `${base}?ticket=${ticket}`;
}

/** What is found where a view should be. */
export type FoundView =
  | { readonly kind: 'view'; readonly start: string }
  /** Nothing listens there. */
  | { readonly kind: 'nothing' }
  /** Something listens, and has not proven that it has the token. */
  | { readonly kind: 'unproven'; readonly user: number | undefined };

/** Challenges what listens there. Without a token there is nothing that could be proven. */
export async function findView(listen: Listen, token: string | undefined): Promise<FoundView> {
  const nonce = newNonce();
  const path = `/api/hello?nonce=${nonce}`;
  const where =
    'path' in listen
      ? { socketPath: listen.path, path }
      : { host: hostOf(listen.host).replace(/^\[(.*)\]$/, '$1'), port: listen.port, path };
  const request = http.get({ ...where, agent: false, signal: AbortSignal.timeout(ANSWER_MS) });
  try {
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    const { remoteAddress, remotePort } = response.socket;
    const endpoint = 'path' in listen ? listen.path : endpointOf(remoteAddress, remotePort);
    const { start, proof } = await helloIn(response);
    if (token !== undefined && isSame(proof, proofOf(token, start, { nonce, endpoint })))
      return { kind: 'view', start };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ECONNREFUSED' || code === 'ENOENT') return { kind: 'nothing' };
  } finally {
    request.destroy();
  }
  return { kind: 'unproven', user: userAt(listen) };
}

/** The link to a view that was found. */
export const linkTo = (start: string, token: string, place: Place): string =>
  linkWith(ticketFor(token, start, Date.now()), place);

/** What is in the way of a view, in words. */
export function unprovenText(listen: Listen, user: number | undefined): string {
  const whose = user === undefined ? 'another process' : `a process of user ${user}`;
  return `${whose} listens at ${addressOf(listen)} and has not proven to be the view`;
}

async function helloIn(response: http.IncomingMessage): Promise<Hello> {
  let text = '';
  for await (const piece of response) {
    text += String(piece);
    if (text.length > MAX_HELLO_BYTES) throw new Error('this is no answer of a view');
  }
  const { start, proof } = JSON.parse(text) as Partial<Hello>;
  if (typeof start !== 'string' || typeof proof !== 'string') throw new Error('this is no answer of a view');
  return { start, proof };
}
