/**
 * Who may ask, and how much. A request shows its session in a header, which no page of another origin can send, so that
 * neither its Host nor its Origin has to be known. The page itself is no secret.
 */
import type http from 'node:http';
import type { Socket } from 'node:net';
import { endpointOf, isNonce, isSame, type Proofs } from '../proof.ts';
import { Refused } from '../refused.ts';
import type { ViewApp } from './answers.ts';

const NO_SESSION = 'this browser has no session of this start of the view';
const WRONG_TICKET =
  'this link is not valid any more: it opens the view once, within a minute, and until the view starts again';
const HINT = 'run agent view, and open the link that it prints';
/** A link or a frame of the page, which cannot send a header, shows a pass for its address. */
const WITH_PASS = /^https?:\/\/[^/]+\/api\/((?:raw|preview)\?.*)&pass=([A-Za-z0-9_-]{43})$/;

export function addGate(app: ViewApp, proofs: Proofs, connections: Connections, socketPath?: string): void {
  app.use(async ({ req }, next) => {
    const isOfPage = req.method === 'HEAD' && !req.path.startsWith('/api/');
    if (req.method !== 'GET' && !isOfPage) throw new Refused(405, 'only GET');
    // Where a proxy sends the token for everybody, a page of another origin must not start a search.
    if (req.path.startsWith('/api/') && /^(?:cross|same)-site$/.test(req.header('sec-fetch-site') ?? ''))
      throw new Refused(403, 'this is a request of a page of another origin');
    await next();
  });

  app.get('/api/hello', (context) => {
    const { nonce = '', session } = context.req.query();
    if (!isNonce(nonce) || (session !== undefined && !isNonce(session))) throw new Refused(400, 'expected a nonce');
    const { localAddress, localPort } = context.env.incoming.socket;
    const endpoint = socketPath ?? endpointOf(localAddress, localPort);
    return context.json(session === undefined ? proofs.hello(nonce, endpoint) : proofs.helloTo(session, nonce));
  });

  app.use('/api/*', async ({ req, env }, next) => {
    const [, scheme = '', shown = ''] = /^(Bearer|Ticket) ([\w.-]+)$/.exec(req.header('authorization') ?? '') ?? [];
    const [, address = '', pass = ''] = WITH_PASS.exec(req.url) ?? [];
    if (scheme === 'Ticket') {
      if (req.path !== '/api/session' || !proofs.takes(shown)) throw new Refused(401, WRONG_TICKET, { hint: HINT });
    } else if (!proofs.admits(shown) && !(pass !== '' && isSame(pass, proofs.pass(address))))
      throw new Refused(401, NO_SESSION, { hint: HINT });
    connections.admit(env.incoming.socket);
    await next();
  });

  app.get('/api/session', (context) => {
    const [, bearer = ''] = /^Bearer (.*)/.exec(context.req.header('authorization') ?? '') ?? [];
    return context.json(proofs.session(bearer), 200, { 'cache-control': 'no-store' });
  });

  app.get('/api/pass', (context) => {
    const to = context.req.query('to') ?? '';
    if (!/^(?:raw|preview)\?/.test(to)) throw new Refused(400, 'expected an address of raw or preview');
    return context.json({ address: `api/${to}&pass=${proofs.pass(to)}` }, 200, { 'cache-control': 'no-store' });
  });
}

/** The maximum of connections without a session, and as many with one. */
const MAX_CONNECTIONS = 256;

/**
 * However many connections strangers hold, there is room for a browser with a session; and a connection has one request
 * at a time: hundreds can come in one packet, and each would take its memory before the first is answered.
 */
export class Connections {
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
