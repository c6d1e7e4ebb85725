/** Answers over REST that are broken in one way each, besides those that are whatever protocol is spoken. */
import { afterAll, expect, test } from 'vitest';
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
} from '../../../support/wire-broken-http.ts';
import { JOB } from '../../../support/wire-remote.ts';
import { createRest, type TestRest } from '../../../support/wire-rest.ts';

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
  broken('white space without end', 'answer-too-large', forever(LONG, ' '.repeat(65_536))),
  broken('values without end', 'answer-too-large', forever(`${LONG}[[`, '0,'.repeat(5000))),
  broken('a name without end', 'answer-too-large', forever(`${LONG}[{"`, 'x'.repeat(65_536))),
  broken('a number without end', 'answer-too-large', forever(`${LONG}[`, '1'.repeat(65_536))),
];

const statuses: readonly BrokenAnswer[] = [
  ...brokenStatuses(SOUND),
  broken('an empty 200 of JSON', 'unexpected-answer', json(''), 'empty'),
  broken('400 with a string', 'fault', answered(400, JSON_TYPE, '"No such job"'), 'No such job'),
  broken('400 with plain text', 'http-status', answered(400, 'text/plain', 'bad'), 'bad'),
  broken(
    '400 of the model',
    'fault',
    problem(400, { type: 'x', title: 'Validation', status: 400, traceId: '00-1', errors: { a: ['b'] } }),
    'Validation',
  ),
  broken(
    '400 of a connection',
    'unavailable',
    problem(400, { title: 'SSH Problem', detail: 'UnableToCreateConnection' }),
  ),
  broken('404 of ASP.NET', 'http-status', problem(404, { title: 'Not Found', status: 404, traceId: '00-1' })),
  broken('413 with a problem', 'request-too-long', problem(413, { title: 'x' })),
  broken('429', 'rate-limited', answered(429, 'text/plain', 'API calls quota', { 'retry-after': 7 })),
  broken('500 with 1 MB of brackets', 'http-status', answered(500, JSON_TYPE, '['.repeat(1_000_000))),
  broken('500 with half a problem', 'http-status', answered(500, JSON_TYPE, '{"title":"x')),
  broken('500 with a problem', 'fault', problem(500, { title: 'Nothing', status: 500 }), 'Nothing'),
  broken('502 of the cluster', 'unavailable', problem(502, { title: 'Slurm Problem' }), 'Slurm'),
];

const types: readonly BrokenAnswer[] = [
  broken('a page of 1 MB', 'malformed', answered(200, HTML, page(1_000_000)), 'page ("Sign in")'),
  broken('a page that says it is JSON', 'malformed', json(page(1000)), 'page ("Sign in")'),
  broken('a page without type', 'malformed', answered(200, '', '<html><title>Hi</title>'), '"Hi"'),
  broken('XML', 'malformed', answered(200, 'text/xml', '<a/>'), 'text/xml'),
  broken('plain text', 'malformed', answered(200, 'text/plain', good), 'text/plain'),
  broken('another encoding', 'malformed', answered(200, 'application/json; charset=utf-16', good)),
  broken('UTF-16', 'malformed', json(Buffer.from(`\uFEFF${good}`, 'utf16le'))),
];

const documents: readonly BrokenAnswer[] = [
  broken('an object', 'unexpected-answer', json('{}')),
  broken('a problem with 200', 'unexpected-answer', json('{"title":"x","status":500}')),
  broken('a string', 'unexpected-answer', json('"x"')),
  broken('a list of strings', 'malformed', json('["x"]')),
  broken('a content that is a number', 'malformed', json(`[${entry('7')}]`)),
  broken('a content that is a list', 'malformed', json(`[${entry('["x"]')}]`)),
  broken('a task that is an object', 'malformed', json(good.replace('9001', '{}'))),
  broken('a path that is a list', 'malformed', json(good.replace('"out"', '[]'))),
  broken('deep nesting', 'malformed', json('['.repeat(1_000_000))),
  broken('a name of 10 MB', 'answer-too-large', json(`[{"${'n'.repeat(10_000_000)}":1}]`)),
  broken('a path of 10 MB', 'answer-too-large', json(good.replace('out', 'x'.repeat(10_000_000)))),
  broken('a million entries', 'answer-too-large', json(`[${'{},'.repeat(1_000_000)}{}]`)),
  broken('a million texts', 'answer-too-large', json(`[${'{"Content":""},'.repeat(1_000_000)}{}]`)),
  broken('content of 30 MB without end', 'malformed', json(beforeContent + 'x'.repeat(30_000_000))),
];

const files: readonly BrokenAnswer[] = [
  broken('base64 without end', 'interrupted', (socket) => void socket.end(`${LONG}"AAAA`)),
  broken('an object for a file', 'unexpected-answer', json('{"a":"AAAA"}')),
  broken('a list for a file', 'unexpected-answer', json('["AAAA"]')),
  broken('null for a file', 'not-found', json('null')),
  broken('204 for a file', 'not-found', only('HTTP/1.1 204 No\r\n\r\n')),
];

const listings: readonly BrokenAnswer[] = [
  broken('a listing that is a name', 'unexpected-answer', json('"a"')),
  broken('a listing of lists', 'malformed', json('[["a"]]')),
  broken('names without end', 'answer-too-large', forever(`${LONG}[`, '"a",'.repeat(3000))),
  broken('files without end', 'answer-too-large', forever(`${LONG}[`, '{"FileName":"a"},'.repeat(3000))),
  broken('one name without end', 'answer-too-large', forever(`${LONG}["`, 'x'.repeat(65_536))),
  broken('bytes that trickle on and on', 'timeout', forever(LONG, ' '.repeat(1100), 10)),
];

const jobs: readonly BrokenAnswer[] = [
  broken('a job that is a name', 'unexpected-answer', json('"a"')),
  broken('a list of jobs for one', 'unexpected-answer', json('[{"Id":501}]')),
  broken('another job', 'unexpected-answer', json('{"Id":502}'), '502'),
  broken('half a job', 'malformed', json('{"Id":501')),
  broken('null for a job', 'not-found', json('null')),
];

const BROKEN: readonly Broken[] = [
  ...[...connections, ...statuses, ...types, ...documents].map(of('DownloadPartsOfJobFilesFromCluster')),
  ...files.map(of('DownloadFileFromCluster')),
  ...listings.map(of('ListChangedFilesForJob')),
  ...jobs.map(of('GetCurrentInfoForJob')),
];

test.each(BROKEN.map((one) => [one.what, one] as const))('an answer is refused: %s', async (_, one) => {
  await expectFailure(one, REST);
});

afterAll(() => {
  // Bounded, not exact: the garbage of all of them together.
  expect(process.memoryUsage().rss - startBytes).toBeLessThan(500 * 1024 * 1024);
});
