import type { Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import type { Grant } from '../../../src/agent/ports.ts';
import type { SoapRemote } from '../../../src/remote/soap/client.ts';
import { NAMESPACE } from '../../support/wire-envelopes.ts';
import { createRemote, GivenSession, JOB, jobId, SESSION_CODE, TASK, taskId } from '../../support/wire-remote.ts';
import { startTcpServer } from '../../support/wire-server.ts';

const signal = new AbortController().signal;
const closing: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const each of closing.splice(0).reverse()) await each.close();
});

/** The bytes that the call puts on the wire; the port is written as PORT. */
async function sent(
  soapVersion: '1.1' | '1.2',
  grant: Grant,
  call: (remote: SoapRemote) => Promise<unknown>,
): Promise<string> {
  let bytes = '';
  const server = await startTcpServer((socket: Socket) => {
    socket.on('data', (chunk) => {
      bytes += chunk.toString();
      const length = /content-length: ([0-9]+)/.exec(bytes)?.[1];
      const head = bytes.indexOf('\r\n\r\n') + 4;
      if (length !== undefined && head > 3 && Buffer.byteLength(bytes) === head + Number(length)) {
        socket.end('HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n');
      }
    });
  });
  closing.push(server);
  const made = createRemote(server.url, { soapVersion, session: new GivenSession(grant) });
  closing.push(made);
  await expect(call(made.remote)).rejects.toMatchObject({ code: 'http-status' });
  return bytes.replaceAll(`127.0.0.1:${server.port}`, 'PORT');
}

const SESSION: Grant = { kind: 'session', code: SESSION_CODE };
const METHOD = {
  serverHostname: 'login.example:22',
  sharedBasepath: '/scratch/a & b',
  protocol: 'SftpScp',
  credentials: { username: 'u', privateKey: null, publicKey: 'ssh-rsa AAAA "x"\r\n' },
} as const;

/** Each operation and its body as recorded. */
const RECORDED: readonly [string, (remote: SoapRemote) => Promise<unknown>, string][] = [
  [
    'GetFileTransferMethod',
    (remote) => remote.getTransferMethod(JOB, signal),
    `<submittedJobInfoId>501</submittedJobInfoId>`,
  ],
  [
    'EndFileTransfer',
    (remote) => remote.endTransfer(JOB, METHOD, signal),
    '<submittedJobInfoId>501</submittedJobInfoId><usedTransferMethod><serverHostname>login.example:22</serverHostname><sharedBasepath>/scratch/a &amp; b</sharedBasepath><protocol>SftpScp</protocol><credentials><username>u</username><publicKey>ssh-rsa AAAA &quot;x&quot;&#xD;&#xA;</publicKey></credentials></usedTransferMethod>',
  ],
  [
    'DownloadPartsOfJobFilesFromCluster',
    (remote) =>
      remote.readParts(
        jobId('9223372036854775807'),
        [
          { taskId: TASK, file: 'stdout', offset: 0 },
          { taskId: taskId('-9223372036854775808'), file: 'stderr', offset: Number.MAX_SAFE_INTEGER },
          { taskId: TASK, file: 'log', offset: 1e15 },
          { taskId: TASK, file: 'progress', offset: 7 },
        ],
        signal,
      ),
    '<submittedJobInfoId>9223372036854775807</submittedJobInfoId><taskFileOffsets><TaskFileOffsetExt><submittedTaskInfoId>9001</submittedTaskInfoId><fileType>StandardOutputFile</fileType><offset>0</offset></TaskFileOffsetExt><TaskFileOffsetExt><submittedTaskInfoId>-9223372036854775808</submittedTaskInfoId><fileType>StandardErrorFile</fileType><offset>9007199254740991</offset></TaskFileOffsetExt><TaskFileOffsetExt><submittedTaskInfoId>9001</submittedTaskInfoId><fileType>LogFile</fileType><offset>1000000000000000</offset></TaskFileOffsetExt><TaskFileOffsetExt><submittedTaskInfoId>9001</submittedTaskInfoId><fileType>ProgressFile</fileType><offset>7</offset></TaskFileOffsetExt></taskFileOffsets>',
  ],
  [
    'ListChangedFilesForJob',
    (remote) => remote.listChangedFiles(JOB, signal),
    '<submittedJobInfoId>501</submittedJobInfoId>',
  ],
  [
    'DownloadFileFromCluster',
    (remote) => remote.downloadFile(JOB, ' /9001/výsledek <1>&"\'\t\r\n😀.txt', () => undefined, signal),
    '<submittedJobInfoId>501</submittedJobInfoId><relativeFilePath> /9001/výsledek &lt;1&gt;&amp;&quot;&apos;&#x9;&#xD;&#xA;😀.txt</relativeFilePath>',
  ],
];

const ENVELOPES = {
  '1.1': 'http://schemas.xmlsoap.org/soap/envelope/',
  '1.2': 'http://www.w3.org/2003/05/soap-envelope',
} as const;

function recorded(version: '1.1' | '1.2', operation: string, fields: string, authorization = ''): string {
  const body = `<?xml version="1.0" encoding="utf-8"?><soap:Envelope xmlns:soap="${ENVELOPES[version]}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"  xmlns:tns="${NAMESPACE}"><soap:Body><${operation} xmlns="${NAMESPACE}">${fields}</${operation}></soap:Body></soap:Envelope>`;
  const own =
    version === '1.1'
      ? ['Content-Type: text/xml; charset=utf-8', `SOAPAction: "${NAMESPACE}${operation}"`, 'accept: text/xml']
      : [
          `Content-Type: application/soap+xml; charset=utf-8; action="${NAMESPACE}${operation}"`,
          'accept: application/soap+xml',
        ];
  return [
    'POST /FileTransferWs HTTP/1.1',
    'host: PORT',
    'connection: keep-alive',
    'accept-encoding: identity',
    ...own,
    'user-agent: jobtail',
    ...(authorization === '' ? [] : [`authorization: ${authorization}`]),
    `content-length: ${Buffer.byteLength(body)}`,
    '',
    body,
  ].join('\r\n');
}

describe.each(['1.1', '1.2'] as const)('over SOAP %s', (version) => {
  test.each(RECORDED)('%s is sent as recorded', async (operation, call, fields) => {
    const withSession = `${fields}<sessionCode>${SESSION_CODE}</sessionCode>`;
    expect(await sent(version, SESSION, call)).toBe(recorded(version, operation, withSession));
  });

  test.each(RECORDED)('%s is sent as recorded with a token', async (operation, call, fields) => {
    const bytes = await sent(version, { kind: 'bearer', token: 'abc.def' }, call);
    expect(bytes).toBe(recorded(version, operation, fields, 'Bearer abc.def'));
  });
});

test('what the method does not have is left out, and nil where the contract wants it', async () => {
  const nothing = { serverHostname: null, sharedBasepath: null, protocol: null, credentials: null };
  const bytes = await sent('1.1', SESSION, (remote) => remote.endTransfer(JOB, nothing, signal));
  expect(bytes).toContain('<usedTransferMethod><protocol xsi:nil="true"></protocol></usedTransferMethod><sessionCode>');
});

test('two remotes of different versions do not disturb each other', async () => {
  const call = (remote: SoapRemote) => remote.listChangedFiles(JOB, signal);
  const both = await Promise.all([sent('1.1', SESSION, call), sent('1.2', SESSION, call)]);
  expect(both.map((bytes) => bytes.includes('SOAPAction'))).toEqual([true, false]);
});

describe('nothing is sent', () => {
  test.each([
    ['a CDATA look-alike', '<![CDATA[</relativeFilePath><sessionCode>x</sessionCode>]]>'],
    ['a control character', 'a\x1bb'],
    ['a null character', 'a\0b'],
    ['half a surrogate pair', 'a\uD800b'],
    ['a noncharacter', 'a\uFFFFb'],
  ])('for a file name with %s', async (_, path) => {
    const { remote, events, close } = createRemote('http://127.0.0.1:9/');
    closing.push({ close });
    await expect(remote.downloadFile(JOB, path, () => undefined, signal)).rejects.toMatchObject({ code: 'usage' });
    expect(events).toEqual([]);
  });

  test.each<[string, Grant]>([
    ['session code', { kind: 'session', code: '<![CDATA[x]]>' }],
    ['session code', { kind: 'session', code: 'a\x01' }],
    ['token', { kind: 'bearer', token: 'a\r\nb: c' }],
    ['token', { kind: 'bearer', token: '' }],
  ])('with a %s that cannot be sent', async (_, grant) => {
    const { remote, close } = createRemote('http://127.0.0.1:9/', { session: new GivenSession(grant) });
    closing.push({ close });
    await expect(remote.listChangedFiles(JOB, signal)).rejects.toMatchObject({ code: 'config' });
  });

  test('for an offset that is no whole number', async () => {
    const { remote, close } = createRemote('http://127.0.0.1:9/');
    closing.push({ close });
    const wanted = [{ taskId: TASK, file: 'stdout', offset: 1.5 }] as const;
    await expect(remote.readParts(JOB, wanted, signal)).rejects.toMatchObject({ code: 'usage' });
  });

  test.each(['http://x/"><a', 'urn: x', 'urn:é', 'urn:&amp;', ''])('into the namespace %j', (namespace) => {
    expect(() => createRemote('http://127.0.0.1:9/', { namespace })).toThrow(
      expect.objectContaining({ code: 'config' }),
    );
  });
});
