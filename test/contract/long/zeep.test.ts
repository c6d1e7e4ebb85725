/** A client that is not ours against the sandbox: all operations over both versions of SOAP. */
import { createPrivateKey } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Grant } from '../../../src/agent/ports/server.ts';
import type { Operation } from '../../../src/operations.ts';
import { needs } from '../../support/needs.ts';
import { ZeepClient, type ZeepOutcome } from '../python.ts';
import { SandboxService } from '../sandbox-service.ts';
import { LONG_MAX, LONG_MIN, SERVED_HABITS, soapDialect, VERSIONS } from '../service.ts';
import { allBytes, blocksOfText, HOSTILE_NAMES, HOSTILE_TEXTS, IMPOSSIBLE_NAMES } from '../texts.ts';

const JOB = LONG_MAX;
/** No file system that the sandbox runs on has a place further on. */
const BEHIND_ALL = String(2 ** 44);
const LARGE = '/701/large.bin';
const BINARY = '/701/all bytes.bin';
const EMPTY = '/701/empty.bin';
const NAMES = [...HOSTILE_NAMES, ...IMPOSSIBLE_NAMES, LARGE, BINARY, EMPTY];
const LARGE_TEXT = blocksOfText(3 * 1024);

const TASKS = [
  { taskId: LONG_MIN, live: { stdout: LARGE_TEXT } },
  ...HOSTILE_TEXTS.map((stdout, index) => ({ taskId: String(index + 1), live: { stdout, stderr: '' } })),
];

/** The sandbox writes CR as it is; a reader that obeys XML reads CRLF and CR as LF (docs/dev/servers.md 2.1). */
const asXmlReads = (text: string) => text.replace(/\r\n?/g, '\n');

/** zeep tells an empty text and an absent one alike. */
const asZeepTells = (text: string) => (text === '' ? null : asXmlReads(text));

const entry = (taskId: string, fileType: string, offset: string | null) => ({
  submittedTaskInfoId: taskId,
  fileType,
  offset,
});

describe('zeep as a client of the sandbox', needs('zeep'), () => {
  describe.each(VERSIONS)('over SOAP %s', (version) => {
    let service: SandboxService;
    let zeep: ZeepClient;
    let grant: Grant & { readonly kind: 'session' };

    beforeAll(async () => {
      service = await SandboxService.start();
      const contents = new Map([
        ...NAMES.map((name) => [name, Buffer.from(`<${name}>`)] as const),
        [LARGE, allBytes(5 * 1024 * 1024 + 1)],
        [BINARY, allBytes(256)],
        [EMPTY, Buffer.alloc(0)],
      ]);
      await service.serve({ jobId: JOB, tasks: TASKS, files: contents }, soapDialect('1.2'));
      grant = (await service.grant('session')) as typeof grant;
      zeep = new ZeepClient(`${service.url}?wsdl`);
    });
    afterAll(async () => {
      await zeep?.close();
      await service?.close();
    });

    const call = (operation: Operation, fields: Readonly<Record<string, unknown>> = {}): Promise<ZeepOutcome> =>
      zeep.call({ operation, version, fields: { submittedJobInfoId: JOB, ...fields, sessionCode: grant.code } });
    const understood = async (operation: Operation, fields: Readonly<Record<string, unknown>> = {}) =>
      expect((await service.calls()).at(-1)).toEqual({
        operation,
        version,
        request: { submittedJobInfoId: JOB, ...fields },
      });

    test('DownloadPartsOfJobFilesFromCluster', async () => {
      const wanted = HOSTILE_TEXTS.flatMap((_, index) => [
        entry(String(index + 1), 'StandardOutputFile', '0'),
        entry(String(index + 1), 'StandardErrorFile', BEHIND_ALL),
      ]);
      const { result } = await call('DownloadPartsOfJobFilesFromCluster', {
        taskFileOffsets: { TaskFileOffsetExt: wanted },
      });
      await understood('DownloadPartsOfJobFilesFromCluster', { taskFileOffsets: wanted });
      const expected = HOSTILE_TEXTS.flatMap((stdout, index) => [
        { ...wanted[2 * index], content: asZeepTells(stdout), relativePath: '/stdout.txt' },
        { ...wanted[2 * index + 1], content: null, relativePath: '/stderr.txt' },
      ]);
      expect(new Set(result as unknown[])).toEqual(new Set(expected));
    });

    test('ListChangedFilesForJob', async () => {
      service.sandbox.setHabits({ nilEntries: true });
      const { result } = await call('ListChangedFilesForJob');
      service.sandbox.setHabits({ nilEntries: false });
      await understood('ListChangedFilesForJob');
      const names = result as (string | null)[];
      for (const name of NAMES) expect(names).toContain(asZeepTells(name));
      expect(names[0]).toBeNull();
    });

    test('DownloadFileFromCluster', async () => {
      for (const name of [...HOSTILE_NAMES, ...IMPOSSIBLE_NAMES].filter((one) => one !== '')) {
        const { result } = await call('DownloadFileFromCluster', { relativeFilePath: name });
        expect(result).toEqual({ base64: Buffer.from(`<${name}>`).toString('base64') });
        await understood('DownloadFileFromCluster', { relativeFilePath: name });
      }
      const file = async (name: string) => (await call('DownloadFileFromCluster', { relativeFilePath: name })).result;
      expect(await file(BINARY)).toEqual({ base64: allBytes(256).toString('base64') });
      expect(await file(EMPTY)).toBeNull();
      const { base64 } = (await file(LARGE)) as { base64: string };
      expect(base64 === allBytes(5 * 1024 * 1024 + 1).toString('base64')).toBe(true);
    });

    test('GetFileTransferMethod and EndFileTransfer', async () => {
      const { result } = await call('GetFileTransferMethod');
      await understood('GetFileTransferMethod');
      const method = result as { readonly credentials: { readonly privateKey: string; readonly publicKey: string } };
      const { serverHostname, transferUsername: username } = SERVED_HABITS;
      expect(method).toEqual({
        serverHostname,
        sharedBasepath: `/scratch/${JOB}`,
        protocol: 'SftpScp',
        credentials: { username, privateKey: expect.any(String), publicKey: expect.any(String) },
      });
      expect(createPrivateKey(method.credentials.privateKey).type).toBe('private');
      expect(await service.openKeys()).toEqual([method.credentials.publicKey]);

      expect(await call('EndFileTransfer', { usedTransferMethod: method })).toEqual({ result: null });
      await understood('EndFileTransfer');
      expect(await service.openKeys()).toEqual([]);
      const end = await call('EndFileTransfer', { usedTransferMethod: { protocol: null } });
      expect(end.fault?.message).toBe('The direct transfer could not be finished due to a public key mismatch.');
    });

    test('faults', async () => {
      const text = 'Došlo místo & <b>"čas"</b>\n \u{1F600} ';
      service.sandbox.faults.add({ kind: 'fault', text, times: 1 });
      const code = version === '1.1' ? 'soap:Server' : 'soap:Receiver';
      expect(await call('ListChangedFilesForJob')).toEqual({ fault: { code, message: text } });
      const wrong = await zeep.call({
        operation: 'ListChangedFilesForJob',
        version,
        fields: { submittedJobInfoId: JOB, sessionCode: 'x' },
      });
      expect(wrong).toEqual({ fault: { code, message: 'Session code x is not valid' } });
    });
  });
});
