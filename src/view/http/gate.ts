/**
 * Checks every request first: its connection, its method, the name of the server, its origin and its session. All of it
 * is synchronous, so a flood of requests without a session costs a response of some bytes each.
 */
import { createHash } from 'node:crypto';
import type http from 'node:http';
import net, { type Socket } from 'node:net';
import type { Refusal } from '../contract/addresses.ts';
import { Refused } from '../refused.ts';
import type { ViewSettings } from '../settings.ts';
import { endpointOf, isNonce, type Sessions } from '../token.ts';

interface GateOptions {
  readonly server: http.Server;
  readonly settings: ViewSettings;
  readonly sessions: Sessions;
  /** Where it listens: the port, or the path of the socket. */
  readonly place: () => number | string;
}

export class Gate {
  readonly #options: GateOptions;
  readonly #connections: Connections;

  constructor(options: GateOptions) {
    this.#options = options;
    this.#connections = new Connections(options.server);
  }

  /** Whether the request has a session. Otherwise this method responds: with an entry, a challenge, or a refusal. */
  lets(request: http.IncomingMessage, response: http.ServerResponse): boolean {
    if (!this.#connections.begin(request, response)) return false;
    try {
      if (this.#isAnswered(request, response)) return false;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      refuse(response, error.status, error.refusal);
      return false;
    }
    this.#connections.admit(request.socket);
    return true;
  }

  #isAnswered(request: http.IncomingMessage, response: http.ServerResponse): boolean {
    const { sessions, settings } = this.#options;
    const [pathname = '', search = ''] = (request.url ?? '').split('?', 2);
    const isPage = pathname === '/';
    requireOwn(request, settings, isPage);
    if (pathname === '/api/hello') {
      this.#hello(request, response, new URLSearchParams(search).get('nonce') ?? '');
      return true;
    }
    const cookies = cookiesIn(request.headers.cookie, this.#cookieName);
    const bearer = /^Bearer ([A-Za-z0-9_-]+)$/.exec(request.headers.authorization ?? '')?.[1];
    const isAdmitted = sessions.admits({ cookies, bearer });
    const ticket = isPage ? new URLSearchParams(search).get('ticket') : null;
    const session = ticket === null ? undefined : sessions.enter(ticket);
    if (session !== undefined || (ticket !== null && isAdmitted)) {
      this.#enter(request, response, session);
      return true;
    }
    if (isAdmitted) return false;
    if (isPage) send(response, 401, TEXT, ticket === null ? NO_SESSION_PAGE : WRONG_TICKET_PAGE);
    else refuse(response, 401, NO_SESSION);
    return true;
  }

  /** Proves that this server has the token: `agent view` prints no link before. @throws Refused (400) */
  #hello({ socket }: http.IncomingMessage, response: http.ServerResponse, nonce: string): void {
    if (!isNonce(nonce)) throw new Refused(400, 'expected a nonce');
    const at = this.#options.place();
    const endpoint = typeof at === 'string' ? at : endpointOf(socket.localAddress, socket.localPort);
    const proof = this.#options.sessions.hello({ nonce, endpoint });
    send(response, 200, { 'content-type': 'application/json' }, JSON.stringify(proof));
  }

  /**
   * The link with a ticket: the cookie of a session is made, and the ticket goes from the address. Not a redirect: a
   * browser that came from elsewhere, as from a message with the link, would not send the new cookie with the request
   * after one.
   */
  #enter({ headers }: http.IncomingMessage, response: http.ServerResponse, session: string | undefined): void {
    const { publicUrl } = this.#options.settings;
    const isSecure = publicUrl?.startsWith('https:') === true || headers['x-forwarded-proto'] === 'https';
    // Without a path, the browser uses the path of the page, which a proxy may have extended.
    const cookie = `${this.#cookieName}=${session}; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`;
    send(response, 200, { ...HTML, ...(session === undefined ? {} : { 'set-cookie': cookie }) }, ENTERED);
  }

  /** A browser sends a cookie to every port of a host: each server has its own name for it. */
  get #cookieName(): string {
    const place = this.#options.place();
    const suffix = typeof place === 'number' ? place : createHash('sha256').update(place).digest('hex').slice(0, 8);
    return `jobtail-view-${suffix}`;
  }
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

const HOST_HINT = 'use the address that agent view prints; behind a proxy, set view.publicUrl';
const NO_SESSION: Refusal = {
  message: 'this browser has no session',
  hint: 'run agent view, and open the link that it prints',
};
const HTML = { 'content-type': 'text/html; charset=utf-8' } as const;
const TEXT = { 'content-type': 'text/plain; charset=utf-8' } as const;
const WHAT_TO_DO = 'Run agent view, and open the link that it prints.\n';
const NO_SESSION_PAGE = `No access. This browser has no session.\n${WHAT_TO_DO}`;
const WRONG_TICKET_PAGE = `No access. This link is not valid any more: a link opens the view once, within a minute, and until the
view starts again.\n${WHAT_TO_DO}`;
const ENTERED = '<!doctype html><meta http-equiv="refresh" content="0; url=./"><p><a href="./">The view</a></p>\n';

/**
 * Whether a request may name the server so: by a number, as `localhost`, by the name that it listens at, or by that of
 * the proxy before it. A number cannot be made to point elsewhere; any other name can (DNS rebinding).
 */
function isOwnHost(host: string | undefined, { listen, publicUrl }: ViewSettings): boolean {
  const name = nameIn(host);
  if (name === undefined) return false;
  if (publicUrl !== null && name === new URL(publicUrl).hostname) return true;
  return (
    net.isIP(name.replace(/^\[(.*)\]$/, '$1')) > 0 ||
    name === 'localhost' ||
    ('host' in listen && name === listen.host.toLowerCase())
  );
}

/** Whether a request comes from a page of this server; programs and typed addresses name no origin. */
function isOwnOrigin(origin: string | undefined, host: string | undefined, { publicUrl }: ViewSettings): boolean {
  if (origin === undefined) return true;
  if (publicUrl !== null && origin === new URL(publicUrl).origin) return true;
  return host !== undefined && (origin === `http://${host}` || origin === `https://${host}`);
}

/** In lower case, without the port. */
function nameIn(host: string | undefined): string | undefined {
  return /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?$/.exec(host?.toLowerCase() ?? '')?.[1];
}

/** What the page may do: load its own files, ask its own server, and show what is previewed in a frame. */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob: data:",
  "font-src 'self'",
  "connect-src 'self'",
  "frame-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** What a preview may do: nothing but to look as it does. */
export const PREVIEW_POLICY =
  "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'; frame-ancestors 'self'";

/** Default headers of every response. */
export const HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': PAGE_POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
  'x-robots-tag': 'noindex',
};

/** The maximum of connections without a session, and as many with one. */
const MAX_CONNECTIONS = 256;

/**
 * However many connections strangers hold, there is room for a browser with a session; and a connection has one request
 * at a time: hundreds can come in one packet, and each would take its memory before the first is answered.
 */
class Connections {
  /** Those that showed no session yet, the oldest first. */
  readonly #strangers = new Set<Socket>();
  /** Those that did, the one longest without a request first. */
  readonly #admitted = new Set<Socket>();
  readonly #busy = new Set<Socket>();

  constructor(server: http.Server) {
    server.on('connection', (socket: Socket) => {
      this.#strangers.add(socket);
      socket.once('close', () => {
        for (const sockets of [this.#strangers, this.#admitted, this.#busy]) sockets.delete(socket);
      });
      const [oldest] = this.#strangers;
      if (this.#strangers.size > MAX_CONNECTIONS) oldest?.destroy();
    });
  }

  /** Whether a request may be looked at. A second one before the answer to the first ends the connection. */
  begin({ socket }: http.IncomingMessage, response: http.ServerResponse): boolean {
    if (socket.destroyed) return false;
    if (this.#busy.has(socket)) {
      socket.destroy();
      return false;
    }
    this.#busy.add(socket);
    const end = () => void this.#busy.delete(socket);
    response.once('finish', end).once('close', end);
    return true;
  }

  /** Its request showed a session. */
  admit(socket: Socket): void {
    this.#strangers.delete(socket);
    this.#admitted.delete(socket);
    this.#admitted.add(socket);
    if (this.#admitted.size <= MAX_CONNECTIONS) return;
    // A stream that is read goes on.
    const idle = [...this.#admitted].find((each) => !this.#busy.has(each));
    (idle ?? socket).destroy();
  }
}
