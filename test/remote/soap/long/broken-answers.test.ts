/** Answers over SOAP that are broken in one way each, besides those that are whatever protocol is spoken. */
import { afterAll, expect, test } from 'vitest';
import type { Operation } from '../../../../src/operations.ts';
import {
  answered,
  type Broken,
  type BrokenAnswer,
  brokenConnections,
  brokenStatuses,
  forever,
  HTML,
  longHead,
  of,
  only,
  page,
  status,
} from '../../../support/wire-broken-http.ts';
import { entry, fault11, fileResponse, listResponse, partsResponse } from '../../../support/wire-envelopes.ts';
import { createRemote } from '../../../support/wire-remote.ts';
import { callOf, expectFailure, type Protocol } from '../../../support/wire-suffering.ts';

const startBytes = process.memoryUsage().rss;

const SOAP: Protocol = {
  isEnd: (data) => data.toString().endsWith(':Envelope>'),
  connect(url, options, { operation }) {
    const { remote, close } = createRemote(url, options);
    return { call: () => callOf(remote, operation), close };
  },
};

const PARTS: Operation = 'DownloadPartsOfJobFilesFromCluster';
const FILE: Operation = 'DownloadFileFromCluster';
const LIST: Operation = 'ListChangedFilesForJob';

const XML = 'text/xml; charset=utf-8';
const xml = (body: string | Buffer) => answered(200, XML, body);
const LONG = longHead(XML);

const good = partsResponse(entry('x'));
const [beforeContent = ''] = partsResponse(entry('|')).split('|');
const SOUND = { type: XML, good, beforeContent };

const MANY_NAMESPACES = Array.from({ length: 700 }, (_, at) => `xmlns:p${at}="u:${at}"`).join(' ');
/** 1 MB of `piece` inside of ten elements with `attributes`. */
const inHeader = (piece: string, attributes = '') => {
  const inner = piece.repeat(1_000_000 / piece.length);
  const header = `${`<a ${attributes}>`.repeat(10)}${inner}${'</a>'.repeat(10)}`;
  return good.replace('<soap:Body>', () => `<soap:Header>${header}</soap:Header><soap:Body>`);
};

const connections: readonly BrokenAnswer[] = [
  ...brokenConnections(SOUND),
  { what: 'a header that drips', code: 'timeout', serve: forever('HTTP/1.1 200 OK\r\nx: ', 'x', 10) },
  {
    what: 'a header without end',
    code: 'malformed',
    serve: forever('HTTP/1.1 200 OK\r\n', 'x: y\r\n'.repeat(500)),
    // undici makes an error of each name and value of the chunk (64 KiB at most) in which the header became too long.
    blocksMs: 2_000,
  },
  {
    what: 'white space without end',
    code: 'answer-too-large',
    serve: forever(LONG + beforeContent.replace(/<JobFileContentExt>.*/, ''), ' '.repeat(65_536)),
  },
  { what: 'a comment without end', code: 'malformed', serve: forever(`${LONG}<!--`, 'x'.repeat(65_536)) },
  {
    what: 'elements without end',
    code: 'answer-too-large',
    serve: forever(LONG + beforeContent.replace('<content>', ''), '<a/>'.repeat(5000)),
  },
  { what: 'a tag without end', code: 'malformed', serve: forever(`${LONG}<a b="`, 'x'.repeat(65_536)) },
];

const statuses: readonly BrokenAnswer[] = [
  ...brokenStatuses(SOUND),
  { what: '204', code: 'unexpected-answer', serve: only('HTTP/1.1 204 No\r\n\r\n') },
  { what: '404', code: 'http-status', serve: answered(404, HTML, '<title>Not found</title>'), says: 'Not found' },
  { what: '415', code: 'http-status', serve: status(415) },
  { what: '429', code: 'rate-limited', serve: status(429, { 'retry-after': 7 }) },
  {
    what: '500 with 1 MB of text without a colon',
    code: 'http-status',
    serve: answered(500, XML, '<'.repeat(1_000_000)),
  },
  { what: '500 with a sound envelope', code: 'http-status', serve: answered(500, XML, good) },
  { what: '500 with half a fault', code: 'http-status', serve: answered(500, XML, fault11('x').slice(0, -20)) },
  { what: '502', code: 'unavailable', serve: answered(502, HTML, page(1000)) },
  { what: '503 with a fault', code: 'unavailable', serve: answered(503, XML, fault11('busy')), says: 'busy' },
];

const types: readonly BrokenAnswer[] = [
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
  { what: 'UTF-16', code: 'malformed', serve: xml(Buffer.from(`\uFEFF${good}`, 'utf16le')) },
];

const documents: readonly BrokenAnswer[] = [
  { what: 'an external entity', code: 'malformed', serve: xml(`<!DOCTYPE a SYSTEM "file:///etc/passwd">${good}`) },
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

const files: readonly BrokenAnswer[] = [
  {
    what: 'base64 without end',
    code: 'interrupted',
    serve: (socket) => void socket.end(LONG + fileResponse('AAAA').slice(0, -200)),
  },
];

const listings: readonly BrokenAnswer[] = [
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

const BROKEN: readonly Broken[] = [
  ...[...connections, ...statuses, ...types, ...documents].map(of(PARTS)),
  ...files.map(of(FILE)),
  ...listings.map(of(LIST)),
];

test.each(BROKEN.map((broken) => [broken.what, broken] as const))('an answer is refused: %s', async (_, broken) => {
  await expectFailure(broken, SOAP);
});

afterAll(() => {
  // Bounded, not exact: the garbage of all of them together.
  expect(process.memoryUsage().rss - startBytes).toBeLessThan(500 * 1024 * 1024);
});
