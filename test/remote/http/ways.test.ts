/** How a host is reached: by TLS, and by proxies. */
import { createServer as createHttpsServer, type ServerOptions } from 'node:https';
import { connect, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { asJobtailError } from '../../../src/errors.ts';
import { HttpClient, type HttpTls, type HttpWay, readBody } from '../../../src/remote/http/http-client.ts';
import { needs } from '../../support/needs.ts';
import { directoryOfFile } from '../../support/temp-directory.ts';
import { type Certificates, makeCertificates } from '../../support/wire-certificates.ts';
import { BAD_PEERS, type BadPeer, startProxy } from '../../support/wire-peers.ts';
import {
  answer,
  closedAtEnd,
  listen,
  startHttpServer,
  startTcpServer,
  type WireServer,
} from '../../support/wire-server.ts';

const proxyThat = async (asked: string[], status: number, headers: Record<string, string> = {}) =>
  closedAtEnd(await startProxy(asked, status, headers));

const LIMITS = { connectMs: 5000, headersMs: 5000, idleMs: 5000, totalMs: 10_000 };

async function fetchFrom(url: string, way: HttpWay = {}, limits = LIMITS): Promise<string> {
  const client = closedAtEnd(new HttpClient({ limits, ...way }));
  const got = await client.request({ method: 'GET', url, headers: {}, signal: new AbortController().signal });
  return `${got.status} ${await readBody(got, 1000)}`;
}

const startTarget = async () =>
  closedAtEnd(await startHttpServer((_, response) => answer(response, 200, 'text/plain', 'hello')));

/** None of them is obeyed. */
beforeEach(() => {
  for (const name of ['http_proxy', 'HTTP_PROXY', 'ALL_PROXY']) vi.stubEnv(name, 'http://127.0.0.1:1');
  vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
  onTestFinished(() => void vi.unstubAllEnvs());
});

describe('a proxy that refuses is named, with what helps:', () => {
  const basic = { 'proxy-authenticate': 'Basic realm="proxy"' };
  const cases = [
    ['https:', 407, basic, 'wants a sign-in to reach', 'service.proxyUserFile'],
    ['http:', 407, basic, 'wants a sign-in to reach', 'service.proxyUserFile'],
    ['https:', 407, { 'proxy-authenticate': 'NTLM' }, 'wants a sign-in to reach', 'the proxy offers NTLM'],
    ['http:', 407, { 'proxy-authenticate': 'Negotiate' }, 'wants a sign-in to reach', 'the proxy offers Negotiate'],
    ['https:', 403, {}, 'refused to connect to', 'port 443 alone'],
    ['https:', 503, {}, 'refused to connect to', 'those who run it'],
  ] as const;
  test.each(cases)('%s %i %j', async (scheme, status, headers, what, help) => {
    const [proxy, target] = [await proxyThat([], status, headers), await startTarget()];
    const url = target.url.replace('http:', scheme);
    await expect(fetchFrom(url, { proxy: `http://127.0.0.1:${proxy.port}` })).rejects.toMatchObject({
      code: 'unreachable',
      message: `the proxy 127.0.0.1:${proxy.port} ${what} 127.0.0.1:${target.port} (status ${status})`,
      hint: expect.stringContaining(help),
    });
    await vi.waitFor(() => expect(proxy.open()).toBe(scheme === 'https:' ? 0 : 1));
  });
});

test('a proxy that refuses the usual port is asked for no other one', async () => {
  const proxy = await proxyThat([], 403);
  const fetched = fetchFrom('https://127.0.0.1/', { proxy: `http://127.0.0.1:${proxy.port}` });
  await expect(fetched).rejects.toMatchObject({ hint: expect.not.stringContaining('443') });
});

test('a proxy that is not there is what cannot be reached', async () => {
  const [proxy, target] = [await proxyThat([], 200), await startTarget()];
  await proxy.close();
  for (const url of [target.url, target.url.replace('http:', 'https:')])
    await expect(fetchFrom(url, { proxy: `http://127.0.0.1:${proxy.port}` })).rejects.toMatchObject({
      code: 'unreachable',
      message: `the proxy 127.0.0.1:${proxy.port} cannot be reached: connection refused (ECONNREFUSED)`,
    });
});

describe('a peer that', () => {
  const peers = Object.entries(BAD_PEERS) as [BadPeer, (socket: Socket) => void][];
  /** `silent` ends by a limit; with TLS, all of it is noticed before the request. */
  const codesOf = (name: BadPeer, scheme: string) => {
    if (scheme === 'https:') return name === 'is silent' ? /^unreachable$/ : /^(?:unreachable|malformed|tls)$/;
    return name === 'is silent' ? /^timeout$/ : /^(?:unreachable|interrupted|malformed)$/;
  };
  /** Short only for what is to end by a limit: a busy machine may need a second for all else. */
  const limitsOf = (name: BadPeer, scheme: string) =>
    name === 'is silent' ? { ...LIMITS, [scheme === 'https:' ? 'connectMs' : 'headersMs']: 300 } : LIMITS;

  for (const scheme of ['http:', 'https:'])
    for (const by of ['a proxy of ', ''])
      test.each(peers)(`%s as ${by}an ${scheme} service gets one connection, and is named`, async (name, peer) => {
        const [server, target] = [closedAtEnd(await startTcpServer(peer)), await startTarget()];
        const url = (by === '' ? server : target).url.replace('http:', scheme);
        const call = fetchFrom(url, by === '' ? {} : { proxy: server.url }, limitsOf(name, scheme));
        await expect(call).rejects.toMatchObject({
          code: expect.stringMatching(codesOf(name, scheme)),
          message: expect.stringContaining(`${by === '' ? '' : 'the proxy '}127.0.0.1:${server.port}`),
        });
        expect(server.connections()).toBe(1);
      });
});

describe('by TLS and by proxies,', needs('openssl'), () => {
  const directory = directoryOfFile();
  let certificates: Certificates;
  beforeAll(() => {
    certificates = makeCertificates(directory);
  });

  async function secured(options: ServerOptions): Promise<WireServer> {
    const server = createHttpsServer(options, (request, response) => {
      const socket = request.socket as import('node:tls').TLSSocket;
      response.end(`hello ${socket.getPeerCertificate().subject?.CN ?? 'nobody'}`);
    });
    // A refused handshake is what the test is about.
    server.on('tlsClientError', () => undefined);
    return closedAtEnd(await listen(server, 'connection', 'https'));
  }

  /** Passes decrypted bytes on to the plain proxy at `port`. */
  async function overTls(port: number) {
    const { key, cert } = certificates.server;
    const server = createTlsServer({ key, cert }, (socket) => {
      const onward = connect(port, '127.0.0.1').on('error', () => socket.destroy());
      socket.on('error', () => onward.destroy());
      socket.pipe(onward).pipe(socket);
    });
    server.on('tlsClientError', () => undefined);
    return closedAtEnd(await listen(server as unknown as Server, 'connection', 'https'));
  }

  const SERVERS = {
    plain: startTarget,
    tls: () => secured(certificates.server),
    strict: () => secured({ ...certificates.server, ca: certificates.ca, requestCert: true }),
    'of another name': () => secured(certificates.otherHost),
    'without TLS': async () => {
      const server = await startTarget();
      return { ...server, url: server.url.replace('http:', 'https:') };
    },
  };
  const MATERIALS: Readonly<Record<string, () => HttpTls>> = {
    nothing: () => ({}),
    ca: () => ({ ca: certificates.ca }),
    client: () => ({ ca: certificates.ca, ...certificates.client }),
    'no key': () => ({ ca: certificates.ca, cert: certificates.client.cert, key: 'no key' }),
  };
  const UNVERIFIED = 'no secure connection to SERVER: unable to verify';
  const MISNAMED = 'ERR_TLS_CERT_ALTNAME_INVALID';

  type Row = [server: keyof typeof SERVERS, by: string, tls: string, outcome: string, says?: string, hint?: string];
  test.each<Row>([
    ['plain', '', 'nothing', '200 hello'],
    ['plain', 'http', 'nothing', '200 hello'],
    ['plain', 'https', 'ca', '200 hello'],
    ['plain', 'https', 'nothing', 'tls', 'no secure connection to the proxy PROXY: unable to verify'],
    ['without TLS', 'https', 'nothing', 'tls', 'no secure connection to the proxy PROXY: unable to verify'],
    ['without TLS', '', 'ca', 'tls', 'it does not speak TLS'],
    ['tls', 'https', 'ca', '200 hello nobody'],
    ['tls', '', 'nothing', 'tls', UNVERIFIED, 'root CA of the server into service.tls.caFile'],
    ['tls', '', 'no key', 'tls'],
    ['of another name', '', 'ca', 'tls', MISNAMED, 'use a host name of the certificate in the address'],
    ['strict', '', 'client', '200 hello client'],
    ['strict', 'http', 'client', '200 hello client'],
    ['strict', 'http', 'nothing', 'tls'],
    // TLS 1.3 tells it after the handshake; the alert may be overtaken by the end of the connection.
    ['strict', '', 'ca', 'tls|interrupted'],
  ])('the server %s, by the proxy "%s", with the TLS of %s: %s', async (kind, by, material, outcome, says, hint) => {
    const asked: string[] = [];
    const server = await SERVERS[kind]();
    const plainProxy = await proxyThat(asked, 200);
    const proxy = by === 'https' ? await overTls(plainProxy.port) : plainProxy;
    const user = by === 'https' ? { proxyUser: 'alice:x' } : {};
    const way = {
      tls: MATERIALS[material]?.() ?? {},
      ...(by && { proxy: `${by}://127.0.0.1:${proxy.port}`, ...user }),
    };
    const fetched = await fetchFrom(server.url, way).catch((error: unknown) => asJobtailError(error));
    if (typeof fetched === 'string') expect(fetched).toBe(outcome);
    else {
      expect(outcome.split('|')).toContain(fetched.code);
      const ports = { SERVER: server.port, PROXY: proxy.port };
      const said = says?.replace(/SERVER|PROXY/, (name) => `127.0.0.1:${ports[name as keyof typeof ports]}`);
      expect(fetched.message).toContain(said ?? '');
      expect(fetched.hint).toContain(hint ?? '');
    }
    const what = server.url.startsWith('http:') ? `GET ${server.url}` : `CONNECT 127.0.0.1:${server.port}`;
    const basic = by === 'https' ? ` Basic ${Buffer.from('alice:x').toString('base64')}` : '';
    expect(asked).toEqual(by === '' || says?.includes('the proxy') ? [] : [`${what}${basic}`]);
  });
});
