/** The configuration file, the HTTP client and the sign-in fit together. */
import { describe, expect, it } from 'vitest';
import { loadConfig, loadTls } from '../../../src/config/load.ts';
import { HttpClient } from '../../../src/remote/http/http-client.ts';
import { secretDirectory } from './files.ts';
import { CODE, NEVER, signInService } from './server.ts';

const { write } = secretDirectory();
const { service, signIn } = signInService();

describe('a configuration file', () => {
  it.each([
    ['password', 'passwordFile: secret'],
    ['openid', 'tokenCommand: [printf, s3cret]'],
    ['external-token', 'tokenCredential: secret'],
    ['cloud-platform', 'projectId: 7\n  tokenFile: secret'],
    ['session-code', 'sessionCodeFile: code'],
  ])('leads to a session: %s', async (method, keys) => {
    await write('code', CODE);
    const credentials = (await write('secret', 's3cret')).replace(/\/secret$/, '');
    const config = await loadConfig(
      await write(
        'config.yaml',
        `service: {protocol: soap, fileTransferUrl: ${service.baseUrl}/ws, namespace: urn:x, baseUrl: ${service.baseUrl}/}
auth:
  method: ${method}
  username: alice
  ${keys}
`,
      ),
    );
    const { timeoutMs } = config.service;
    const limits = { connectMs: timeoutMs, headersMs: timeoutMs, idleMs: timeoutMs, totalMs: timeoutMs };
    const http = new HttpClient({ limits, tls: await loadTls(config) });
    const env = { CREDENTIALS_DIRECTORY: credentials };
    const { session } = signIn(config.auth, { baseUrl: config.service.baseUrl, http, env });
    expect(await session.current(NEVER)).toEqual({ kind: 'session', code: CODE });
    if (method !== 'session-code') expect(service.received[0]?.body).toContain('s3cret');
    await http.close();
  });
});
