/** Answers and connections that are broken in one way each, as raw bytes of HTTP. */
import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import type { ErrorCode } from '../../src/errors.ts';
import type { Operation } from '../../src/operations.ts';
import {
  entry,
  envelope,
  fault11,
  fault12,
  fileResponse,
  listResponse,
  NAMESPACE,
  partsResponse,
  response,
} from './wire-envelopes.ts';

export interface Broken {
  readonly what: string;
  readonly code: ErrorCode;
  /** What the service does with the connection once a request has come. */
  readonly serve: (socket: Socket) => void;
  readonly operation: Operation;
  /** Seen in the message, besides. */
  readonly says?: string;
  /** How long it may keep the event loop from turning, in milliseconds of processor time; 100 if left out. */
  readonly blocksMs?: number;
}

const PARTS: Operation = 'DownloadPartsOfJobFilesFromCluster';
const FILE: Operation = 'DownloadFileFromCluster';
const LIST: Operation = 'ListChangedFilesForJob';

type Headers = Readonly<Record<string, string | number>>;

/** An answer with its proper length. */
export function answered(status: number, type: string, body: string | Buffer, headers: Headers = {}): Broken['serve'] {
  return (socket) => {
    const typed = type === '' ? {} : { 'content-type': type };
    socket.write(head(status, { ...typed, 'content-length': Buffer.byteLength(body), ...headers }));
    socket.write(body);
  };
}

export function head(status: number, headers: Headers): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Status\r\n${lines.join('')}\r\n`;
}

const XML = 'text/xml; charset=utf-8';
const HTML = 'text/html';
const xml = (body: string | Buffer) => answered(200, XML, body);
export const status = (code: number, headers: Headers = {}) => answered(code, '', '', headers);

/** Writes `bytes` and then does nothing more. */
export const only =
  (bytes: string): Broken['serve'] =>
  (socket) =>
    void socket.write(bytes);

/** Writes `start` and then `piece` again and again, with a pause if `everyMs` is given, until the client gives up. */
export function forever(start: string, piece: string, everyMs = 0): Broken['serve'] {
  return (socket) => {
    socket.write(start);
    const timer = setInterval(() => {
      for (let room = true; room; ) room = socket.write(piece) && everyMs === 0 && !socket.destroyed;
    }, everyMs);
    socket.on('close', () => clearInterval(timer));
  };
}

const chunkedHead = head(200, { 'content-type': XML, 'transfer-encoding': 'chunked' });
export const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const LONG = head(200, { 'content-type': XML, 'content-length': 1_000_000_000 });
export const page = (size: number) =>
  `<!DOCTYPE html><html><head><title>Sign in</title></head>${'<p>text '.repeat(size / 8)}`;

const good = partsResponse(entry('x'));
const [beforeContent = '', afterContent = ''] = partsResponse(entry('|')).split('|');
const bytesIn = (...bytes: number[]) =>
  Buffer.concat([Buffer.from(beforeContent), Buffer.from(bytes), Buffer.from(afterContent)]);

const MANY_NAMESPACES = Array.from({ length: 700 }, (_, at) => `xmlns:p${at}="u:${at}"`).join(' ');
/** 1 MB of `piece` inside of ten elements with `attributes`. */
const inHeader = (piece: string, attributes = '') => {
  const inner = piece.repeat(1_000_000 / piece.length);
  const header = `${`<a ${attributes}>`.repeat(10)}${inner}${'</a>'.repeat(10)}`;
  return good.replace('<soap:Body>', () => `<soap:Header>${header}</soap:Header><soap:Body>`);
};

const connections: readonly Omit<Broken, 'operation'>[] = [
  { what: 'closed at once', code: 'interrupted', serve: (socket) => void socket.end() },
  { what: 'reset at once', code: 'interrupted', serve: (socket) => void socket.resetAndDestroy() },
  { what: 'silence', code: 'timeout', serve: () => undefined },
  { what: 'silence inside the header', code: 'timeout', serve: only('HTTP/1.1 200 OK\r\ncontent-') },
  { what: 'a header that drips', code: 'timeout', serve: forever('HTTP/1.1 200 OK\r\nx: ', 'x', 10) },
  {
    what: 'a header without end',
    code: 'malformed',
    serve: forever('HTTP/1.1 200 OK\r\n', 'x: y\r\n'.repeat(500)),
    // undici makes an error of each name and value of the chunk (64 KiB at most) in which the header became too long.
    blocksMs: 2_000,
  },
  { what: 'provisional answers without end', code: 'timeout', serve: forever('', 'HTTP/1.1 102 Wait\r\n\r\n', 10) },
  { what: 'another protocol', code: 'malformed', serve: only('SSH-2.0-OpenSSH_9.2p1\r\n') },
  { what: 'a wrong length', code: 'malformed', serve: only('HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n') },
  { what: 'a short body', code: 'interrupted', serve: (socket) => void socket.end(`${LONG}${beforeContent}`) },
  {
    what: 'a body that is reset',
    code: 'interrupted',
    serve: (socket) => void socket.write(`${LONG}${beforeContent}`, () => setImmediate(() => socket.resetAndDestroy())),
  },
  {
    what: 'a body cut between two chunks',
    code: 'interrupted',
    serve: (socket) => void socket.end(chunkedHead + chunk(good)),
  },
  { what: 'a body that stalls', code: 'timeout', serve: only(LONG + beforeContent) },
  { what: 'a body that stalls after its envelope', code: 'timeout', serve: only(chunkedHead + chunk(good)) },
  { what: 'a body that drips', code: 'timeout', serve: forever(LONG + beforeContent, 'x', 10) },
  {
    what: 'white space without end',
    code: 'answer-too-large',
    serve: forever(LONG + beforeContent.replace(/<JobFileContentExt>.*/, ''), ' '.repeat(65_536)),
  },
  { what: 'a comment without end', code: 'answer-too-large', serve: forever(`${LONG}<!--`, 'x'.repeat(65_536)) },
  {
    what: 'elements without end',
    code: 'answer-too-large',
    serve: forever(LONG + beforeContent.replace('<content>', ''), '<a/>'.repeat(5000)),
  },
  { what: 'a tag without end', code: 'malformed', serve: forever(`${LONG}<a b="`, 'x'.repeat(65_536)) },
  {
    what: 'a bomb of gzip',
    code: 'malformed',
    serve: answered(200, XML, gzipSync(Buffer.alloc(50_000_000)), { 'content-encoding': 'gzip' }),
    says: 'compressed',
  },
  { what: 'gzip that does not say so', code: 'malformed', serve: xml(gzipSync(good)) },
];

const statuses: readonly Omit<Broken, 'operation'>[] = [
  { what: 'an empty 200', code: 'unexpected-answer', serve: status(200), says: 'empty' },
  { what: 'an empty 200 of HTML', code: 'unexpected-answer', serve: answered(200, HTML, ''), says: 'empty' },
  { what: '202', code: 'unexpected-answer', serve: status(202), says: '202' },
  { what: '204', code: 'unexpected-answer', serve: only('HTTP/1.1 204 No\r\n\r\n') },
  { what: '206', code: 'unexpected-answer', serve: answered(206, XML, good) },
  { what: '301', code: 'redirected', serve: status(301, { location: 'http://127.0.0.1:1/?secret' }) },
  { what: '307', code: 'redirected', serve: status(307, { location: '/' }) },
  { what: '308 with a body', code: 'redirected', serve: answered(308, HTML, page(1_000_000), { location: '/' }) },
  { what: '400', code: 'http-status', serve: status(400) },
  { what: '401', code: 'session-lost', serve: status(401) },
  { what: '403', code: 'session-lost', serve: answered(403, HTML, page(1000)), says: 'Sign in' },
  { what: '404', code: 'http-status', serve: answered(404, HTML, '<title>Not found</title>'), says: 'Not found' },
  { what: '405', code: 'http-status', serve: status(405) },
  { what: '413', code: 'request-too-long', serve: status(413) },
  { what: '415', code: 'http-status', serve: status(415) },
  { what: '429', code: 'rate-limited', serve: status(429, { 'retry-after': 7 }) },
  { what: '500', code: 'http-status', serve: status(500) },
  { what: '500 with a page of 1 MB', code: 'http-status', serve: answered(500, HTML, page(1_000_000)) },
  {
    what: '500 with 1 MB of text without a colon',
    code: 'http-status',
    serve: answered(500, XML, '<'.repeat(1_000_000)),
  },
  { what: '500 with a sound envelope', code: 'http-status', serve: answered(500, XML, good) },
  { what: '500 with half a fault', code: 'http-status', serve: answered(500, XML, fault11('x').slice(0, -20)) },
  { what: '500 with a fault', code: 'fault', serve: answered(500, XML, fault11('No such job')), says: 'No such job' },
  {
    what: '500 with a fault of SOAP 1.2',
    code: 'fault',
    serve: answered(500, 'application/soap+xml', fault12('No')),
    says: 'soap:Receiver: No',
  },
  { what: '500 with a body that stalls', code: 'timeout', serve: only(LONG.replace('200', '500')) },
  {
    what: '500 with a body without end',
    code: 'http-status',
    serve: forever(LONG.replace('200', '500'), 'x'.repeat(65_536)),
  },
  { what: '200 with a fault', code: 'fault', serve: xml(fault11('No such job')), says: 'No such job' },
  { what: '200 with an empty fault', code: 'fault', serve: xml(envelope('<soap:Fault/>')) },
  { what: '502', code: 'unavailable', serve: answered(502, HTML, page(1000)) },
  { what: '503', code: 'unavailable', serve: status(503, { 'retry-after': 7 }) },
  { what: '503 with a fault', code: 'unavailable', serve: answered(503, XML, fault11('busy')), says: 'busy' },
  { what: '504', code: 'unavailable', serve: status(504) },
];

const types: readonly Omit<Broken, 'operation'>[] = [
  {
    what: 'a page of 1 MB',
    code: 'malformed',
    serve: answered(200, HTML, page(1_000_000)),
    says: 'web page ("Sign in")',
  },
  {
    what: 'a page of 1 MB that says it is XML',
    code: 'malformed',
    serve: xml(page(1_000_000)),
    says: 'web page ("Sign in")',
  },
  {
    what: 'a page without type',
    code: 'malformed',
    serve: answered(200, '', '<html><title>Hi</title>'),
    says: 'web page ("Hi")',
  },
  { what: 'JSON', code: 'malformed', serve: answered(200, 'application/json', '{}'), says: 'application/json' },
  { what: 'MTOM', code: 'malformed', serve: answered(200, 'multipart/related; boundary=x', '--x') },
  {
    what: 'another encoding in the header',
    code: 'malformed',
    serve: answered(200, 'text/xml; charset=windows-1250', good),
  },
  { what: 'another encoding in the document', code: 'malformed', serve: xml(good.replace('utf-8', 'iso-8859-1')) },
  { what: 'UTF-16', code: 'malformed', serve: xml(Buffer.from(`\uFEFF${good}`, 'utf16le')) },
];

const documents: readonly Omit<Broken, 'operation'>[] = [
  { what: 'a foreign root element', code: 'unexpected-answer', serve: xml('<wsdl/>') },
  { what: 'the answer of another operation', code: 'unexpected-answer', serve: xml(response('EndFileTransfer', '')) },
  {
    what: 'another namespace',
    code: 'unexpected-answer',
    serve: xml(good.replaceAll(NAMESPACE, 'urn:x')),
    says: 'urn:x',
  },
  { what: 'an empty body', code: 'unexpected-answer', serve: xml(envelope('')) },
  { what: 'half an envelope', code: 'malformed', serve: xml(good.slice(0, -1)) },
  { what: 'two envelopes', code: 'malformed', serve: xml(good + good) },
  { what: 'end tags that do not match', code: 'malformed', serve: xml(good.replace('</content>', '</contents>')) },
  {
    what: 'entities of entities',
    code: 'malformed',
    serve: xml(`<!DOCTYPE a [<!ENTITY b "${'c'.repeat(1000)}">]>${good}`),
  },
  { what: 'an external entity', code: 'malformed', serve: xml(`<!DOCTYPE a SYSTEM "file:///etc/passwd">${good}`) },
  { what: 'an unknown entity', code: 'malformed', serve: xml(partsResponse(entry('&b;'))) },
  { what: 'a reference to half a character', code: 'malformed', serve: xml(partsResponse(entry('&#xD83D;'))) },
  { what: 'bytes that are not UTF-8', code: 'malformed', serve: xml(bytesIn(0xe9)) },
  { what: '1 MB of namespaces in the header', code: 'answer-too-large', serve: xml(inHeader('<a xmlns:p="urn:p"/>')) },
  {
    what: '1 MB of namespaces, each below many others',
    code: 'answer-too-large',
    serve: xml(inHeader('<b xmlns:q="r"/>', MANY_NAMESPACES)),
  },
  {
    what: 'a fault with 1 MB of namespaces in its detail',
    code: 'answer-too-large',
    serve: xml(fault11('no').replace('<detail />', `<detail>${'<a xmlns:p="urn:p"/>'.repeat(50_000)}</detail>`)),
  },
  { what: 'deep nesting', code: 'malformed', serve: xml(beforeContent + '<a>'.repeat(1_000_000)) },
  {
    what: 'an attribute of 10 MB',
    code: 'malformed',
    serve: xml(good.replace('<content>', `<content a="${'x'.repeat(10_000_000)}">`)),
  },
  { what: 'a name of 10 MB', code: 'malformed', serve: xml(`<${'a'.repeat(10_000_000)}/>`) },
  { what: 'a path of 10 MB', code: 'answer-too-large', serve: xml(good.replace('/out', 'x'.repeat(10_000_000))) },
  { what: 'a million elements', code: 'answer-too-large', serve: xml(partsResponse('<a/>'.repeat(1_000_000))) },
  { what: 'as many elements as allowed', code: 'malformed', serve: xml(partsResponse(`x${'<a></a>'.repeat(9_900)}`)) },
  {
    what: 'content of 30 MB without end',
    code: 'malformed',
    serve: xml(`${beforeContent}<![CDATA[${'x'.repeat(30_000_000)}`),
  },
];

const files: readonly Omit<Broken, 'operation'>[] = [
  { what: 'base64 with a wrong character', code: 'malformed', serve: xml(fileResponse('AA?A')) },
  { what: 'base64 with an end inside', code: 'malformed', serve: xml(fileResponse('AA==AAAA')) },
  { what: 'base64 of a wrong length', code: 'malformed', serve: xml(fileResponse('AAAAA')) },
  { what: 'base64 with an element', code: 'malformed', serve: xml(fileResponse('AAAA<a/>')) },
  {
    what: 'base64 without end',
    code: 'interrupted',
    serve: (socket) => void socket.end(LONG + fileResponse('AAAA').slice(0, -200)),
  },
  { what: 'no file', code: 'not-found', serve: xml(response(FILE, '')) },
];

const listings: readonly Omit<Broken, 'operation'>[] = [
  {
    what: 'names without end',
    code: 'answer-too-large',
    serve: forever(LONG + listResponse('|').split('|')[0], '<string>a</string>'.repeat(3000)),
  },
  {
    what: 'a name without end',
    code: 'answer-too-large',
    serve: forever(`${LONG}${listResponse('|').split('|')[0]}<string>`, 'x'.repeat(65_536)),
  },
  { what: 'bytes that trickle on and on', code: 'timeout', serve: forever(LONG, ' '.repeat(1100), 10) },
];

const of =
  (operation: Operation) =>
  (broken: Omit<Broken, 'operation'>): Broken => ({ ...broken, operation });

export const BROKEN: readonly Broken[] = [
  ...[...connections, ...statuses, ...types, ...documents].map(of(PARTS)),
  ...files.map(of(FILE)),
  ...listings.map(of(LIST)),
];
