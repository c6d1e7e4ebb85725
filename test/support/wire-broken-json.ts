/** Answers over REST that are broken in one way each, besides those that are whatever protocol is spoken. */
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
} from './wire-broken-http.ts';

const JSON_TYPE = 'application/json; charset=utf-8';
const json = (body: string | Buffer) => answered(200, JSON_TYPE, body);
const problem = (code: number, fields: object) => answered(code, JSON_TYPE, JSON.stringify(fields));
const LONG = longHead(JSON_TYPE);

const entry = (content: string) =>
  `{"Content":${content},"RelativePath":"out","Offset":0,"FileType":3,"SubmittedTaskInfoId":9001}`;
const good = `[${entry('"x"')}]`;
const [beforeContent = '', afterContent = ''] = `[${entry('"|"')}]`.split('|');
const SOUND = { type: JSON_TYPE, good, beforeContent };
const bytesIn = (...bytes: number[]) =>
  Buffer.concat([Buffer.from(beforeContent), Buffer.from(bytes), Buffer.from(afterContent)]);

const connections: readonly BrokenAnswer[] = [
  ...brokenConnections(SOUND),
  { what: 'white space without end', code: 'answer-too-large', serve: forever(LONG, ' '.repeat(65_536)) },
  { what: 'values without end', code: 'answer-too-large', serve: forever(`${LONG}[[`, '0,'.repeat(5000)) },
  { what: 'a name without end', code: 'answer-too-large', serve: forever(`${LONG}[{"`, 'x'.repeat(65_536)) },
  { what: 'a number without end', code: 'answer-too-large', serve: forever(`${LONG}[`, '1'.repeat(65_536)) },
];

const lost = 'Session code 0b8d1dd2-2bd3-4b0c-8f4e-3a5b6c7d8e9f is not valid';

const statuses: readonly BrokenAnswer[] = [
  ...brokenStatuses(SOUND),
  { what: 'an empty 200 of JSON', code: 'unexpected-answer', serve: json(''), says: 'empty' },
  { what: '400 with a string', code: 'fault', serve: answered(400, JSON_TYPE, '"No such job"'), says: 'No such job' },
  { what: '400 with plain text', code: 'http-status', serve: answered(400, 'text/plain', 'bad'), says: 'bad' },
  { what: '400 of a lost session', code: 'session-lost', serve: answered(400, JSON_TYPE, JSON.stringify(lost)) },
  {
    what: '400 of the model',
    code: 'fault',
    serve: problem(400, { type: 'x', title: 'Validation', status: 400, traceId: '00-1', errors: { a: ['b'] } }),
    says: 'Validation',
  },
  {
    what: '400 for a long request',
    code: 'request-too-long',
    serve: problem(400, { title: 'Request body too large' }),
  },
  {
    what: '400 of a connection',
    code: 'unavailable',
    serve: problem(400, { title: 'SSH Problem', detail: 'UnableToCreateConnection' }),
  },
  {
    what: '401 with a problem',
    code: 'session-lost',
    serve: problem(401, { title: 'Session Code Authentication Problem', detail: lost }),
    says: 'Session Code Authentication Problem',
  },
  { what: '404', code: 'http-status', serve: status(404) },
  {
    what: '404 of ASP.NET',
    code: 'http-status',
    serve: problem(404, { title: 'Not Found', status: 404, traceId: '00-1' }),
  },
  {
    what: '404 with a problem',
    code: 'fault',
    serve: problem(404, { title: 'Validation Problem', detail: 'No such job' }),
    says: 'Validation Problem: No such job',
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
  {
    what: '500 of a lost session',
    code: 'session-lost',
    serve: problem(500, { title: 'External Problem', detail: lost.replace('not valid', 'already expired') }),
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
  { what: 'a word', code: 'malformed', serve: json('undefined') },
  { what: 'half a document', code: 'malformed', serve: json(good.slice(0, -1)) },
  { what: 'two documents', code: 'malformed', serve: json(good + good) },
  { what: 'a comma at the end', code: 'malformed', serve: json(good.replace(']', ',]')) },
  { what: 'ends that do not match', code: 'malformed', serve: json(good.replace('}', ']')) },
  { what: 'two contents', code: 'malformed', serve: json(good.replace('{', '{"Content":"y",')) },
  { what: 'a content that is a number', code: 'malformed', serve: json(`[${entry('7')}]`) },
  { what: 'a content that is a list', code: 'malformed', serve: json(`[${entry('["x"]')}]`) },
  { what: 'an unknown escape', code: 'malformed', serve: json(`[${entry('"\\x41"')}]`) },
  { what: 'half a character', code: 'malformed', serve: json(`[${entry('"\\ud83d"')}]`), says: 'surrogate pair' },
  { what: 'bytes that are not UTF-8', code: 'malformed', serve: json(bytesIn(0xe9)) },
  { what: 'a raw line feed', code: 'malformed', serve: json(bytesIn(0x0a)) },
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
  { what: 'base64 with a wrong character', code: 'malformed', serve: json('"AA?A"') },
  { what: 'base64 with an end inside', code: 'malformed', serve: json('"AA==AAAA"') },
  { what: 'base64 of a wrong length', code: 'malformed', serve: json('"AAAAA"') },
  { what: 'base64 that does not end', code: 'malformed', serve: json('"AAAA') },
  { what: 'something behind a file', code: 'malformed', serve: json('"AAAA" "AAAA"') },
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

export const BROKEN_JSON: readonly Broken[] = [
  ...[...connections, ...statuses, ...types, ...documents].map(of('DownloadPartsOfJobFilesFromCluster')),
  ...files.map(of('DownloadFileFromCluster')),
  ...listings.map(of('ListChangedFilesForJob')),
  ...jobs.map(of('GetCurrentInfoForJob')),
];
