/** The contract of sessions. */
import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import type { Remote } from '../../src/agent/ports/server.ts';
import { failureOf } from '../support/errors.ts';
import { type Place, type Serve, signal } from './contract-place.ts';
import type { Dialect, ServedJob } from './service.ts';

const METHOD = { serverHostname: null, sharedBasepath: null, protocol: 'NetworkShare', credentials: null } as const;

/** Holds what each of the calls asks for. */
const SERVED: ServedJob = {
  jobId: '501',
  files: new Map([['/701/x', Buffer.from('x')]]),
  // Whose end needs no key.
  habits: { transferProtocol: 'NetworkShare' },
};

/** Of one that is no GUID, REST says that it is invalid. */
const STALE = { soap: ' stale &<"\'> kód', rest: '11111111-2222-3333-4444-555555555555' } as const;
/** What the service says of it, without it. */
const STALE_IS_LOST = /Session code (?:\*\*\*|"\*\*\*"|'\*\*\*') is not (?:valid|present)|: Unauthorized$/;
type Call = (remote: Remote, jobId: Place['jobId']) => Promise<unknown>;

const CALLS: readonly (readonly [string, Call])[] = [
  [
    'GetFileTransferMethod',
    async (remote, jobId) => expect(await remote.getTransferMethod(jobId, signal)).toMatchObject({ credentials: null }),
  ],
  ['EndFileTransfer', (remote, jobId) => remote.endTransfer(jobId, METHOD, signal)],
  ['DownloadPartsOfJobFilesFromCluster', (remote, jobId) => remote.readParts(jobId, [], signal)],
  ['ListChangedFilesForJob', (remote, jobId) => remote.listChangedFiles(jobId, signal)],
  ['DownloadFileFromCluster', (remote, jobId) => remote.downloadFile(jobId, '/701/x', () => undefined, signal)],
];

export function faultContract(serve: Serve, { protocol, tokens }: Dialect): void {
  const code = STALE[protocol];
  describe.each(CALLS)('of %s', (operation, call) => {
    test('a lost session is renewed, and the call repeated', async () => {
      const { remote, jobId, session, service } = await serve(SERVED, { stale: { codes: [code] } });
      await call(remote, jobId);
      expect(session.lostGrants).toEqual([{ kind: 'session', code }]);
      const [lost, ...others] = service.sandbox.calls.map((one) => one.operation);
      expect([lost, [...new Set(others)]]).toEqual([operation, [operation]]);
      // Over REST, the file may have to be asked for by another path.
      expect(others.length).toBeLessThanOrEqual(protocol === 'soap' ? 1 : 2);
    });

    if (tokens)
      test('a token stands in the place of a session code', async () => {
        const { remote, jobId, service } = await serve(SERVED, { grant: 'bearer' });
        await call(remote, jobId);
        expect(service.sandbox.calls.at(-1)).toMatchObject({ operation, jobId: '501' });
      });

    test('a session that stays lost is reported apart, without a word of it', async () => {
      const { remote, jobId, service } = await serve(SERVED, { stale: { codes: [code], only: true } });
      const error = await failureOf(call(remote, jobId));
      expect(error.code).toBe('session-lost');
      expect(error.message).toMatch(STALE_IS_LOST);
      expect(inspect(error, { depth: Number.POSITIVE_INFINITY, showHidden: true })).not.toContain(
        protocol === 'soap' ? 'stale' : code,
      );
      expect(service.sandbox.calls.length).toBe(2);
    });
  });
}
