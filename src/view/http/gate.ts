/**
 * Who may ask. A request shows its session in a header, which no page of another origin can send, so that neither its
 * Host nor its Origin has to be known. The page itself is no secret.
 */
import { bearerAuth } from 'hono/bearer-auth';
import { get, type HttpContext, type HttpEnv, type HttpGate, type HttpRoute } from '../../http/app.ts';
import { Refused } from '../../http/refused.ts';
import type { Connections } from '../../http/server.ts';
import { endpointOf, isNonce, isSame, type Proofs } from '../proof.ts';

const NO_SESSION = 'this browser has no session of this start of the view';
const WRONG_TICKET =
  'this link is not valid any more: it opens the view once, within a minute, and until the view starts again';
/** A link or a frame of the page, which cannot send a header, shows a pass for its address. */
const WITH_PASS = /^https?:\/\/[^/]+\/api\/((?:raw|preview)\?.*)&pass=([A-Za-z0-9_-]{43})$/;

export function gateOf(proofs: Proofs, connections: Connections): HttpGate {
  const hasPass = ({ req }: HttpContext) => {
    const [, address = '', pass = ''] = WITH_PASS.exec(req.url) ?? [];
    return pass !== '' && isSame(pass, proofs.pass(address));
  };
  const session = shows('Bearer', (access) => proofs.admits(access), NO_SESSION);
  const ticket = shows('Ticket', (shown) => proofs.takes(shown), WRONG_TICKET);
  return async (context, next) => {
    const { req, env } = context;
    const isOfPage = !req.path.startsWith('/api/');
    if (req.method !== 'GET' && !(isOfPage && req.method === 'HEAD')) throw new Refused(405, 'only GET');
    if (isOfPage) return await next();
    // Where a proxy sends the token for everybody, a page of another origin must not start a search.
    if (/^(?:cross|same)-site$/.test(req.header('sec-fetch-site') ?? ''))
      throw new Refused(403, 'this is a request of a page of another origin');
    // To prove itself, the server needs no proof of who asks.
    if (req.path === '/api/hello') return await next();
    const admitted = async () => {
      connections.admit(env.incoming.socket);
      await next();
    };
    if (hasPass(context)) return await admitted();
    const isEntry = req.path === '/api/session' && req.header('authorization')?.startsWith('Ticket ') === true;
    return await (isEntry ? ticket : session)(context, admitted);
  };
}

function shows(prefix: string, verifyToken: (shown: string) => boolean, message: string) {
  const refused = {
    message: () => {
      throw new Refused(401, message, { hint: 'run agent view, and open the link that it prints' });
    },
  };
  const answers = { noAuthenticationHeader: refused, invalidAuthenticationHeader: refused, invalidToken: refused };
  return bearerAuth<HttpEnv>({ prefix, verifyToken, ...answers });
}

/** How a page and `agent view` get in. `socketPath`: where the view listens, if it is at no port. */
export const entryRoutes = (proofs: Proofs, socketPath: string | undefined): readonly HttpRoute[] => [
  get('/api/hello', (context) => {
    const { nonce = '', session } = context.req.query();
    if (!isNonce(nonce) || (session !== undefined && !isNonce(session))) throw new Refused(400, 'expected a nonce');
    const { localAddress, localPort } = context.env.incoming.socket;
    const endpoint = socketPath ?? endpointOf(localAddress, localPort);
    return context.json(session === undefined ? proofs.hello(nonce, endpoint) : proofs.helloTo(session, nonce));
  }),
  get('/api/session', (context) => {
    const [, bearer = ''] = /^Bearer (.*)/.exec(context.req.header('authorization') ?? '') ?? [];
    return context.json(proofs.session(bearer));
  }),
  get('/api/pass', (context) => {
    const to = context.req.query('to') ?? '';
    if (!/^(?:raw|preview)\?/.test(to)) throw new Refused(400, 'expected an address of raw or preview');
    return context.json({ address: `api/${to}&pass=${proofs.pass(to)}` });
  }),
];
