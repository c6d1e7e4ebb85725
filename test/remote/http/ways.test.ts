/** How a host is reached: by TLS, and by proxies. */
import { createServer as createHttpsServer, type ServerOptions } from 'node:https';
import { connect, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { beforeAll, describe, expect, test, vi } from 'vitest';
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

test('a configured proxy is used', async () => {
  const asked: string[] = [];
  const [proxy, target] = [await proxyThat(asked, 200), await startTarget()];
  expect(await fetchFrom(target.url, { proxy: `http://127.0.0.1:${proxy.port}` })).toBe('200 hello');
  expect(asked).toEqual([`GET ${target.url}`]);
});

test('a proxy of the environment is not used', async () => {
  const asked: string[] = [];
  const [proxy, target] = [await proxyThat(asked, 200), await startTarget()];
  for (const name of ['http_proxy', 'HTTP_PROXY', 'ALL_PROXY']) process.env[name] = `http://127.0.0.1:${proxy.port}`;
  try {
    expect(await fetchFrom(target.url)).toBe('200 hello');
  } finally {
    for (const name of ['http_proxy', 'HTTP_PROXY', 'ALL_PROXY']) Reflect.deleteProperty(process.env, name);
  }
  expect(asked).toEqual([]);
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

const directory = directoryOfFile();
let certificates: Certificates;

describe('TLS', needs('openssl'), () => {
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
  const greet = (server: WireServer, tls?: HttpTls, proxy?: string) =>
    fetchFrom(server.url, { ...(tls && { tls }), ...(proxy && { proxy }) });

  test('trusts nobody else, whatever the environment says', async () => {
    const server = await secured(certificates.server);
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
    try {
      await expect(greet(server)).rejects.toMatchObject({
        code: 'tls',
        message: expect.stringContaining(`no secure connection to 127.0.0.1:${server.port}: unable to verify`),
        hint: expect.stringContaining('root CA of the server into service.tls.caFile'),
      });
    } finally {
      Reflect.deleteProperty(process.env, 'NODE_TLS_REJECT_UNAUTHORIZED');
    }
  });

  test('checks the host name', async () => {
    const server = await secured(certificates.otherHost);
    await expect(greet(server, { ca: certificates.ca })).rejects.toMatchObject({
      code: 'tls',
      message: expect.stringContaining('ERR_TLS_CERT_ALTNAME_INVALID'),
      hint: 'use a host name of the certificate in the address',
    });
  });

  test('shows a client certificate', async () => {
    const server = await secured({ ...certificates.server, ca: certificates.ca, requestCert: true });
    const { cert, key } = certificates.client;
    expect(await greet(server, { ca: certificates.ca, cert, key })).toBe('200 hello client');
  });

  test('fails without the client certificate that the server wants', async () => {
    const strict = await secured({ ...certificates.server, ca: certificates.ca, requestCert: true });
    const refused = await greet(strict, { ca: certificates.ca }).catch((error: unknown) => error);
    // TLS 1.3 tells it after the handshake; the alert may be overtaken by the end of the connection.
    expect(['tls', 'interrupted']).toContain((refused as { code: string }).code);
  });

  test('through a proxy is checked end to end', async () => {
    const server = await secured({ ...certificates.server, ca: certificates.ca, requestCert: true });
    const asked: string[] = [];
    const proxy = await proxyThat(asked, 200);
    const address = `http://127.0.0.1:${proxy.port}`;
    expect(await greet(server, { ca: certificates.ca, ...certificates.client }, address)).toBe('200 hello client');
    await expect(greet(server, undefined, address)).rejects.toMatchObject({ code: 'tls' });
    expect(asked).toEqual([`CONNECT 127.0.0.1:${server.port}`, `CONNECT 127.0.0.1:${server.port}`]);
  });

  test('fails with a key that is none', async () => {
    const server = await secured(certificates.server);
    const key = Buffer.from('no key');
    const call = greet(server, { ca: certificates.ca, cert: certificates.client.cert, key });
    await expect(call).rejects.toMatchObject({ code: 'tls' });
  });

  test('fails at a server that speaks plain HTTP', async () => {
    const server = closedAtEnd(await startHttpServer((_, response) => response.end()));
    const secure = { ...server, url: server.url.replace('http:', 'https:') };
    const refused = { code: 'tls', message: expect.stringContaining('it does not speak TLS') };
    await expect(greet(secure, { ca: certificates.ca })).rejects.toMatchObject(refused);
  });

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

  test('of a proxy may have the private CA of the service', async () => {
    const asked: string[] = [];
    const proxy = await overTls((await proxyThat(asked, 200)).port);
    const plain = await startTarget();
    const target = await secured(certificates.server);
    const way = { proxy: `https://127.0.0.1:${proxy.port}`, proxyUser: 'alice:x', tls: { ca: certificates.ca } };
    expect(await fetchFrom(plain.url, way)).toBe('200 hello');
    expect(await fetchFrom(target.url, way)).toBe('200 hello nobody');
    const user = `Basic ${Buffer.from('alice:x').toString('base64')}`;
    expect(asked).toEqual([`GET ${plain.url} ${user}`, `CONNECT 127.0.0.1:${target.port} ${user}`]);
  });

  test('of a proxy with a CA that is not trusted is named as what is not trusted', async () => {
    const [proxy, target] = [await overTls((await proxyThat([], 200)).port), await startTarget()];
    for (const url of [target.url, target.url.replace('http:', 'https:')])
      await expect(fetchFrom(url, { proxy: `https://127.0.0.1:${proxy.port}` })).rejects.toMatchObject({
        code: 'tls',
        message: expect.stringContaining(`no secure connection to the proxy 127.0.0.1:${proxy.port}: unable to verify`),
      });
  });
});
