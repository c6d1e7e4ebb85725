import { createServer, type ServerOptions } from 'node:https';
import { beforeAll, describe, expect, test } from 'vitest';
import { HttpClient, type HttpTls, readBody } from '../../../src/remote/http/http-client.ts';
import { needs } from '../../support/needs.ts';
import { directoryOfFile } from '../../support/temp-directory.ts';
import { type Certificates, makeCertificates } from '../../support/wire-certificates.ts';
import { startProxy } from '../../support/wire-peers.ts';
import { closedAtEnd, listen, startHttpServer, type WireServer } from '../../support/wire-server.ts';

let certificates: Certificates;

async function serve(options: ServerOptions): Promise<WireServer> {
  const server = createServer(options, (request, response) => {
    const socket = request.socket as import('node:tls').TLSSocket;
    response.end(`hello ${socket.getPeerCertificate().subject?.CN ?? 'nobody'}`);
  });
  // A refused handshake is what the test is about.
  server.on('tlsClientError', () => undefined);
  return closedAtEnd(await listen(server, 'connection', 'https'));
}

async function fetchFrom(server: WireServer, tls?: HttpTls, proxy?: string): Promise<string> {
  const limits = { connectMs: 10_000, headersMs: 10_000, idleMs: 10_000, totalMs: 20_000 };
  const client = closedAtEnd(new HttpClient({ limits, ...(tls && { tls }), ...(proxy && { proxy }) }));
  const { signal } = new AbortController();
  const answer = await client.request({ method: 'GET', url: server.url, headers: {}, signal });
  return (await readBody(answer, 1000)).toString();
}

describe('TLS', needs('openssl'), () => {
  const directory = directoryOfFile();
  beforeAll(() => {
    certificates = makeCertificates(directory);
  });

  test('trusts nobody else, whatever the environment says', async () => {
    const server = await serve(certificates.server);
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
    try {
      await expect(fetchFrom(server)).rejects.toMatchObject({
        code: 'tls',
        message: expect.stringContaining(`no secure connection to 127.0.0.1:${server.port}: unable to verify`),
        hint: expect.stringContaining('root CA of the server into service.tls.caFile'),
      });
    } finally {
      Reflect.deleteProperty(process.env, 'NODE_TLS_REJECT_UNAUTHORIZED');
    }
  });

  test('checks the host name', async () => {
    const server = await serve(certificates.otherHost);
    await expect(fetchFrom(server, { ca: certificates.ca })).rejects.toMatchObject({
      code: 'tls',
      message: expect.stringContaining('ERR_TLS_CERT_ALTNAME_INVALID'),
      hint: 'use a host name of the certificate in the address',
    });
  });

  test('shows a client certificate', async () => {
    const server = await serve({ ...certificates.server, ca: certificates.ca, requestCert: true });
    const { cert, key } = certificates.client;
    expect(await fetchFrom(server, { ca: certificates.ca, cert, key })).toBe('hello client');
  });

  test('fails without the client certificate that the server wants', async () => {
    const strict = await serve({ ...certificates.server, ca: certificates.ca, requestCert: true });
    const refused = await fetchFrom(strict, { ca: certificates.ca }).catch((error: unknown) => error);
    // TLS 1.3 tells it after the handshake; the alert may be overtaken by the end of the connection.
    expect(['tls', 'interrupted']).toContain((refused as { code: string }).code);
  });

  test('through a proxy is checked end to end', async () => {
    const server = await serve({ ...certificates.server, ca: certificates.ca, requestCert: true });
    const asked: string[] = [];
    const proxy = closedAtEnd(await startProxy(asked, 200));
    const address = `http://127.0.0.1:${proxy.port}`;
    expect(await fetchFrom(server, { ca: certificates.ca, ...certificates.client }, address)).toBe('hello client');
    await expect(fetchFrom(server, undefined, address)).rejects.toMatchObject({ code: 'tls' });
    expect(asked).toEqual([`CONNECT 127.0.0.1:${server.port}`, `CONNECT 127.0.0.1:${server.port}`]);
  });

  test('fails with a key that is none', async () => {
    const server = await serve(certificates.server);
    const key = Buffer.from('no key');
    const call = fetchFrom(server, { ca: certificates.ca, cert: certificates.client.cert, key });
    await expect(call).rejects.toMatchObject({ code: 'tls' });
  });

  test('fails at a server that speaks plain HTTP', async () => {
    const server = closedAtEnd(await startHttpServer((_, response) => response.end()));
    const secure = { ...server, url: server.url.replace('http:', 'https:') };
    const refused = { code: 'tls', message: expect.stringContaining('it does not speak TLS') };
    await expect(fetchFrom(secure, { ca: certificates.ca })).rejects.toMatchObject(refused);
  });
});
