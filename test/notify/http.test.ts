/** Which proxy and which certificates a webhook uses. */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { expect, it, onTestFinished, vi } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { JobtailError } from '../../src/errors.ts';
import { type NotifyHttp, notifyHttp } from '../../src/notify/http.ts';
import { HttpClient } from '../../src/remote/http/http-client.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';
import { makeCertificates } from '../support/wire-certificates.ts';
import { startProxy } from '../support/wire-peers.ts';
import { answer, closedAtEnd, listen, startHttpServer } from '../support/wire-server.ts';

const signal = new AbortController().signal;
const ELSEWHERE = 'http://hooks.example.invalid/';
const FORBIDDEN = 403;

interface Keys {
  readonly proxy?: string | null;
  readonly caFile?: string | null;
}

/** One for all rules beside a service. */
const clients = new WeakMap<object, NotifyHttp>();

/** The status of a POST by a rule with these keys; its error if there is none. */
async function post(url: string, service: Parameters<typeof notifyHttp>[0]['service'], keys: Keys = {}) {
  const http = clients.get(service) ?? notifyHttp({ service });
  if (!clients.has(service)) onTestFinished(() => http.close());
  clients.set(service, http);
  const request = { method: 'POST', url, headers: {}, body: Buffer.from('{}'), signal, takesAnyBody: true } as const;
  try {
    return (await http.request(request, { proxy: null, caFile: null, ...keys })).status;
  } catch (error) {
    return error;
  }
}

it('the proxy of a rule replaces that of the service, and none leaves it out', async () => {
  const [ofService, ofRule]: [string[], string[]] = [[], []];
  const service = { proxy: closedAtEnd(await startProxy(ofService, FORBIDDEN)).url };
  const proxy = closedAtEnd(await startProxy(ofRule, FORBIDDEN)).url;
  await post(ELSEWHERE, service);
  expect(ofService).toEqual([`POST ${ELSEWHERE}`]);
  await post(ELSEWHERE, service, { proxy });
  await post(ELSEWHERE, { proxy: null }, { proxy });
  expect(ofRule).toEqual([`POST ${ELSEWHERE}`, `POST ${ELSEWHERE}`]);
  await post(ELSEWHERE, service, { proxy: 'none' });
  expect(ofService).toHaveLength(1);
});

it('this machine is reached without the proxy of the service, but by one that the rule names', async () => {
  const asked: string[] = [];
  const proxy = closedAtEnd(await startProxy(asked, 200)).url;
  // It takes a moment.
  const late = (response: Parameters<typeof answer>[0]) => setTimeout(() => answer(response, 204, '', ''), 150);
  const { url } = closedAtEnd(await startHttpServer((_, response) => void late(response)));
  expect(await post(url, { proxy })).toBe(204);
  expect(asked).toEqual([]);
  expect(await post(url, { proxy }, { proxy })).toBe(204);
  expect(asked).toEqual([`POST ${url}`]);
});

it('a receiver with a CA of its own is trusted by the rule that names it, and where the service or Node.js has it', async () => {
  const directory = temporaryDirectory();
  const { server, ca } = makeCertificates(directory);
  const caFile = join(directory, 'own-ca.pem');
  writeFileSync(caFile, ca);
  const https = createServer(server, (request, response) =>
    request.resume().on('end', () => response.writeHead(204).end()),
  );
  const { url } = closedAtEnd(await listen(https, 'secureConnection', 'https'));
  const without = { proxy: null };
  const hint = expect.stringContaining('into notify[].caFile');
  expect(await post(url, without)).toMatchObject({ code: 'tls', hint });
  expect(await post(url, without, { caFile })).toBe(204);
  const missing = join(directory, 'missing.pem');
  // That of the service counts as well, and so does that of Node.js, beside another one of the rule.
  const tlsOf = (file: string) => ({ proxy: null, tls: { caFile: file } as Config['service']['tls'] });
  expect(await post(url, tlsOf(caFile))).toBe(204);
  const otherFile = join(directory, 'other-ca.pem');
  writeFileSync(otherFile, rootCertificates[0] ?? '');
  expect(await post(url, tlsOf(caFile), { caFile: otherFile })).toBe(204);
  expect(await post(url, tlsOf(missing), { caFile: otherFile })).toMatchObject({ code: 'tls' });
  vi.stubEnv('NODE_EXTRA_CA_CERTS', caFile);
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(await post(url, tlsOf(missing), { caFile: otherFile })).toBe(204);
  const strict = closedAtEnd(
    await listen(
      createServer({ ...server, ca, requestCert: true, maxVersion: 'TLSv1.2' }),
      'secureConnection',
      'https',
    ),
  );
  expect(await post(strict.url, { proxy: null }, { caFile })).toMatchObject({
    hint: 'let the receiver accept requests without a client certificate',
  });
  for (const unread of [missing, directory]) {
    vi.stubEnv('NODE_EXTRA_CA_CERTS', unread);
    const keys = { caFile: unread === missing ? missing : caFile };
    const message =
      unread === missing
        ? `notify[].caFile: ${missing}: the file cannot be read (ENOENT)`
        : `NODE_EXTRA_CA_CERTS: ${directory}: the file cannot be read (EISDIR)`;
    expect(await post(url, { proxy: null }, keys)).toMatchObject({ message });
  }
});

it('the user of the proxy is sent to it, and only to it', async () => {
  const asked: string[] = [];
  const proxyUserFile = join(temporaryDirectory(), 'proxy-user');
  writeFileSync(proxyUserFile, 'alice:correct horse\n', { mode: 0o600 });
  const service = { proxy: closedAtEnd(await startProxy(asked, FORBIDDEN)).url, proxyUserFile };
  await post(ELSEWHERE, service);
  await post(ELSEWHERE.replace('http:', 'https:'), service);
  const user = `Basic ${Buffer.from('alice:correct horse').toString('base64')}`;
  expect(asked).toEqual([`POST ${ELSEWHERE} ${user}`, `CONNECT hooks.example.invalid:443 ${user}`]);
  const other: string[] = [];
  await post(ELSEWHERE, service, { proxy: closedAtEnd(await startProxy(other, FORBIDDEN)).url });
  expect(other).toEqual([`POST ${ELSEWHERE}`]);
});

it('a failure keeps its code, its words and the time to wait, and its hint is about the receiver', async () => {
  const failing = vi.spyOn(HttpClient.prototype, 'request');
  onTestFinished(() => failing.mockRestore());
  for (const [code, hint] of [
    ['timeout', 'the receiver is slow or hangs: see its log, and the network to it'],
    ['unreachable', 'see the network'],
  ] as const) {
    failing.mockRejectedValueOnce(new JobtailError(code, 'it fails', { hint: 'see the network', retryAfterMs: 7 }));
    expect(await post(ELSEWHERE, { proxy: null })).toMatchObject({ code, message: 'it fails', hint, retryAfterMs: 7 });
  }
});
