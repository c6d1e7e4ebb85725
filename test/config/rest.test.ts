/** The protocol of the configuration, and what goes by it (docs/dev/rest.md). */
import { describe, expect, it } from 'vitest';
import { configDirectory } from './files.ts';

const { load, refusal } = configDirectory();

const REST = `
service: {protocol: rest, baseUrl: https://m.example.org/}
auth: {username: alice, passwordFile: password}
`;

describe('service.protocol: rest', () => {
  it('needs no more than the address, and has defaults of its own', async () => {
    const { service, auth } = await load(REST);
    expect(service).toEqual({
      ...{ protocol: 'rest', baseUrl: 'https://m.example.org', path: '/heappe', concurrency: 1 },
      ...{ requestsPerMinute: null, timeoutMs: 60_000, proxy: null, proxyUserFile: null },
      compression: 'auto',
      tls: { caFile: null, certFile: null, keyFile: null },
    });
    expect(auth).toMatchObject({
      path: '/heappe/UserAndLimitationManagement',
      operation: 'AuthenticateUserPassword',
    });
  });

  it.each([
    ['openid', 'tokenFile: t', 'AuthenticateUserOpenId'],
    ['external-token', 'tokenFile: t', 'AuthenticateLexisToken'],
    ['cloud-platform', 'tokenFile: t, projectId: 7', 'AuthenticateUserOpenStack'],
    ['session-code', 'sessionCodeFile: t', null],
    ['api-key', 'passwordFile: t', null],
  ])('signs in by the operation of the releases: %s', async (method, keys, operation) => {
    const username = method === 'session-code' ? '' : 'username: alice, ';
    const { auth } = await load(
      `service: {protocol: rest, baseUrl: https://m/}\nauth: {method: ${method}, ${username}${keys}}\n`,
    );
    expect(auth).toMatchObject({ method, operation });
  });

  it('lets the configuration win', async () => {
    const { service, auth } = await load(`
service: {protocol: rest, baseUrl: https://m/, path: mw//v1//x/, concurrency: 3}
auth: {username: alice, passwordFile: password, operation: Login}
`);
    expect(service).toMatchObject({ path: '/mw/v1/x', concurrency: 3 });
    expect(auth).toMatchObject({ path: '/mw/v1/x/UserAndLimitationManagement', operation: 'Login' });
    const own = await load(
      REST.replace('username', 'path: /sign/in, username').replace('m.example.org/', 'm/x, path: ""'),
    );
    expect([own.service, own.auth]).toMatchObject([{ baseUrl: 'https://m/x', path: '' }, { path: '/sign/in' }]);
  });

  it('follows all jobs of the user without another address', async () => {
    expect((await load(`${REST}watchMine: true`)).watchMine).not.toBeNull();
  });

  it.each([
    ['fileTransferUrl: https://m/f', 'service.fileTransferUrl: '],
    ['namespace: n', 'service.namespace: '],
    ['jobsUrl: https://m/j', 'service.jobsUrl: '],
    ['soapVersion: "1.1"', 'service.soapVersion: '],
  ])('refuses what only SOAP has: %s', async (key, said) => {
    const { message } = await refusal(REST.replace('protocol: rest', `protocol: rest, ${key}`));
    expect(message).toContain(said);
    expect(message).toContain('no such key with the protocol rest (only soap has it)');
  });

  it.each([
    ['', 'the address of the middleware'],
    [', baseUrl: 5', 'an address that starts with http'],
    [', baseUrl: https://m.example.org/heappe/', 'an address without /heappe, which service.path adds'],
  ])('refuses as the address: "%s"', async (address, said) => {
    const { message } = await refusal(REST.replace(', baseUrl: https://m.example.org/', address));
    expect(message).toContain(`service.baseUrl: expected ${said}`);
  });
});

describe('service.protocol: soap', () => {
  const SOAP = `
service: {protocol: soap, fileTransferUrl: https://m/f, namespace: n, baseUrl: https://m/}
auth: {username: alice, passwordFile: password}
`;

  it.each([
    ['a path', SOAP.replace('namespace', 'path: /heappe, namespace'), 'service.path: '],
    ['a key in place of a sign-in', SOAP.replace('username', 'method: api-key, username'), 'auth.method: '],
    ['no address', SOAP.replace('fileTransferUrl: https://m/f, ', ''), 'service.fileTransferUrl: '],
    ['no namespace', SOAP.replace('namespace: n, ', ''), 'service.namespace: '],
  ])('refuses %s', async (_, text, said) => {
    expect((await refusal(text)).message).toContain(said);
  });
});
