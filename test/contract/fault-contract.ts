/** The contract of faults, of sessions, and of calls at the same time. */
import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import type { Remote } from '../../src/agent/ports/server.ts';
import { failureOf } from '../support/errors.ts';
import { jobId as jobIdOf, taskId as taskIdOf } from '../support/wire-remote.ts';
import { download, type Place, readPart, type Serve, signal } from './contract-place.ts';
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
const NO_JOB =
  /with id 404 does not exist\.|Requested job info with Id.*\b404\b.* does not exist|SubmittedJobInfoId '404' was not found\./;

type Call = (remote: Remote, jobId: Place['jobId']) => Promise<unknown>;

const CALLS: readonly (readonly [string, Call])[] = [
  ['GetFileTransferMethod', (remote, jobId) => remote.getTransferMethod(jobId, signal)],
  ['EndFileTransfer', (remote, jobId) => remote.endTransfer(jobId, METHOD, signal)],
  ['DownloadPartsOfJobFilesFromCluster', (remote, jobId) => remote.readParts(jobId, [], signal)],
  ['ListChangedFilesForJob', (remote, jobId) => remote.listChangedFiles(jobId, signal)],
  ['DownloadFileFromCluster', (remote, jobId) => remote.downloadFile(jobId, '/701/x', () => undefined, signal)],
];

/** Who is to blame for a fault of the server itself, in the words of each version. */
const BLAME: Readonly<Record<string, string>> = { '1.1': 'Server', '1.2': 'Receiver' };

const FAULT = /^the service answered \w+ with a fault: \w[\w-]*:(?<code>\w+): (?<text>.*)$/s;
/** Over REST, nobody is blamed; what stands before the text is its title. */
const PROBLEM = /^the service answered \w+ with status \d+: (?:External (?:Problem|Service Error): )?(?<text>.*)$/s;

export function faultContract(serve: Serve, { protocol, version, tokens }: Dialect): void {
  const code = STALE[protocol];
  describe.each(CALLS)('of %s', (operation, call) => {
    test('a fault is reported with its code and text', async () => {
      const fault = 'Došlo místo & <b>"čas"</b> \u{1F600}: ]]> &amp;';
      const { remote, jobId } = await serve({ jobId: '501', fault });
      const error = await failureOf(call(remote, jobId));
      expect(error.code).toBe('fault');
      const said = protocol === 'soap' ? FAULT : PROBLEM;
      const { code, text } = said.exec(error.message)?.groups ?? {};
      expect([code, text]).toEqual([BLAME[version], fault]);
      expect(error.message).toContain(operation);
    });

    test('a job that does not exist is a fault', async () => {
      const { remote } = await serve({ jobId: '501' });
      const error = await failureOf(call(remote, jobIdOf('404')));
      expect([error.code, error.message]).toEqual(['fault', expect.stringMatching(NO_JOB)]);
    });

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

  test('calls at the same time do not mix up', async () => {
    const numbers = Array.from({ length: 8 }, (_, index) => String(index + 1));
    const textOf = (number: string) => `${number} `.repeat(20_000);
    const place = await serve({
      jobId: '501',
      tasks: numbers.map((taskId) => ({ taskId, live: { stdout: textOf(taskId) } })),
      files: new Map(numbers.map((number) => [`/701/${number}`, Buffer.from(textOf(number))])),
    });
    await Promise.all(
      numbers.map(async (number) => {
        const wanted = [{ taskId: taskIdOf(number), file: 'stdout', offset: 0 }] as const;
        const [bytes, { parts }] = await Promise.all([
          download(place, `/701/${number}`),
          place.remote.readParts(place.jobId, wanted, signal),
        ]);
        expect(String(bytes)).toBe(textOf(number));
        expect((await Promise.all(parts.map(readPart))).map(({ text }) => text)).toEqual([textOf(number)]);
      }),
    );
  });
}
