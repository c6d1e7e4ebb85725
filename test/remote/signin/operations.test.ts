/** Another secret, after calls failed with the last one. */
import { expect, it } from 'vitest';
import { JobtailError } from '../../../src/errors.ts';
import { Secrets } from '../../../src/redact.ts';
import { SessionCalls, secretOf } from '../../../src/remote/session-calls.ts';
import { secretDirectory } from './files.ts';
import { NEVER, passwordSettings, signInService } from './server.ts';

const { write } = secretDirectory();
const { signIn } = signInService();

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
    await expect(call()).rejects.toMatchObject({ code: 'session-lost' });
    await expect(call()).rejects.toMatchObject({ code: 'session-lost' });
    await write('old', 'another');
    expect(await call()).toContain('another');
  },
);
