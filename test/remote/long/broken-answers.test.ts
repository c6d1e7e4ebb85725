/** Answers that are broken in one way each, as raw bytes of HTTP: each is refused by the code of an error, in few words, and soon. */
import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, expect, test } from 'vitest';
import type { Remote } from '../../../src/agent/ports/server.ts';
import { type ErrorCode, JobtailError } from '../../../src/errors.ts';
import type { Operation } from '../../../src/operations.ts';
import type { HttpLimits } from '../../../src/remote/http/http-client.ts';
import { slowness, watchTurns } from '../../support/cpu-cost.ts';
import { entry, fileResponse, listResponse, partsResponse } from '../../support/wire-envelopes.ts';
import { createRemote, JOB, SESSION_CODE, TASK } from '../../support/wire-remote.ts';
import { createRest } from '../../support/wire-rest.ts';
import { startTcpServer, until } from '../../support/wire-server.ts';

const startBytes = process.memoryUsage().rss;
const PARTS: Operation = 'DownloadPartsOfJobFilesFromCluster';
const FILE: Operation = 'DownloadFileFromCluster';
const LIST: Operation = 'ListChangedFilesForJob';

interface Broken {
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

/** Whatever was called. */
type BrokenAnswer = Omit<Broken, 'operation'>;

const of =
  (operation: Operation) =>
  (broken: BrokenAnswer): Broken => ({ ...broken, operation });

type Headers = Readonly<Record<string, string | number>>;

/** An answer with its proper length. */
function answered(status: number, type: string, body: string | Buffer, headers: Headers = {}): Broken['serve'] {
  // Once: what a server does to answer is not the client's turn.
  const bytes = Buffer.from(body);
  return (socket) => {
    const typed = type === '' ? {} : { 'content-type': type };
    socket.write(head(status, { ...typed, 'content-length': bytes.length, ...headers }));
    socket.write(bytes);
  };
}

function head(status: number, headers: Headers): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Status\r\n${lines.join('')}\r\n`;
}

/** The beginning of an answer that will not be as long as it says. */
const longHead = (type: string, code = 200) => head(code, { 'content-type': type, 'content-length': 1_000_000_000 });

/** Writes `bytes` and then does nothing more. */
const only =
  (bytes: string): Broken['serve'] =>
  (socket) =>
    void socket.write(bytes);

/** Writes `start` and then `piece` again and again, with a pause if `everyMs` is given, until the client gives up. */
function forever(start: string, piece: string, everyMs = 0): Broken['serve'] {
  return (socket) => {
    socket.write(start);
    const timer = setInterval(() => {
      for (let room = true; room; ) room = socket.write(piece) && everyMs === 0 && !socket.destroyed;
    }, everyMs);
    socket.on('close', () => clearInterval(timer));
  };
}

/** A sound answer of a protocol, and what stands of it before its text. */
interface Sound {
  readonly type: string;
  readonly good: string;
  readonly beforeContent: string;
}

function brokenConnections({ type, good, beforeContent }: Sound): readonly BrokenAnswer[] {
  const begun = longHead(type) + beforeContent;
  const chunked = head(200, { 'content-type': type, 'transfer-encoding': 'chunked' });
  const chunk = `${chunked}${Buffer.byteLength(good).toString(16)}\r\n${good}\r\n`;
  return [
    broken('silence', 'timeout', () => undefined),
    broken('a short body', 'interrupted', (socket) => void socket.end(begun)),
    broken('a body cut between two chunks', 'interrupted', (socket) => void socket.end(chunk)),
    broken('a body that stalls behind its end', 'timeout', only(chunk)),
    broken(
      'a bomb of gzip',
      'malformed',
      answered(200, type, gzipSync(Buffer.alloc(50_000_000)), { 'content-encoding': 'gzip' }),
      'compressed',
    ),
    broken('gzip that does not say so', 'malformed', answered(200, type, gzipSync(good))),
  ];
}

function broken(what: string, code: BrokenAnswer['code'], serve: BrokenAnswer['serve'], says?: string): BrokenAnswer {
  return { what, code, serve, ...(says === undefined ? {} : { says }) };
}

interface Options {
  /** So few that small answers reach them. */
  readonly limits: HttpLimits;
  readonly maxSmallResponseBytes: number;
}

interface Connected {
  /** Makes the call that is to fail. */
  call(): Promise<unknown>;
  close(): Promise<void>;
}

interface Protocol {
  /** Whether these are the last bytes of a request. */
  readonly isEnd: (data: Buffer) => boolean;
  readonly connect: (url: string, options: Options, broken: Broken) => Connected;
}

const SHORT = { connectMs: 20_000, headersMs: 250, idleMs: 250, totalMs: 1500 };
/** Where something else is to be met first: on a busy machine, too. */
const LONG = { connectMs: 20_000, headersMs: 20_000, idleMs: 20_000, totalMs: 20_000 };

/** The call of an operation, with as little as it may have. */
function callOf(remote: Remote, operation: Broken['operation']): Promise<unknown> {
  const { signal } = new AbortController();
  if (operation === 'DownloadFileFromCluster') return remote.downloadFile(JOB, '/a', () => undefined, signal);
  if (operation === 'ListChangedFilesForJob') return remote.listChangedFiles(JOB, signal);
  return remote.readParts(JOB, [{ taskId: TASK, file: 'stdout', offset: 0 }], signal);
}

/** Makes the call and returns its failure and for how long the process could do nothing else, at most, in milliseconds. */
async function suffer(broken: Broken, { isEnd, connect }: Protocol): Promise<{ error: unknown; blockedMs: number }> {
  const server = await startTcpServer((socket) => socket.on('data', (data) => isEnd(data) && broken.serve(socket)));
  const limits = broken.code === 'timeout' ? SHORT : LONG;
  const connected = connect(server.url, { limits, maxSmallResponseBytes: 2 * 1024 * 1024 }, broken);
  try {
    const turns = watchTurns();
    const error = await connected.call().then(
      () => 'it succeeded',
      (thrown: unknown) => thrown,
    );
    const blockedMs = turns.longestMs();
    await until(() => server.open() <= 2);
    return { error, blockedMs };
  } finally {
    await connected.close();
    await server.close();
  }
}

/** Expects that the call fails as it should, in a few words, and soon. */
async function expectFailure(broken: Broken, protocol: Protocol): Promise<void> {
  let { error, blockedMs } = await suffer(broken, protocol);
  // The garbage of all before may be collected in any of them: only what blocks again and again is a defect.
  const { blocksMs = 100 } = broken;
  let limitMs = blocksMs;
  for (let again = 0; blockedMs > limitMs && again < 5; again += 1) {
    blockedMs = (await suffer(broken, protocol)).blockedMs;
    limitMs = blocksMs * Math.max(1, slowness());
  }
  expect(blockedMs).toBeLessThan(limitMs);
  if (!(error instanceof JobtailError)) throw new Error(`expected a JobtailError, got ${String(error)}`);
  expect(`${error.code}: ${error.message}`).toMatch(new RegExp(`^${broken.code}: `));
  expect(error.message).toContain(broken.says ?? '');
  expect(error.message.length).toBeLessThan(700);
  expect(JSON.stringify([error.message, error.hint, error.stack, error.cause])).not.toContain(SESSION_CODE);
  expect(error.cause).toBeUndefined();
}

const SOAP: Protocol = {
  isEnd: (data) => data.toString().endsWith(':Envelope>'),
  connect(url, options, { operation }) {
    const { remote, close } = createRemote(url, options);
    return { call: () => callOf(remote, operation), close };
  },
};

const REST: Protocol = {
  isEnd(data) {
    const text = data.toString();
    return text.endsWith('}') || (text.startsWith('GET ') && text.endsWith('\r\n\r\n'));
  },
  connect(url, options, { operation }) {
    const made = createRest(url, options);
    // Nothing of a broken answer is believed.
    const believed = () => expect(made.kept.has('rest-path')).toBe(false);
    return { call: () => callOf(made.remote, operation).finally(believed), close: made.close };
  },
};

function brokenOverSoap(): readonly Broken[] {
  const XML = 'text/xml; charset=utf-8';
  const LONG = longHead(XML);

  const good = partsResponse(entry('x'));
  const [beforeContent = ''] = partsResponse(entry('|')).split('|');
  const SOUND = { type: XML, good, beforeContent };

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

  const files: readonly BrokenAnswer[] = [
    broken(
      'base64 without end',
      'interrupted',
      (socket) => void socket.end(LONG + fileResponse('AAAA').slice(0, -200)),
    ),
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
  return [...connections.map(of(PARTS)), ...files.map(of(FILE)), ...listings.map(of(LIST))];
}

function brokenOverRest(): readonly Broken[] {
  const JSON_TYPE = 'application/json; charset=utf-8';
  const LONG = longHead(JSON_TYPE);

  const item = (content: string) =>
    `{"Content":${content},"RelativePath":"out","Offset":0,"FileType":3,"SubmittedTaskInfoId":9001}`;
  const good = `[${item('"x"')}]`;
  const [beforeContent = ''] = `[${item('"|"')}]`.split('|');
  const SOUND = { type: JSON_TYPE, good, beforeContent };
  const connections: readonly BrokenAnswer[] = [
    ...brokenConnections(SOUND),
    broken('white space without end', 'answer-too-large', forever(LONG, ' '.repeat(65_536))),
    broken('values without end', 'answer-too-large', forever(`${LONG}[[`, '0,'.repeat(5000))),
    broken('a name without end', 'answer-too-large', forever(`${LONG}[{"`, 'x'.repeat(65_536))),
    broken('a number without end', 'answer-too-large', forever(`${LONG}[`, '1'.repeat(65_536))),
  ];

  const files: readonly BrokenAnswer[] = [
    broken('base64 without end', 'interrupted', (socket) => void socket.end(`${LONG}"AAAA`)),
  ];

  const listings: readonly BrokenAnswer[] = [
    broken('names without end', 'answer-too-large', forever(`${LONG}[`, '"a",'.repeat(3000))),
    broken('files without end', 'answer-too-large', forever(`${LONG}[`, '{"FileName":"a"},'.repeat(3000))),
    broken('one name without end', 'answer-too-large', forever(`${LONG}["`, 'x'.repeat(65_536))),
    broken('bytes that trickle on and on', 'timeout', forever(LONG, ' '.repeat(1100), 10)),
  ];

  return [...connections.map(of(PARTS)), ...files.map(of(FILE)), ...listings.map(of(LIST))];
}

const ALL = [
  ...brokenOverSoap().map((one) => ['SOAP', one.what, one, SOAP] as const),
  ...brokenOverRest().map((one) => ['REST', one.what, one, REST] as const),
];

test.each(ALL)('an answer over %s is refused: %s', async (_, __, one, protocol) => {
  await expectFailure(one, protocol);
});

afterAll(() => {
  // Bounded, not exact: the garbage of all of them together.
  expect(process.memoryUsage().rss - startBytes).toBeLessThan(500 * 1024 * 1024);
});
