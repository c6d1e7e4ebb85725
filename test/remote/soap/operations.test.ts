import { readdirSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import type { Grant, PartRequest } from '../../../src/agent/ports/server.ts';
import { JobtailError } from '../../../src/errors.ts';
import type { SoapRemoteOptions } from '../../../src/remote/soap/client.ts';
import { failureOf } from '../../support/errors.ts';
import { openFilesIn, temporaryDirectory } from '../../support/temp-directory.ts';
import {
  entry,
  fault11,
  fault12,
  fileResponse,
  listResponse,
  partsResponse,
  response,
} from '../../support/wire-envelopes.ts';
import {
  createRemote,
  GivenSession,
  JOB,
  SESSION_CODE,
  spillTo,
  TASK,
  type TestRemote,
  taskId,
} from '../../support/wire-remote.ts';
import { bodyOf, closedAtEnd, startHttpServer } from '../../support/wire-server.ts';

const signal = new AbortController().signal;

type Answer = string | { status: number; type?: string; headers?: Record<string, string>; body?: string };

interface Asked {
  readonly body: string;
  readonly authorization: string | undefined;
}

type Served = TestRemote & { readonly asked: Asked[] };

/** A remote whose service gives the answers one after the other, the last one again and again. */
async function serve(
  answers: readonly Answer[],
  options: Partial<SoapRemoteOptions> & { session?: GivenSession } = {},
): Promise<Served> {
  const asked: Asked[] = [];
  const left = [...answers];
  const server = closedAtEnd(
    await startHttpServer(async (request, serverResponse) => {
      asked.push({ body: await bodyOf(request), authorization: request.headers.authorization });
      write(serverResponse, (left.length > 1 ? left.shift() : left[0]) ?? '', options.soapVersion);
    }),
  );
  return { ...closedAtEnd(createRemote(server.url, options)), asked };
}

function write(serverResponse: ServerResponse, answer: Answer, version = '1.1'): void {
  const xml = version === '1.2' ? 'application/soap+xml; charset=utf-8' : 'text/xml; charset=utf-8';
  const isFault = typeof answer === 'string' && answer.includes(':Fault>');
  const {
    status,
    type = xml,
    headers = {},
    body = '',
  } = typeof answer === 'string' ? { status: isFault ? 500 : 200, body: answer } : answer;
  serverResponse.writeHead(status, { 'content-type': type, ...headers }).end(body);
}

const want = (offset: number, file: PartRequest['file'] = 'stdout', task = TASK): PartRequest => ({
  taskId: task,
  file,
  offset,
});

describe('DownloadPartsOfJobFilesFromCluster', () => {
  test.each([
    ['with another offset', entry('x', { offset: '4' })],
    ['of a task that was not asked for', entry('x', { task: '9' })],
    ['of a file that was not asked for', entry('x', { type: 'LogFile' })],
    ['of a file that does not exist', entry('x', { type: 'Stdout' })],
    ['without a task', entry('x').replace(/<submittedTaskInfoId>.*<\/submittedTaskInfoId>/, '')],
    ['with a nil task', entry('x').replace(/<submittedTaskInfoId>.*Id>/, '<submittedTaskInfoId xsi:nil="true"/>')],
    ['without a file', entry('x').replace(/<fileType>.*<\/fileType>/, '')],
    ['with a nil file', entry('x').replace(/<fileType>.*<\/fileType>/, '<fileType xsi:nil="true"/>')],
    ['without anything', '<JobFileContentExt><content>x</content></JobFileContentExt>'],
  ])('refuses and counts an entry %s, and the second one of a file', async (_, wrong) => {
    // An offset may have white space and a sign.
    const good = entry('good', { offset: ' +03\n' });
    const { remote } = await serve([partsResponse(wrong, good, entry('second', { offset: '3' }))]);
    const { parts, refused } = await remote.readParts(JOB, [want(3)], signal);
    expect([parts.map(({ offset }) => offset), refused]).toEqual([[3], 2]);
    expect(String(await parts[0]?.content.read(0, 9))).toBe('good');
  });

  test.each([
    ['two contents', entry('x').replace('</content>', '</content><content>y</content>')],
    ['an offset that is no number', entry('x', { offset: 'abc' })],
    ['an offset beyond 64 bits', entry('x', { offset: '9223372036854775808' })],
    ['a task that is a fraction', entry('x', { task: '1.5' })],
    ['a path with an element in it', entry('x').replace('/out', '<a>b</a>')],
    ['text between its entries', 'x'],
  ])('with %s is malformed', async (_, entries) => {
    const { remote } = await serve([partsResponse(entries)]);
    expect((await failureOf(remote.readParts(JOB, [want(0)], signal))).code).toBe('malformed');
  });

  test('holds long texts in a file without a name, and nothing stays of it', async () => {
    const spillDirectory = temporaryDirectory();
    const texts = ['a'.repeat(300_000), 'é'.repeat(100_000), 'c'].map((text) => `${text}\n`);
    const { remote } = await serve(
      [
        partsResponse(
          ...texts.map((text, index) => entry(text, { task: String(index) })),
          entry('not asked for'.repeat(10_000), { task: '77' }),
        ),
      ],
      { spill: spillTo(spillDirectory, 10_000) },
    );
    const wanted = texts.map((_, index) => want(0, 'stdout', taskId(String(index))));
    const { parts, refused } = await remote.readParts(JOB, wanted, signal);
    expect(refused).toBe(1);
    expect(openFilesIn(spillDirectory)).toBe(1);
    expect(readdirSync(spillDirectory)).toEqual([]);
    for (const [index, part] of parts.entries()) {
      const expected = Buffer.from(texts[index] ?? '');
      expect((await part.content.read(0, part.content.length)).equals(expected)).toBe(true);
      expect(await part.content.read(expected.length - 2, expected.length + 9)).toEqual(expected.subarray(-2));
      await part.content.release();
    }
    expect(openFilesIn(spillDirectory)).toBe(0);
  });
});

test('texts of an answer that turns out to be broken are given back', async () => {
  const spillDirectory = temporaryDirectory();
  const broken = partsResponse(entry('a'.repeat(300_000)), entry('b'.repeat(300_000))).slice(0, -1);
  const { remote } = await serve([broken], { spill: spillTo(spillDirectory, 4000) });
  expect((await failureOf(remote.readParts(JOB, [want(0)], signal))).code).toBe('malformed');
  expect(openFilesIn(spillDirectory)).toBe(0);
});

test('ListChangedFilesForJob takes a hundred thousand names, but no endless list', async () => {
  const names = Array.from({ length: 100_000 }, (_, index) => `<string>/501/${index}</string>`);
  const { remote } = await serve([listResponse(...names)], { maxSmallResponseBytes: 10_000_000 });
  expect((await remote.listChangedFiles(JOB, signal)).length).toBe(100_000);
  const bounded = await serve([listResponse(...names)], { maxSmallResponseBytes: 1_000_000 });
  expect((await failureOf(bounded.remote.listChangedFiles(JOB, signal))).code).toBe('answer-too-large');
});

describe('DownloadFileFromCluster', () => {
  const download = (remote: TestRemote['remote'], chunks: Buffer[] = []) =>
    remote.downloadFile(JOB, '/a', async (bytes) => void chunks.push(Buffer.from(bytes)), signal);

  test('two results are one too many', async () => {
    const result = '<DownloadFileFromClusterResult>AAAA</DownloadFileFromClusterResult>';
    const { remote } = await serve([response('DownloadFileFromCluster', result.repeat(2))]);
    expect((await failureOf(download(remote))).code).toBe('malformed');
  });

  test('that is broken off, being the wrong one, is no failure where calls are counted', async () => {
    const { remote, events } = await serve([fileResponse('AAAA')]);
    const another = new JobtailError('aborted', 'the listed file is another one');
    expect(await failureOf(remote.downloadFile(JOB, '/a', () => Promise.reject(another), signal))).toBe(another);
    expect(events.map(({ outcome }) => outcome)).toEqual(['aborted']);
  });

  test('a sink that hangs does not outlive the signal', async () => {
    const { remote } = await serve([fileResponse('AAAA')]);
    const stop = new AbortController();
    const hang = () => {
      setImmediate(() => stop.abort());
      return new Promise<void>(() => undefined);
    };
    expect((await failureOf(remote.downloadFile(JOB, '/a', hang, stop.signal))).code).toBe('aborted');
  });
});

describe('GetFileTransferMethod and EndFileTransfer', () => {
  test('a method may have a protocol alone, or be none', async () => {
    const fields = '<serverHostname xsi:nil="true"/><protocol>SftpScp</protocol>';
    const result = `<GetFileTransferMethodResult>${fields}</GetFileTransferMethodResult>`;
    const { remote } = await serve([response('GetFileTransferMethod', result)]);
    const nothing = { serverHostname: null, sharedBasepath: null, credentials: null };
    expect(await remote.getTransferMethod(JOB, signal)).toEqual({ ...nothing, protocol: 'SftpScp' });
    const without = await serve([response('GetFileTransferMethod', '')]);
    expect(await without.remote.getTransferMethod(JOB, signal)).toBeNull();
  });

  test.each([
    '<protocol>Ftp</protocol>',
    '<protocol>SftpScp</protocol><protocol>SftpScp</protocol>',
    '<credentials>x</credentials>',
    '<serverHostname><a/></serverHostname>',
  ])('a method with %s is malformed', async (fields) => {
    const result = `<GetFileTransferMethodResult>${fields}</GetFileTransferMethodResult>`;
    const { remote } = await serve([response('GetFileTransferMethod', result)]);
    expect((await failureOf(remote.getTransferMethod(JOB, signal))).code).toBe('malformed');
  });
});

describe('a fault', () => {
  test.each([
    ['1.1', fault11('File &#x1B;[31m not\nfound')],
    ['1.2', fault12('File &#x1B;[31m not\nfound')],
  ] as const)('of SOAP %s is told in its own words', async (soapVersion, body) => {
    for (const status of [500, 400, 200]) {
      const { remote } = await serve([{ status, body }], { soapVersion });
      const error = await failureOf(remote.listChangedFiles(JOB, signal));
      expect(error.code).toBe('fault');
      expect(error.message).toMatch(/: soap:(Server|Receiver): File \\u\{001B\}\[31m not found$/);
    }
  });

  test.each([
    ['without fields', fault11('').replace(/<soap:Fault>.*<\/soap:Fault>/, '<soap:Fault/>')],
    ['with fields twice', fault11('x').replace('<detail />', '<faultstring>y</faultstring>')],
    ['with elements for words', fault11('<a>x</a>')],
  ])('%s is one, too', async (_, body) => {
    const { remote } = await serve([body]);
    expect((await failureOf(remote.listChangedFiles(JOB, signal))).code).toBe('fault');
  });

  const words12 = 'Session <b>of <i>alice</i></b> is full &amp; <br/>closed';
  test.each([
    ['words with markup', fault11('no job <b>501</b> here'), 'soap:Server: no job 501 here'],
    ['words that are markup', fault11('<p>no job</p><p> 501</p>'), 'soap:Server: no job 501'],
    ['words with markup in SOAP 1.2', fault12(words12), 'soap:Receiver: Session of alice is full & closed'],
    [
      'characters around its words',
      fault11('no job').replace('<faultcode>', 'Oops <faultcode>').replace('<detail />', ' at x.cs:3 <detail />'),
      'soap:Server: no job',
    ],
    [
      'characters around its reason',
      fault12('no job').replace('<soap:Text', 'in short <soap:Text').replace('</soap:Code>', 'x</soap:Code>'),
      'soap:Receiver: no job',
    ],
  ])('with %s is told in its words', async (_, body, words) => {
    const { remote } = await serve([body]);
    const { code, message } = await failureOf(remote.listChangedFiles(JOB, signal));
    expect([code, message]).toEqual(['fault', `the service answered ListChangedFilesForJob with a fault: ${words}`]);
  });

  test('is cut, and never shows the session', async () => {
    const words = `no ${SESSION_CODE.toUpperCase()} and 0A1B2C3D-1111-2222-3333-444455556666 ${'long '.repeat(1000)}`;
    const { remote } = await serve([fault11(words)]);
    const { message } = await failureOf(remote.listChangedFiles(JOB, signal));
    expect(message).toContain('no *** and *** long');
    expect(message.length).toBeLessThan(700);
  });
});

describe('a session', () => {
  const codes = ['first-code', 'second-code', 'third-code'];
  const grants = () => new GivenSession(...codes.map((code): Grant => ({ kind: 'session', code })));
  const good = listResponse('<string>a</string>');

  test.each<[string, Answer]>([
    ['a fault', fault11('Session code first-code is not valid.')],
    ['a fault with markup in its words', fault11('Session code <b>first-code</b> is not valid.')],
    ['a fault of SOAP 1.2', fault12('Session code first-code already expired.')],
    ['a fault with status 200', { status: 200, body: fault11('Session code first-code is not present') }],
    ['a status 400 with a text', { status: 400, type: 'text/plain', body: 'Session code first-code is not valid' }],
    ['a status 401', { status: 401 }],
    ['a status 403', { status: 403, type: 'text/html', body: '<html><title>No</title></html>' }],
  ])('lost by %s is renewed once and the call repeated', async (_, lost) => {
    const session = grants();
    const { remote, asked, events } = await serve([lost, good], { session });
    expect(await remote.listChangedFiles(JOB, signal)).toEqual(['a']);
    expect(asked.map(({ body }) => /<sessionCode>(.*)<\/sessionCode>/.exec(body)?.[1])).toEqual(codes.slice(0, 2));
    expect(session.lostGrants).toEqual([{ kind: 'session', code: 'first-code' }]);
    expect(events.map(({ outcome }) => outcome)).toEqual(['session-lost', 'ok']);
  });

  test('may be lost in other words', async () => {
    const session = grants();
    const lost = fault11('Sezení vypršelo');
    const { remote } = await serve([lost, good], { session, isSessionFault: (words) => /sezení/i.test(words) });
    expect(await remote.listChangedFiles(JOB, signal)).toEqual(['a']);
    const other = await serve([lost, good], { session: grants() });
    expect((await failureOf(other.remote.listChangedFiles(JOB, signal))).code).toBe('fault');
  });

  test('is not looked for in other errors', async () => {
    const { remote, asked } = await serve([fault11('The session of the cluster is closed')]);
    expect((await failureOf(remote.listChangedFiles(JOB, signal))).code).toBe('fault');
    expect(asked.length).toBe(1);
  });
});
