/** The contract of GetFileTransferMethod and EndFileTransfer. */
import { createPrivateKey } from 'node:crypto';
import { expect, test } from 'vitest';
import type { TransferMethod } from '../../src/agent/ports/server.ts';
import { failureOf } from '../support/errors.ts';
import { type Place, type Serve, signal } from './contract-place.ts';
import { type Dialect, JOB_ENDS } from './service.ts';

const GET = 'GetFileTransferMethod';
const END = 'EndFileTransfer';

const HABITS = {
  serverHostname: ' "login" <1>&\'.example:22',
  sharedRoot: '/scratch/žluťoučký \u{1F600} & <b>',
  transferUsername: 'alice\nb\rc ',
};

/** The port in its old place, and without what is only handed back. */
function asTold({ given: _, port, serverHostname, ...method }: TransferMethod) {
  return { ...method, serverHostname: port === undefined ? serverHostname : `${serverHostname}:${port}` };
}

const openKeysOf = ({ service }: Place) => service.sandbox.openKeys.map(({ publicKey }) => publicKey);

/** The method of the job; there must be one. */
async function methodOf({ remote, jobId }: Place): Promise<TransferMethod> {
  const method = await remote.getTransferMethod(jobId, signal);
  if (method === null) throw new Error('the service has no method');
  return method;
}

export function transferContract(serve: Serve, dialect: Dialect): void {
  const { longIds } = dialect;
  test.each(longIds ? JOB_ENDS : ['501'])('gives the method of job %s, and ends it', async (jobId) => {
    const place = await serve({ jobId, habits: HABITS });
    const method = await methodOf(place);
    place.understood(GET);
    expect(asTold(method)).toEqual({
      serverHostname: HABITS.serverHostname,
      sharedBasepath: `${HABITS.sharedRoot}/${jobId}`,
      protocol: 'SftpScp',
      credentials: {
        username: HABITS.transferUsername,
        privateKey: expect.stringMatching(/^-----BEGIN [\s\S]* KEY-----\n$/),
        publicKey: expect.stringMatching(/^[a-z][\w-]+ [\w+/=]+$/),
      },
    });
    expect(createPrivateKey(method.credentials?.privateKey ?? '').type).toBe('private');
    expect(openKeysOf(place)).toEqual([method.credentials?.publicKey]);

    await expect(place.remote.endTransfer(place.jobId, method, signal)).resolves.toBeUndefined();
    place.understood(END);
    expect(openKeysOf(place)).toEqual([]);
    const error = await failureOf(place.remote.endTransfer(place.jobId, method, signal));
    expect([error.code, error.message]).toEqual(['fault', expect.stringContaining('public key')]);
  });

  test('ends a method of which only the public key is left', async () => {
    const place = await serve({ jobId: '501' });
    const { credentials } = await methodOf(place);
    const rest: TransferMethod = {
      serverHostname: null,
      sharedBasepath: null,
      protocol: null,
      credentials: { username: null, privateKey: null, publicKey: credentials?.publicKey ?? '' },
    };
    await place.remote.endTransfer(place.jobId, rest, signal);
    place.understood(END);
    expect(openKeysOf(place)).toEqual([]);
  });

  test.each([false, true])('a share has no credentials (nil: %s)', async (nullMembers) => {
    const place = await serve({ jobId: '501', habits: { ...HABITS, transferProtocol: 'NetworkShare', nullMembers } });
    const method = await methodOf(place);
    expect(asTold(method)).toEqual({
      serverHostname: HABITS.serverHostname,
      sharedBasepath: `${HABITS.sharedRoot}/501`,
      protocol: 'NetworkShare',
      credentials: null,
    });
    await place.remote.endTransfer(place.jobId, method, signal);
    place.understood(END);
  });

  test.each([false, true])('there may be no method (nil: %s)', async (nullMembers) => {
    const { remote, jobId, understood } = await serve({
      jobId: '501',
      habits: { transferProtocol: 'none', nullMembers },
    });
    expect(await remote.getTransferMethod(jobId, signal)).toBeNull();
    understood(GET);
  });
}
