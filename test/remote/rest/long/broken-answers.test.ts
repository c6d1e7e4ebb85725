/** Answers over REST that are broken in one way each, besides those that are whatever protocol is spoken. */
import { afterAll, expect, test } from 'vitest';
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
} from '../../../support/wire-broken-http.ts';
import { JOB } from '../../../support/wire-remote.ts';
import { createRest, type TestRest } from '../../../support/wire-rest.ts';
import { callOf, expectFailure, type Protocol } from '../../../support/wire-suffering.ts';

const startBytes = process.memoryUsage().rss;

const call = ({ remote, jobs }: TestRest, operation: Broken['operation']): Promise<unknown> =>
  operation === 'GetCurrentInfoForJob' ? jobs.getJob(JOB, new AbortController().signal) : callOf(remote, operation);

const REST: Protocol = {
  isEnd(data) {
    const text = data.toString();
    return text.endsWith('}') || (text.startsWith('GET ') && text.endsWith('\r\n\r\n'));
  },
  connect(url, options, { operation }) {
    const made = createRest(url, options);
    // Nothing of a broken answer is believed.
    const believed = () => expect(made.kept.has('rest-path')).toBe(false);
    return { call: () => call(made, operation).finally(believed), close: made.close };
  },
};

const JSON_TYPE = 'application/json; charset=utf-8';
const json = (body: string | Buffer) => answered(200, JSON_TYPE, body);
const problem = (code: number, fields: object) => answered(code, JSON_TYPE, JSON.stringify(fields));
const LONG = longHead(JSON_TYPE);

const entry = (content: string) =>
  `{"Content":${content},"RelativePath":"out","Offset":0,"FileType":3,"SubmittedTaskInfoId":9001}`;
const good = `[${entry('"x"')}]`;
const [beforeContent = ''] = `[${entry('"|"')}]`.split('|');
const SOUND = { type: JSON_TYPE, good, beforeContent };
const connections: readonly BrokenAnswer[] = [
  ...brokenConnections(SOUND),
  { what: 'white space without end', code: 'answer-too-large', serve: forever(LONG, ' '.repeat(65_536)) },
  { what: 'values without end', code: 'answer-too-large', serve: forever(`${LONG}[[`, '0,'.repeat(5000)) },
  { what: 'a name without end', code: 'answer-too-large', serve: forever(`${LONG}[{"`, 'x'.repeat(65_536)) },
  { what: 'a number without end', code: 'answer-too-large', serve: forever(`${LONG}[`, '1'.repeat(65_536)) },
];

const statuses: readonly BrokenAnswer[] = [
  ...brokenStatuses(SOUND),
  { what: 'an empty 200 of JSON', code: 'unexpected-answer', serve: json(''), says: 'empty' },
  { what: '400 with a string', code: 'fault', serve: answered(400, JSON_TYPE, '"No such job"'), says: 'No such job' },
  { what: '400 with plain text', code: 'http-status', serve: answered(400, 'text/plain', 'bad'), says: 'bad' },
  {
    what: '400 of the model',
    code: 'fault',
    serve: problem(400, { type: 'x', title: 'Validation', status: 400, traceId: '00-1', errors: { a: ['b'] } }),
    says: 'Validation',
  },
  {
    what: '400 of a connection',
    code: 'unavailable',
    serve: problem(400, { title: 'SSH Problem', detail: 'UnableToCreateConnection' }),
  },
  {
    what: '404 of ASP.NET',
    code: 'http-status',
    serve: problem(404, { title: 'Not Found', status: 404, traceId: '00-1' }),
  },
  { what: '413 with a problem', code: 'request-too-long', serve: problem(413, { title: 'x' }) },
  { what: '429', code: 'rate-limited', serve: answered(429, 'text/plain', 'API calls quota', { 'retry-after': 7 }) },
  { what: '500 with 1 MB of brackets', code: 'http-status', serve: answered(500, JSON_TYPE, '['.repeat(1_000_000)) },
  { what: '500 with half a problem', code: 'http-status', serve: answered(500, JSON_TYPE, '{"title":"x') },
  {
    what: '500 with a problem',
    code: 'fault',
    serve: problem(500, { title: 'Nothing', status: 500 }),
    says: 'Nothing',
  },
  { what: '502 of the cluster', code: 'unavailable', serve: problem(502, { title: 'Slurm Problem' }), says: 'Slurm' },
];

const types: readonly BrokenAnswer[] = [
  { what: 'a page of 1 MB', code: 'malformed', serve: answered(200, HTML, page(1_000_000)), says: 'page ("Sign in")' },
  { what: 'a page that says it is JSON', code: 'malformed', serve: json(page(1000)), says: 'page ("Sign in")' },
  { what: 'a page without type', code: 'malformed', serve: answered(200, '', '<html><title>Hi</title>'), says: '"Hi"' },
  { what: 'XML', code: 'malformed', serve: answered(200, 'text/xml', '<a/>'), says: 'text/xml' },
  { what: 'plain text', code: 'malformed', serve: answered(200, 'text/plain', good), says: 'text/plain' },
  { what: 'another encoding', code: 'malformed', serve: answered(200, 'application/json; charset=utf-16', good) },
  { what: 'UTF-16', code: 'malformed', serve: json(Buffer.from(`\uFEFF${good}`, 'utf16le')) },
];

const documents: readonly BrokenAnswer[] = [
  { what: 'an object', code: 'unexpected-answer', serve: json('{}') },
  { what: 'a problem with 200', code: 'unexpected-answer', serve: json('{"title":"x","status":500}') },
  { what: 'a string', code: 'unexpected-answer', serve: json('"x"') },
  { what: 'a list of strings', code: 'malformed', serve: json('["x"]') },
  { what: 'a content that is a number', code: 'malformed', serve: json(`[${entry('7')}]`) },
  { what: 'a content that is a list', code: 'malformed', serve: json(`[${entry('["x"]')}]`) },
  { what: 'a task that is an object', code: 'malformed', serve: json(good.replace('9001', '{}')) },
  { what: 'a path that is a list', code: 'malformed', serve: json(good.replace('"out"', '[]')) },
  { what: 'deep nesting', code: 'malformed', serve: json('['.repeat(1_000_000)) },
  { what: 'a name of 10 MB', code: 'answer-too-large', serve: json(`[{"${'n'.repeat(10_000_000)}":1}]`) },
  { what: 'a path of 10 MB', code: 'answer-too-large', serve: json(good.replace('out', 'x'.repeat(10_000_000))) },
  { what: 'a million entries', code: 'answer-too-large', serve: json(`[${'{},'.repeat(1_000_000)}{}]`) },
  { what: 'a million texts', code: 'answer-too-large', serve: json(`[${'{"Content":""},'.repeat(1_000_000)}{}]`) },
  { what: 'content of 30 MB without end', code: 'malformed', serve: json(beforeContent + 'x'.repeat(30_000_000)) },
];

const files: readonly BrokenAnswer[] = [
  { what: 'base64 without end', code: 'interrupted', serve: (socket) => void socket.end(`${LONG}"AAAA`) },
  { what: 'an object for a file', code: 'unexpected-answer', serve: json('{"a":"AAAA"}') },
  { what: 'a list for a file', code: 'unexpected-answer', serve: json('["AAAA"]') },
  { what: 'null for a file', code: 'not-found', serve: json('null') },
  { what: '204 for a file', code: 'not-found', serve: only('HTTP/1.1 204 No\r\n\r\n') },
];

const listings: readonly BrokenAnswer[] = [
  { what: 'a listing that is a name', code: 'unexpected-answer', serve: json('"a"') },
  { what: 'a listing of lists', code: 'malformed', serve: json('[["a"]]') },
  { what: 'names without end', code: 'answer-too-large', serve: forever(`${LONG}[`, '"a",'.repeat(3000)) },
  { what: 'files without end', code: 'answer-too-large', serve: forever(`${LONG}[`, '{"FileName":"a"},'.repeat(3000)) },
  { what: 'one name without end', code: 'answer-too-large', serve: forever(`${LONG}["`, 'x'.repeat(65_536)) },
  { what: 'bytes that trickle on and on', code: 'timeout', serve: forever(LONG, ' '.repeat(1100), 10) },
];

const jobs: readonly BrokenAnswer[] = [
  { what: 'a job that is a name', code: 'unexpected-answer', serve: json('"a"') },
  { what: 'a list of jobs for one', code: 'unexpected-answer', serve: json('[{"Id":501}]') },
  { what: 'another job', code: 'unexpected-answer', serve: json('{"Id":502}'), says: '502' },
  { what: 'half a job', code: 'malformed', serve: json('{"Id":501') },
  { what: 'null for a job', code: 'not-found', serve: json('null') },
];

const BROKEN: readonly Broken[] = [
  ...[...connections, ...statuses, ...types, ...documents].map(of('DownloadPartsOfJobFilesFromCluster')),
  ...files.map(of('DownloadFileFromCluster')),
  ...listings.map(of('ListChangedFilesForJob')),
  ...jobs.map(of('GetCurrentInfoForJob')),
];

test('there are enough of them', () => {
  expect(BROKEN.length).toBeGreaterThan(60);
});

test.each(BROKEN.map((broken) => [broken.what, broken] as const))('an answer is refused: %s', async (_, broken) => {
  await expectFailure(broken, REST);
});

afterAll(() => {
  // Bounded, not exact: the garbage of all of them together.
  expect(process.memoryUsage().rss - startBytes).toBeLessThan(500 * 1024 * 1024);
});
