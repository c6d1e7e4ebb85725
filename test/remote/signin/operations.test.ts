/** What goes over the wire for each method (docs/dev/soap.md 4.2). */
import { describe, expect, it } from 'vitest';
import { JobtailError } from '../../../src/errors.ts';
import { Secrets } from '../../../src/redact.ts';
import { SessionCalls, secretOf } from '../../../src/remote/session-calls.ts';
import { secretDirectory } from './files.ts';
import { CODE, NEVER, passwordSettings, signInService } from './server.ts';

const { write } = secretDirectory();
const { service, signIn } = signInService();

describe('the sign-in operations', () => {
  it.each([
    ['openid', 'AuthenticateUserOpenId', '{"Credentials":{"Username":"alice","OpenIdAccessToken":"s3cret"}}'],
    [
      'external-token',
      'AuthenticateExternalToken',
      '{"Credentials":{"Username":"alice","OpenIdAccessToken":"s3cret"}}',
    ],
    [
      'cloud-platform',
      'AuthenticateUserCloudPlatform',
      '{"Credentials":{"Username":"alice","OpenIdAccessToken":"s3cret"},"ProjectId":9223372036854775807}',
    ],
    ['password', 'AuthenticateUserAndPassword', '{"Credentials":{"Username":"alice","Password":"s3cret"}}'],
  ] as const)('%s is a POST of exactly this', async (method, operation, body) => {
    const common = passwordSettings(await write('secret', 's3cret\n'));
    const { session } = signIn({ ...common, method, username: 'alice', projectId: '9223372036854775807' });
    expect(await session.current(NEVER)).toEqual({ kind: 'session', code: CODE });
    expect(service.received).toHaveLength(1);
    expect(service.received[0]).toMatchObject({
      method: 'POST',
      url: `/service/UserAndLimitationManagement/${operation}`,
      body,
    });
    const headers = service.received[0]?.rawHeaders ?? [];
    expect(headers[headers.indexOf('accept') + 1]).toBe('application/json');
    expect(headers[headers.indexOf('accept-language') + 1]).toBe('en');
    expect(headers[headers.indexOf('Content-Type') + 1]).toBe('application/json');
    expect(headers.map((name) => name.toLowerCase())).not.toContain('authorization');
  });

  it('escape what JSON wants escaped, and nothing else', async () => {
    const secret = 'p"\\ä€😀</>&';
    const settings = {
      ...passwordSettings(await write('odd', secret)),
      method: 'password',
      username: 'ä "b"',
    } as const;
    await signIn(settings).session.current(NEVER);
    expect(service.received[0]?.body).toBe('{"Credentials":{"Username":"ä \\"b\\"","Password":"p\\"\\\\ä€😀</>&"}}');
    // Of a password, nothing is taken for a wrapping.
    await signIn(passwordSettings(await write('quoted', '"Bearer x"'))).session.current(NEVER);
    expect(service.received[1]?.body).toContain('"Password":"\\"Bearer x\\""');
  });

  it('go where auth.path and auth.operation say', async () => {
    const common = passwordSettings(await write('secret', 's3cret'));
    const settings = { ...common, path: '/heappe/UserAndLimitationManagement', operation: 'AuthenticateUserPassword' };
    await signIn(settings, { baseUrl: `${service.baseUrl}/prefix/` }).session.current(NEVER);
    expect(service.received[0]?.url).toBe('/prefix/heappe/UserAndLimitationManagement/AuthenticateUserPassword');
  });

  it('are not needed for a ready session code', async () => {
    const common = passwordSettings(await write('code', `${CODE}\n`));
    const { session, events } = signIn({ ...common, method: 'session-code' }, { baseUrl: null });
    expect(await session.current(NEVER)).toEqual({ kind: 'session', code: CODE });
    expect(events).toEqual([{ kind: 'signed-in', grant: 'session', tookMs: 0 }]);
    expect(service.received).toEqual([]);
  });

  it.each(['session-code', 'api-key'] as const)(
    'another secret of %s is used at once, though calls failed with the last one',
    async (method) => {
      const file = await write('old', 'expired');
      const { session } = signIn({ ...passwordSettings(file), method, username: 'alice' });
      const calls = new SessionCalls({ session, secrets: new Secrets(), onCall() {}, async untilAllowed() {} });
      const call = () =>
        calls.call(
          'ListChangedFilesForJob',
          '501',
          async (grant) => {
            if (secretOf(grant).includes('expired')) throw new JobtailError('session-lost', 'status 401');
            return secretOf(grant);
          },
          NEVER,
        );
      await expect(call()).rejects.toMatchObject({ code: 'session-lost', policy: { secretMends: true } });
      await expect(call()).rejects.toMatchObject({ code: 'session-lost' });
      await write('old', 'another');
      expect(await call()).toContain('another');
    },
  );
});
