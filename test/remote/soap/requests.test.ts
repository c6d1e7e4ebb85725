/** What is sent over SOAP, to the byte: PHP's SoapServer understood these requests, and libxml2 found them valid by the WSDL. */
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import type { Grant, TransferMethod } from '../../../src/agent/ports/server.ts';
import type { Operation } from '../../../src/operations.ts';
import { HttpClient } from '../../../src/remote/http/http-client.ts';
import { SoapJobService, SoapRemote } from '../../../src/remote/soap/client.ts';
import { type SoapVersion, wsdlOf } from '../../../src/remote/soap/contract.ts';
import { textArgument } from '../../../src/remote/soap/envelope.ts';
import { NAMESPACE, SOAP_1_1, SOAP_1_2 } from '../../support/wire-envelopes.ts';
import { createRemote, GivenSession, JOB, remoteParts, TASK, TEST_LIMITS } from '../../support/wire-remote.ts';
import { closedAtEnd, startTcpServer } from '../../support/wire-server.ts';

const signal = new AbortController().signal;

type Call = (remote: SoapRemote, jobs: SoapJobService) => Promise<unknown>;

/** The header and the body that a call puts on the wire. */
async function sent(soapVersion: SoapVersion, grant: Grant, call: Call): Promise<[head: string, body: string]> {
  let bytes = '';
  const server = closedAtEnd(
    await startTcpServer((socket: Socket) => {
      socket.on('data', (chunk) => {
        bytes += chunk.toString();
        const length = /content-length: ([0-9]+)/.exec(bytes)?.[1];
        const head = bytes.indexOf('\r\n\r\n') + 4;
        if (length !== undefined && head > 3 && Buffer.byteLength(bytes) === head + Number(length)) {
          socket.end('HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n');
        }
      });
    }),
  );
  const session = new GivenSession(grant);
  const http = closedAtEnd(new HttpClient({ limits: TEST_LIMITS }));
  const options = { ...remoteParts([]), namespace: NAMESPACE, url: server.url, soapVersion, http, session };
  const called = call(new SoapRemote(options), new SoapJobService(options));
  await expect(called).rejects.toMatchObject({ code: 'http-status' });
  const [head = '', body = ''] = bytes.split('\r\n\r\n');
  return [head, body];
}
const NOTHING = { serverHostname: null, sharedBasepath: null, protocol: null, credentials: null };
const METHOD: TransferMethod = {
  ...{ serverHostname: 'h', sharedBasepath: '/b & <c>', protocol: 'SftpScp' },
  credentials: { username: 'u', privateKey: null, publicKey: '"\' \r\n\té' },
};
const OFFSETS = [
  { taskId: TASK, file: 'stdout', offset: Number.MAX_SAFE_INTEGER },
  ...(['log', 'progress', 'stderr'] as const).map((file) => ({ taskId: TASK, file, offset: 0 })),
] as const;
const entryOf = (fileType: string, offset: number) =>
  `<TaskFileOffsetExt><submittedTaskInfoId>9001</submittedTaskInfoId><fileType>${fileType}</fileType><offset>${offset}</offset></TaskFileOffsetExt>`;

const REQUESTS: readonly (readonly [operation: Operation, call: Call, fields: string])[] = [
  ['GetFileTransferMethod', (remote) => remote.getTransferMethod(JOB, signal), ''],
  [
    'EndFileTransfer',
    (remote) => remote.endTransfer(JOB, METHOD, signal),
    '<usedTransferMethod><serverHostname>h</serverHostname><sharedBasepath>/b &amp; &lt;c&gt;</sharedBasepath><protocol>SftpScp</protocol><credentials><username>u</username><publicKey>&quot;&apos; &#xD;&#xA;&#x9;é</publicKey></credentials></usedTransferMethod>',
  ],
  [
    'EndFileTransfer',
    (remote) => remote.endTransfer(JOB, NOTHING, signal),
    '<usedTransferMethod><protocol xsi:nil="true"></protocol></usedTransferMethod>',
  ],
  [
    'DownloadPartsOfJobFilesFromCluster',
    (remote) => remote.readParts(JOB, OFFSETS, signal),
    `<taskFileOffsets>${entryOf('StandardOutputFile', Number.MAX_SAFE_INTEGER)}${['LogFile', 'ProgressFile', 'StandardErrorFile'].map((type) => entryOf(type, 0)).join('')}</taskFileOffsets>`,
  ],
  [
    'DownloadPartsOfJobFilesFromCluster',
    (remote) => remote.readParts(JOB, [], signal),
    '<taskFileOffsets></taskFileOffsets>',
  ],
  ['ListChangedFilesForJob', (remote) => remote.listChangedFiles(JOB, signal), ''],
  [
    'DownloadFileFromCluster',
    (remote) => remote.downloadFile(JOB, ' a & <b> "\' ]]> \r\n\té', () => {}, signal),
    '<relativeFilePath> a &amp; &lt;b&gt; &quot;&apos; ]]&gt; &#xD;&#xA;&#x9;é</relativeFilePath>',
  ],
  ['GetCurrentInfoForJob', (_, jobs) => jobs.getJob(JOB, signal), ''],
  ['ListJobsForCurrentUser', (_, jobs) => jobs.listJobs(signal), ''],
];

describe.each(['1.1', '1.2'] as const)('over SOAP %s', (version) => {
  test.each(REQUESTS)('%s is sent so', async (operation, call, fields) => {
    const action = `"${NAMESPACE}${operation}"`;
    const job = operation === 'ListJobsForCurrentUser' ? '' : '<submittedJobInfoId>501</submittedJobInfoId>';
    for (const [grant, session, line] of [
      [{ kind: 'session', code: 'c<&>' }, '<sessionCode>c&lt;&amp;&gt;</sessionCode>', undefined],
      [{ kind: 'bearer', token: 'tok.en' }, '', 'Bearer tok.en'],
    ] as const) {
      const [head, body] = await sent(version, grant, call);
      expect(body).toBe(
        `<?xml version="1.0" encoding="utf-8"?><soap:Envelope xmlns:soap="${version === '1.1' ? SOAP_1_1 : SOAP_1_2}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"  xmlns:tns="${NAMESPACE}"><soap:Body><${operation} xmlns="${NAMESPACE}">${job}${fields}${session}</${operation}></soap:Body></soap:Envelope>`,
      );
      const lineOf = (name: string) => new RegExp(`^${name}: (.*)$`, 'im').exec(head)?.[1];
      const type = version === '1.1' ? 'text/xml; charset=utf-8' : 'application/soap+xml; charset=utf-8; action=';
      expect(lineOf('content-type')).toBe(version === '1.1' ? type : `${type}${action}`);
      expect(lineOf('soapaction')).toBe(version === '1.1' ? action : undefined);
      expect(lineOf('accept')).toBe(type.replace(/;.*/, ''));
      expect(lineOf('authorization')).toBe(line);
      expect(head).not.toContain('c<&>');
    }
  });
});

const DOCUMENT = readFileSync('docs/dev/soap.md', 'utf8');
/** By the name of each type of docs/dev/soap.md: what is said of it. */
const TYPES = [...DOCUMENT.matchAll(/^### (?:2|10)\.\d (\w+Ext)\n([^#]+)/gm)].map(([, ...type]) => type);
const WSDLS = (['FileTransferWs', 'JobManagementWs'] as const).map((service) =>
  wsdlOf({ namespace: 'http://m/?a&b', url: 'https://h/<x>"', service }),
);

/** What stands within the element of a schema that begins so. */
const within = (start: string, end: string) => WSDLS.join('').split(start)[1]?.split(end)[0] ?? '';

/** The elements of a sequence in their order: name, type, and what of them may be missing. */
const elementsOf = (sequence: string) =>
  [...sequence.matchAll(/<s:element (.*?)\/>/g)].map(([, text = '']) => {
    const found = Object.fromEntries([...text.matchAll(/(\w+)="(.*?)"/g)].map(([, key, value]) => [key, value]));
    const words = [found['minOccurs'] === '1' ? 'required' : 'optional', ...(found['nillable'] ? ['may be nil'] : [])];
    const type = String(found['type']).replace(/^\w+:/, '').replace('anyType', 'any');
    return [found['name'], type, [...words, ...(found['maxOccurs'] === '1' ? [] : ['many'])].join(', ')];
  });

test('the WSDL has each type as it is documented', () => {
  expect(TYPES).toHaveLength(8);
  for (const [name = '', text = ''] of TYPES) {
    const rows = [...text.matchAll(/^\| `(\w+)` \| (\w+) \| ([^|]+?) \|/gm)].map(([, ...row]) => row);
    const type = within(`<s:complexType name="${name}">`, '</s:complexType>');
    const base = /<s:extension base="tns:(\w+)"/.exec(type)?.[1];
    const inherited = base === undefined ? '' : within(`<s:complexType name="${base}">`, '</s:complexType>');
    expect(elementsOf(inherited + type), name).toEqual(rows);
    if (rows.length > 0) continue;
    const values = within(`<s:simpleType name="${name}">`, '</s:simpleType>').match(/(?<=enumeration value=")\w+/g);
    expect(values, name).toEqual(text.match(/(?<=`)\w+(?=`)/g));
  }
  const arrays = WSDLS.join('').match(/(?<=complexType name="ArrayOf)\w+/g);
  expect(arrays).toHaveLength(5);
  for (const of of arrays ?? []) {
    const element = of.replace(/^String$/, 'string');
    const found = elementsOf(within(`<s:complexType name="ArrayOf${of}">`, '</s:complexType>'));
    expect(found).toEqual([[element, element, 'optional, may be nil, many']]);
  }
});

test('the WSDL has each documented operation, in both versions of SOAP, at the address', async () => {
  const operations = /^\| (\w+) \| ((?:`\w+`[^|`]*)*`sessionCode`) \| ([^|]+) \|$/gm;
  const documented = [...DOCUMENT.matchAll(operations)].map(([, name = '', takes = '', gives = '']) => {
    const elements = (text: string) =>
      [...text.matchAll(/`(\w+)`(?: \((\w+), optional\)|: (\w+), optional)?/g)].map(([, one, ...types]) =>
        one === 'submittedJobInfoId'
          ? [one, 'long', 'required']
          : [one, types.find((type) => type !== undefined) ?? 'string', 'optional'],
      );
    return [name, `http://m/?a&b${name}`, 'https://h/<x>"', elements(takes), elements(gives)];
  });
  expect(documented).toHaveLength(7);
  const { WSDL } = await import('soap/lib/wsdl/index.js');
  const read = WSDLS.map((text) => new WSDL(text, 'http://unused/', {}));
  await Promise.all(read.map((wsdl) => new Promise((resolve) => wsdl.onReady(resolve))));
  const sequenceOf = (element = '') => elementsOf(within(`<s:element name="${element}">`, '</s:sequence>'));
  for (const version of ['Soap', 'Soap12']) {
    const described = read.flatMap(({ definitions }) =>
      Object.entries(definitions.services).flatMap(([service, { ports }]) => {
        const port = ports[`${service}${version}`];
        return Object.values(port?.binding.methods ?? {}).map(({ $name, soapAction, input, output }) => {
          const elements = [sequenceOf(input.$name), sequenceOf(output.$name)];
          return [$name, soapAction, port?.location, ...elements];
        });
      }),
    );
    expect(described, version).toEqual(documented);
  }
});

describe('nothing is sent', () => {
  test('of half a surrogate pair', () => {
    const refused = { code: 'usage', message: expect.stringContaining('the name contains') };
    expect(() => textArgument('a\uD800b', 'name')).toThrow(expect.objectContaining(refused));
  });

  test.each<[string, Grant]>([
    ['session code', { kind: 'session', code: '<![CDATA[x]]>' }],
    ['session code', { kind: 'session', code: 'a\x01' }],
    ['token', { kind: 'bearer', token: 'a\r\nb: c' }],
    ['token', { kind: 'bearer', token: '' }],
  ])('with a %s that cannot be sent', async (_, grant) => {
    const { remote } = closedAtEnd(createRemote('http://127.0.0.1:9/', { session: new GivenSession(grant) }));
    await expect(remote.listChangedFiles(JOB, signal)).rejects.toMatchObject({ code: 'config' });
  });

  test.each(['http://x/"><a', 'urn: x', 'urn:é', 'urn:&amp;', ''])('into the namespace %j', (namespace) => {
    expect(() => createRemote('http://127.0.0.1:9/', { namespace })).toThrow(
      expect.objectContaining({ code: 'config' }),
    );
  });
});
