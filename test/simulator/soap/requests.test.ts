import { describe, expect, it } from 'vitest';
import { wsdlOf } from '../../../src/remote/soap/contract.ts';
import {
  call,
  envelope,
  faultText,
  headersOf,
  jobAnd,
  NAMESPACE,
  offsets,
  post,
  signIn,
  startSandbox,
  VERSIONS,
} from '../support.ts';

const LIST = 'ListChangedFilesForJob';
const PARTS = 'DownloadPartsOfJobFilesFromCluster';
const END = 'EndFileTransfer';
const element = (operation: string, children: string) =>
  `<${operation} xmlns="${NAMESPACE}">${children}</${operation}>`;

describe('both SOAP versions at one address', () => {
  it('answers a hand-written SOAP 1.1 call byte for byte', async () => {
    const sandbox = await startSandbox();
    const session = await signIn(sandbox);
    await sandbox.submitJob({ jobId: '501', tasks: [{}] });
    const request = `<?xml version="1.0" encoding="utf-8"?>
<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/">
  <soap:Body>
    <ListChangedFilesForJob xmlns="http://sandbox.example.org/">
      <submittedJobInfoId>501</submittedJobInfoId>
      <sessionCode>${session}</sessionCode>
    </ListChangedFilesForJob>
  </soap:Body>
</soap:Envelope>`;
    const headers = { 'content-type': 'text/xml', soapaction: 'http://sandbox.example.org/ListChangedFilesForJob' };
    const answer = await post(sandbox, request, headers);
    expect(answer.status).toBe(200);
    expect(answer.type).toBe('text/xml; charset=utf-8');
    expect(answer.text).toBe(
      '<?xml version="1.0" encoding="utf-8"?><soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema"><soap:Body><ListChangedFilesForJobResponse xmlns="http://sandbox.example.org/"><ListChangedFilesForJobResult /></ListChangedFilesForJobResponse></soap:Body></soap:Envelope>',
    );
  });

  it('answers a hand-written SOAP 1.2 call byte for byte', async () => {
    const sandbox = await startSandbox();
    const session = await signIn(sandbox);
    await sandbox.submitJob({ jobId: '501', tasks: [{}] });
    const request = `<e:Envelope xmlns:e="http://www.w3.org/2003/05/soap-envelope" xmlns:t="http://sandbox.example.org/"><e:Header/><e:Body><t:ListChangedFilesForJob><t:submittedJobInfoId> 501 </t:submittedJobInfoId><t:sessionCode>${session}</t:sessionCode></t:ListChangedFilesForJob></e:Body></e:Envelope>`;
    const answer = await post(sandbox, request, { 'content-type': 'application/soap+xml' });
    expect(answer.status).toBe(200);
    expect(answer.type).toBe('application/soap+xml; charset=utf-8');
    expect(answer.text).toBe(
      '<?xml version="1.0" encoding="utf-8"?><soap:Envelope xmlns:soap="http://www.w3.org/2003/05/soap-envelope" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema"><soap:Body><ListChangedFilesForJobResponse xmlns="http://sandbox.example.org/"><ListChangedFilesForJobResult /></ListChangedFilesForJobResponse></soap:Body></soap:Envelope>',
    );
  });

  it('writes faults as each version wants them, with HTTP 500', async () => {
    const sandbox = await startSandbox();
    const session = await signIn(sandbox);
    const old = await call(sandbox, LIST, jobAnd('9', session), '1.1');
    expect(old.status).toBe(500);
    expect(old.body).toBe(
      '<soap:Fault><faultcode>soap:Server</faultcode><faultstring>Specified job with id 9 does not exist.</faultstring><detail /></soap:Fault>',
    );
    const young = await call(sandbox, LIST, jobAnd('9', session), '1.2');
    expect(young.status).toBe(500);
    expect(young.body).toBe(
      '<soap:Fault><soap:Code><soap:Value>soap:Receiver</soap:Value></soap:Code><soap:Reason><soap:Text xml:lang="en">Specified job with id 9 does not exist.</soap:Text></soap:Reason><soap:Detail /></soap:Fault>',
    );
    expect((await call(sandbox, LIST, '', '1.1')).body).toContain('<faultcode>soap:Client</faultcode>');
    expect((await call(sandbox, LIST, '', '1.2')).body).toContain('<soap:Value>soap:Sender</soap:Value>');
  });

  it('serves the contract', async () => {
    const sandbox = await startSandbox();
    const response = await fetch(`${sandbox.fileTransferUrl}?wsdl`);
    expect(await response.text()).toBe(wsdlOf({ namespace: sandbox.namespace, url: sandbox.fileTransferUrl }));
    expect((await fetch(sandbox.fileTransferUrl)).status).toBe(405);
    expect((await fetch(`${sandbox.baseUrl}/elsewhere`)).status).toBe(404);
  });
});

describe.each(VERSIONS)('the schema, SOAP %s', (version) => {
  const refusals: [what: string, operation: string, children: string, text: string][] = [
    ['nothing at all', LIST, '', 'expected element submittedJobInfoId, found the end of ListChangedFilesForJob'],
    [
      'a wrong order',
      LIST,
      '<sessionCode>x</sessionCode><submittedJobInfoId>1</submittedJobInfoId>',
      'expected element submittedJobInfoId, found element sessionCode (in ListChangedFilesForJob)',
    ],
    [
      'an unknown element',
      LIST,
      '<submittedJobInfoId>1</submittedJobInfoId><jobId>1</jobId>',
      'expected element sessionCode or the end of ListChangedFilesForJob, found element jobId',
    ],
    [
      'an element twice',
      LIST,
      '<submittedJobInfoId>1</submittedJobInfoId><submittedJobInfoId>1</submittedJobInfoId>',
      'expected element sessionCode or the end of ListChangedFilesForJob, found element submittedJobInfoId',
    ],
    [
      'an element of another namespace',
      LIST,
      '<submittedJobInfoId xmlns="">1</submittedJobInfoId>',
      'expected element submittedJobInfoId, found element {}submittedJobInfoId',
    ],
    [
      'a long that is none',
      LIST,
      '<submittedJobInfoId>1e3</submittedJobInfoId>',
      'expected a long in submittedJobInfoId, found "1e3"',
    ],
    [
      'a long beyond 64 bits',
      LIST,
      '<submittedJobInfoId>9223372036854775808</submittedJobInfoId>',
      'expected a long in submittedJobInfoId, found "9223372036854775808"',
    ],
    [
      'nil where a value is required',
      LIST,
      '<submittedJobInfoId xsi:nil="true"/>',
      'expected a value in submittedJobInfoId, found xsi:nil',
    ],
    [
      'nil for an optional member',
      LIST,
      '<submittedJobInfoId>1</submittedJobInfoId><sessionCode xsi:nil="1"/>',
      'expected a value in sessionCode, found xsi:nil',
    ],
    ['text between elements', LIST, 'x<submittedJobInfoId>1</submittedJobInfoId>', 'found text'],
    [
      'an element inside of text',
      LIST,
      '<submittedJobInfoId><a/></submittedJobInfoId>',
      'expected text in submittedJobInfoId, found element a',
    ],
    [
      'an attribute',
      LIST,
      '<submittedJobInfoId id="1">1</submittedJobInfoId>',
      'expected no attribute in submittedJobInfoId, found id',
    ],
    [
      'an unknown file type',
      PARTS,
      `<submittedJobInfoId>1</submittedJobInfoId>${offsets(['1', 'StdOut', 0])}`,
      'expected one of LogFile, ProgressFile, StandardErrorFile, StandardOutputFile in fileType, found "StdOut"',
    ],
    [
      'an entry with members in a wrong order',
      PARTS,
      '<submittedJobInfoId>1</submittedJobInfoId><taskFileOffsets><TaskFileOffsetExt><offset>0</offset></TaskFileOffsetExt></taskFileOffsets>',
      'expected element submittedTaskInfoId, found element offset (in TaskFileOffsetExt)',
    ],
    [
      'an entry without its offset',
      PARTS,
      '<submittedJobInfoId>1</submittedJobInfoId><taskFileOffsets><TaskFileOffsetExt><submittedTaskInfoId>1</submittedTaskInfoId><fileType>LogFile</fileType></TaskFileOffsetExt></taskFileOffsets>',
      'expected element offset, found the end of TaskFileOffsetExt',
    ],
    [
      'a foreign entry',
      PARTS,
      '<submittedJobInfoId>1</submittedJobInfoId><taskFileOffsets><entry/></taskFileOffsets>',
      'expected element TaskFileOffsetExt or the end of taskFileOffsets, found element entry',
    ],
    [
      'nil with content',
      PARTS,
      '<submittedJobInfoId>1</submittedJobInfoId><taskFileOffsets><TaskFileOffsetExt xsi:nil="true">x</TaskFileOffsetExt></taskFileOffsets>',
      'expected an empty element TaskFileOffsetExt',
    ],
    [
      'the method without its protocol',
      END,
      '<submittedJobInfoId>1</submittedJobInfoId><usedTransferMethod><serverHostname>h</serverHostname></usedTransferMethod>',
      'expected element sharedBasepath or element protocol, found the end of usedTransferMethod',
    ],
    [
      'the inherited member of the credentials last',
      END,
      '<submittedJobInfoId>1</submittedJobInfoId><usedTransferMethod><protocol>SftpScp</protocol><credentials><publicKey>k</publicKey><username>u</username></credentials></usedTransferMethod>',
      'expected the end of credentials, found element username',
    ],
    [
      'an unknown protocol',
      END,
      '<submittedJobInfoId>1</submittedJobInfoId><usedTransferMethod><protocol>Ftp</protocol></usedTransferMethod>',
      'expected one of NetworkShare, SftpScp in protocol, found "Ftp"',
    ],
  ];

  it.each(refusals)('refuses %s', async (_what, operation, children, text) => {
    const sandbox = await startSandbox();
    const answer = await call(sandbox, operation, children, version);
    expect(answer.status).toBe(500);
    expect(faultText(answer)).toContain(text);
    expect(faultText(answer)).toMatch(/^Server was unable to read request\. ---&gt; /);
  });

  it('refuses another namespace, another envelope, another number of bodies, and headers that must be understood', async () => {
    const sandbox = await startSandbox();
    const headers = headersOf(version, LIST);
    const ask = async (request: string) => faultText(await post(sandbox, request, headers));
    const other = version === '1.1' ? '1.2' : '1.1';
    const good = element(LIST, '<submittedJobInfoId>1</submittedJobInfoId>');

    expect(await ask(envelope(version, `<${LIST} xmlns="http://other/"/>`))).toContain(
      `expected an operation of ${NAMESPACE}, found element {http://other/}${LIST}`,
    );
    expect(await ask(envelope(other, good))).toContain('expected an Envelope of');
    expect(await ask(envelope(version, good + good))).toContain('expected exactly one element in Body, found 2');
    expect(await ask(envelope(version, ''))).toContain('expected exactly one element in Body, found 0');
    expect(await ask('<Envelope/>')).toContain('expected an Envelope of');
    expect(await ask('<html/>')).toContain('expected element Envelope, found html');
    const header = '<s:Header><h xmlns="urn:h" s:mustUnderstand="1"/></s:Header><s:Body>';
    expect(await ask(envelope(version, good).replace('<s:Body>', header))).toBe('SOAP header h was not understood.');
  });

  it('refuses a wrong action', async () => {
    const sandbox = await startSandbox();
    const request = envelope(version, element(LIST, '<submittedJobInfoId>1</submittedJobInfoId>'));
    const unknown = await post(sandbox, request, headersOf(version, 'Nothing'));
    expect(faultText(unknown)).toContain(`Server did not recognize the value of`);
    const another = await post(sandbox, request, headersOf(version, 'EndFileTransfer'));
    expect(faultText(another)).toContain(
      'expected the operation of the action http://sandbox.example.org/EndFileTransfer',
    );
  });

  it('takes longs to the last bit, nil entries and nil members', async () => {
    const sandbox = await startSandbox();
    const session = await signIn(sandbox);
    const jobId = '9223372036854775807';
    const taskId = '-9223372036854775808';
    await sandbox.submitJob({ jobId, tasks: [{ taskId }] });
    const nilEntry = '<TaskFileOffsetExt xsi:nil="true"/>';
    const nilMembers =
      '<TaskFileOffsetExt><submittedTaskInfoId xsi:nil="true"/><fileType xsi:nil="true"/><offset xsi:nil="true"/></TaskFileOffsetExt>';
    const asked = `<taskFileOffsets>${nilEntry}${nilMembers}</taskFileOffsets>`;
    const answer = await call(sandbox, PARTS, jobAnd(jobId, session, asked), version);
    expect(answer.body).toBe(`<${PARTS}Response xmlns="${NAMESPACE}"><${PARTS}Result /></${PARTS}Response>`);
    expect(sandbox.calls.at(-1)?.entries).toEqual([null, { submittedTaskInfoId: null, fileType: null, offset: null }]);
  });

  const malformed: [what: string, body: string | Uint8Array][] = [
    ['nothing', ''],
    ['no XML', 'hello'],
    ['an element that is not closed', '<a><b></a>'],
    ['a second root', '<a/><b/>'],
    ['the end of a section in text', '<a>]]></a>'],
    ['a document type', '<!DOCTYPE a><a/>'],
    ['an unknown entity', '<a>&nbsp;</a>'],
    ['a reference to a control character', '<a>&#x1B;</a>'],
    ['a raw control character', '<a>\u001b</a>'],
    ['bytes that are no UTF-8', Buffer.from('<a>\xe8</a>', 'latin1')],
    ['another encoding', '<?xml version="1.0" encoding="iso-8859-1"?><a/>'],
    ['an unbound prefix', '<x:a/>'],
    ['deep nesting', '<a>'.repeat(100) + '</a>'.repeat(100)],
  ];
  it.each(malformed)('answers 400 with an empty body to %s', async (_what, body) => {
    const sandbox = await startSandbox();
    const answer = await post(sandbox, body, headersOf(version, LIST));
    expect(answer).toMatchObject({ status: 400, text: '' });
  });
});

describe('requests in general', () => {
  it('answers 415 with an empty body to another media type, charset or coding', async () => {
    const sandbox = await startSandbox();
    const request = envelope('1.1', element(LIST, '<submittedJobInfoId>1</submittedJobInfoId>'));
    const soapaction = `${NAMESPACE}${LIST}`;
    for (const headers of [
      { 'content-type': 'application/json' },
      { 'content-type': 'text/plain' },
      { 'content-type': 'text/xml; charset=iso-8859-2' },
      { 'content-type': 'text/xml', 'content-encoding': 'gzip' },
    ]) {
      expect(await post(sandbox, request, { soapaction, ...headers })).toMatchObject({ status: 415, text: '' });
    }
  });

  it('answers 413 with an empty body to a request that is too long, for all calls or for DownloadParts alone', async () => {
    const sandbox = await startSandbox();
    const session = await signIn(sandbox);
    await sandbox.submitJob({ jobId: '1', tasks: [{}] });
    sandbox.habits.maxPartsRequestBytes = 480;
    const long = jobAnd('1', session, offsets(['1', 'LogFile', 0], ['1', 'LogFile', 0]));
    expect(await call(sandbox, PARTS, long)).toMatchObject({ status: 413, text: '' });
    expect((await call(sandbox, LIST, jobAnd('1', session))).status).toBe(200);
    sandbox.habits.maxRequestBytes = 300;
    expect(await call(sandbox, LIST, jobAnd('1', session))).toMatchObject({ status: 413, text: '' });
    expect(await call(sandbox, LIST, 'x'.repeat(3_000_000))).toMatchObject({ status: 413, text: '' });
  });

  it('refuses a DownloadParts call with too many entries where the server allows few', async () => {
    const sandbox = await startSandbox({ habits: { maxPartsEntries: 1 } });
    const session = await signIn(sandbox);
    await sandbox.submitJob({ jobId: '1', tasks: [{}] });
    const asked = offsets(['1', 'LogFile', 0], ['2', 'LogFile', 0]);
    const answer = await call(sandbox, PARTS, jobAnd('1', session, asked));
    expect(faultText(answer)).toBe('The request asks for 2 files, 1 are allowed.');
  });

  it('allows so many requests an hour and says when to come back', async () => {
    let nowMs = 1_000_000;
    const sandbox = await startSandbox({ clock: () => nowMs });
    const session = await signIn(sandbox);
    await sandbox.submitJob({ jobId: '1', tasks: [{}] });
    const list = () => call(sandbox, LIST, jobAnd('1', session));
    sandbox.habits.requestsPerHour = 2;
    sandbox.habits.sessionIdleMinutes = 1_000;
    expect((await list()).status).toBe(200);
    nowMs += 3_590_000;
    expect((await list()).status).toBe(200);
    const response = await fetch(sandbox.fileTransferUrl, { method: 'POST', body: '' });
    expect(response.status).toBe(429);
    expect(response.headers.get('retry-after')).toBe('10');
    nowMs += 10_000;
    expect((await list()).status).toBe(200);
  });

  it('fails a call while another call of the same user runs, where that is not safe', async () => {
    const sandbox = await startSandbox({ habits: { parallelUnsafe: true } });
    const session = await signIn(sandbox);
    await sandbox.submitJob({ jobId: '1', tasks: [{}] });
    const slow = sandbox.faults.add({ kind: 'delay', ms: 60_000, times: 1 });
    const stop = new AbortController();
    const request = envelope('1.1', element(LIST, jobAnd('1', session)));
    const first = post(sandbox, request, headersOf('1.1', LIST), stop.signal).catch((error: Error) => error.name);
    while (slow.applied === 0) await new Promise((resolve) => setImmediate(resolve));
    expect(faultText(await call(sandbox, LIST, jobAnd('1', session)))).toContain('in use by another call');
    stop.abort();
    expect(await first).toBe('AbortError');
    while ((await call(sandbox, LIST, jobAnd('1', session))).status !== 200);
    expect(sandbox.counters.maxParallelCalls).toBe(2);
  });
});
