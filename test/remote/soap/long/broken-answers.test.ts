/** Answers over SOAP that are broken in one way each, besides those that are whatever protocol is spoken. */
import { afterAll, expect, test } from 'vitest';
import type { Operation } from '../../../../src/operations.ts';
import {
  answered,
  type Broken,
  type BrokenAnswer,
  broken,
  brokenConnections,
  brokenStatuses,
  callOf,
  expectFailure,
  forever,
  HTML,
  longHead,
  of,
  only,
  type Protocol,
  page,
  status,
} from '../../../support/wire-broken-http.ts';
import { entry, fault11, fileResponse, listResponse, partsResponse } from '../../../support/wire-envelopes.ts';
import { createRemote } from '../../../support/wire-remote.ts';

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
  broken('a header that drips', 'timeout', forever('HTTP/1.1 200 OK\r\nx: ', 'x', 10)),
  {
    what: 'a header without end',
    code: 'malformed',
    serve: forever('HTTP/1.1 200 OK\r\n', 'x: y\r\n'.repeat(500)),
    // undici makes an error of each name and value of the chunk (64 KiB at most) in which the header became too long.
    blocksMs: 2_000,
  },
  broken(
    'white space without end',
    'answer-too-large',
    forever(LONG + beforeContent.replace(/<JobFileContentExt>.*/, ''), ' '.repeat(65_536)),
  ),
  broken('a comment without end', 'malformed', forever(`${LONG}<!--`, 'x'.repeat(65_536))),
  broken(
    'elements without end',
    'answer-too-large',
    forever(LONG + beforeContent.replace('<content>', ''), '<a/>'.repeat(5000)),
  ),
  broken('a tag without end', 'malformed', forever(`${LONG}<a b="`, 'x'.repeat(65_536))),
];

const statuses: readonly BrokenAnswer[] = [
  ...brokenStatuses(SOUND),
  broken('204', 'unexpected-answer', only('HTTP/1.1 204 No\r\n\r\n')),
  broken('404', 'http-status', answered(404, HTML, '<title>Not found</title>'), 'Not found'),
  broken('415', 'http-status', status(415)),
  broken('429', 'rate-limited', status(429, { 'retry-after': 7 })),
  broken('500 with 1 MB of text without a colon', 'http-status', answered(500, XML, '<'.repeat(1_000_000))),
  broken('500 with a sound envelope', 'http-status', answered(500, XML, good)),
  broken('500 with half a fault', 'http-status', answered(500, XML, fault11('x').slice(0, -20))),
  broken('502', 'unavailable', answered(502, HTML, page(1000))),
  broken('503 with a fault', 'unavailable', answered(503, XML, fault11('busy')), 'busy'),
];

const types: readonly BrokenAnswer[] = [
  broken('a page of 1 MB', 'malformed', answered(200, HTML, page(1_000_000)), 'web page ("Sign in")'),
  broken('a page of 1 MB that says it is XML', 'malformed', xml(page(1_000_000)), 'web page ("Sign in")'),
  broken('a page without type', 'malformed', answered(200, '', '<html><title>Hi</title>'), 'web page ("Hi")'),
  broken('JSON', 'malformed', answered(200, 'application/json', '{}'), 'application/json'),
  broken('MTOM', 'malformed', answered(200, 'multipart/related; boundary=x', '--x')),
  broken('another encoding in the header', 'malformed', answered(200, 'text/xml; charset=windows-1250', good)),
  broken('UTF-16', 'malformed', xml(Buffer.from(`\uFEFF${good}`, 'utf16le'))),
];

const documents: readonly BrokenAnswer[] = [
  broken('an external entity', 'malformed', xml(`<!DOCTYPE a SYSTEM "file:///etc/passwd">${good}`)),
  broken('1 MB of namespaces in the header', 'answer-too-large', xml(inHeader('<a xmlns:p="urn:p"/>'))),
  broken(
    '1 MB of namespaces, each below many others',
    'answer-too-large',
    xml(inHeader('<b xmlns:q="r"/>', MANY_NAMESPACES)),
  ),
  broken(
    'a fault with 1 MB of namespaces in its detail',
    'answer-too-large',
    xml(fault11('no').replace('<detail />', `<detail>${'<a xmlns:p="urn:p"/>'.repeat(50_000)}</detail>`)),
  ),
  broken('deep nesting', 'malformed', xml(beforeContent + '<a>'.repeat(1_000_000))),
  broken(
    'an attribute of 10 MB',
    'malformed',
    xml(good.replace('<content>', `<content a="${'x'.repeat(10_000_000)}">`)),
  ),
  broken('a name of 10 MB', 'malformed', xml(`<${'a'.repeat(10_000_000)}/>`)),
  broken('a path of 10 MB', 'answer-too-large', xml(good.replace('/out', 'x'.repeat(10_000_000)))),
  broken('a million elements', 'answer-too-large', xml(partsResponse('<a/>'.repeat(1_000_000)))),
  broken('as many elements as allowed', 'malformed', xml(partsResponse(`x${'<a></a>'.repeat(9_900)}`))),
  broken('content of 30 MB without end', 'malformed', xml(`${beforeContent}<![CDATA[${'x'.repeat(30_000_000)}`)),
];

const files: readonly BrokenAnswer[] = [
  broken('base64 without end', 'interrupted', (socket) => void socket.end(LONG + fileResponse('AAAA').slice(0, -200))),
];

const listings: readonly BrokenAnswer[] = [
  broken(
    'names without end',
    'answer-too-large',
    forever(LONG + listResponse('|').split('|')[0], '<string>a</string>'.repeat(3000)),
  ),
  broken(
    'a name without end',
    'answer-too-large',
    forever(`${LONG}${listResponse('|').split('|')[0]}<string>`, 'x'.repeat(65_536)),
  ),
  broken('bytes that trickle on and on', 'timeout', forever(LONG, ' '.repeat(1100), 10)),
];

const BROKEN: readonly Broken[] = [
  ...[...connections, ...statuses, ...types, ...documents].map(of(PARTS)),
  ...files.map(of(FILE)),
  ...listings.map(of(LIST)),
];

test.each(BROKEN.map((one) => [one.what, one] as const))('an answer is refused: %s', async (_, one) => {
  await expectFailure(one, SOAP);
});

afterAll(() => {
  // Bounded, not exact: the garbage of all of them together.
  expect(process.memoryUsage().rss - startBytes).toBeLessThan(500 * 1024 * 1024);
});
