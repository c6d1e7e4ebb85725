/**
 * What every request passes before anything is made of it: its method, the name of the server, its origin and its session.
 * All of it is synchronous, so that a flood of strangers costs an answer of some bytes each.
 */
import type http from 'node:http';
import type { Refusal } from '../contract/addresses.ts';
import { endpointOf, isNonce } from '../proof.ts';
import { Refused } from '../refused.ts';
import type { ViewSettings } from '../settings.ts';
import { cookieName, HEADERS, isOwnHost, isOwnOrigin } from './access.ts';
import type { Connections } from './connections.ts';
import type { Sessions } from './sessions.ts';

export interface GateOptions {
  readonly settings: ViewSettings;
  readonly sessions: Sessions;
  readonly connections: Connections;
  /** Where it listens: the port, or the path of the socket. */
  readonly place: () => number | string;
  /** Answers a request of a session. */
  readonly answer: (request: http.IncomingMessage, response: http.ServerResponse) => unknown;
}

type Answering = Pick<GateOptions, 'settings' | 'sessions' | 'place'>;

export function gateOf({ connections, answer, ...options }: GateOptions) {
  return (request: http.IncomingMessage, response: http.ServerResponse): void => {
    if (!connections.begin(request, response)) return;
    try {
      if (isAnswered(request, response, options)) return;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      refuse(response, error.status, error.refusal);
      return;
    }
    connections.admit(request.socket);
    answer(request, response);
  };
}

/** Whether that was all: an entry, a challenge, or a refusal. */
function isAnswered(request: http.IncomingMessage, response: http.ServerResponse, options: Answering): boolean {
  const { sessions, settings, place } = options;
  const [pathname = '', search = ''] = (request.url ?? '').split('?', 2);
  const isPage = pathname === '/';
  requireOwn(request, settings, isPage);
  if (pathname === '/api/hello') {
    hello(request, response, new URLSearchParams(search).get('nonce') ?? '', options);
    return true;
  }
  const cookies = cookiesIn(request.headers.cookie, cookieName(place()));
  const isAdmitted = sessions.admits({ cookies, bearer: bearerIn(request.headers.authorization) });
  const ticket = isPage ? new URLSearchParams(search).get('ticket') : null;
  const session = ticket === null ? undefined : sessions.enter(ticket);
  if (session !== undefined || (ticket !== null && isAdmitted)) {
    enter(request, response, session, options);
    return true;
  }
  if (isAdmitted) return false;
  if (isPage) send(response, 401, HTML, NO_SESSION_PAGE);
  else refuse(response, 401, NO_SESSION);
  return true;
}

/** @throws Refused if it is no request of a page of this server, or of a person or a program without a page */
function requireOwn({ method, headers }: http.IncomingMessage, origins: ViewSettings, isPage: boolean): void {
  const { host, origin } = headers;
  if (method !== 'GET') throw new Refused(405, 'only GET');
  if (!isOwnHost(host, origins)) throw new Refused(403, 'this is not the name of this server', { hint: HOST_HINT });
  // A link may lead to the page from anywhere.
  const site = isPage ? 'none' : (headers['sec-fetch-site'] ?? 'none');
  if (!isOwnOrigin(origin, host, origins) || (site !== 'same-origin' && site !== 'none'))
    throw new Refused(403, 'this is a request of a page of another origin');
}

/** Proves that this server has the token: `agent view` prints no link before. @throws Refused (400) */
function hello(
  { socket }: http.IncomingMessage,
  response: http.ServerResponse,
  nonce: string,
  { sessions, place }: Answering,
): void {
  if (!isNonce(nonce)) throw new Refused(400, 'expected a nonce');
  const at = place();
  const endpoint = typeof at === 'string' ? at : endpointOf(socket.localAddress, socket.localPort);
  send(response, 200, { 'content-type': 'application/json' }, JSON.stringify(sessions.hello({ nonce, endpoint })));
}

/**
 * The link with a ticket: the cookie of a session is made, and the ticket goes from the address. Not a redirect: a browser
 * that came from elsewhere, as from a message with the link, would not send the new cookie with the request after one.
 */
function enter(
  { headers }: http.IncomingMessage,
  response: http.ServerResponse,
  session: string | undefined,
  { settings, place }: Answering,
): void {
  const isSecure = settings.publicUrl?.startsWith('https:') === true || headers['x-forwarded-proto'] === 'https';
  // Without a path it is for where the page is, whatever a proxy puts before it.
  const cookie = `${cookieName(place())}=${session}; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`;
  send(response, 200, { ...HTML, ...(session === undefined ? {} : { 'set-cookie': cookie }) }, ENTERED);
}

function refuse(response: http.ServerResponse, status: number, refusal: Refusal): void {
  send(response, status, { 'content-type': 'application/json' }, JSON.stringify(refusal));
}

/** The connection ends with it: the browser opens another one for its session. */
function send(response: http.ServerResponse, status: number, headers: Record<string, string>, body: string): void {
  const always = {
    'cache-control': 'no-store',
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  };
  response.writeHead(status, { ...HEADERS, ...always, ...headers });
  response.end(body);
}

/** All that are called so: a server at another port of this host may have set one beside ours. */
function cookiesIn(header: string | undefined, name: string): string[] {
  return (header ?? '').split(';').flatMap((each) => {
    const [found, value] = each.trim().split('=', 2);
    return found === name && value !== undefined ? [value] : [];
  });
}

const bearerIn = (header: string | undefined): string | undefined =>
  /^Bearer ([A-Za-z0-9_-]+)$/.exec(header ?? '')?.[1];

const HOST_HINT = 'use the address that agent view prints; behind a proxy, set view.publicUrl';
const NO_SESSION: Refusal = {
  code: 'no-session',
  message: 'this browser has no session',
  hint: 'run agent view, and open the link that it prints',
};
const HTML = { 'content-type': 'text/html; charset=utf-8' } as const;
const document = (head: string, body: string) =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>jobtail</title>${head}</head><body>${body}</body></html>\n`;
const NO_SESSION_PAGE = document(
  '',
  '<h1>No access</h1><p>Run <code>agent view</code>, and open the link that it prints.</p>' +
    '<p>A link opens the view once, within a minute. A session ends when the view starts again.</p>',
);
const ENTERED = document('<meta http-equiv="refresh" content="0; url=./">', '<p><a href="./">The view</a></p>');
