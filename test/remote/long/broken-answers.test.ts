/** Answers that are broken in one way each, as raw bytes of HTTP: each is refused by the code of an error, in few words, and soon. */
import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, expect, test } from 'vitest';
import type { Remote } from '../../../src/agent/ports/server.ts';
import { type ErrorCode, JobtailError } from '../../../src/errors.ts';
import { slowness, watchTurns } from '../../support/cpu-cost.ts';
import { entry, fileResponse, listResponse, partsResponse } from '../../support/wire-envelopes.ts';
import { createRemote, JOB, SESSION_CODE, TASK } from '../../support/wire-remote.ts';
import { createRest } from '../../support/wire-rest.ts';
import { startTcpServer, until } from '../../support/wire-server.ts';

const startBytes = process.memoryUsage().rss;

/** What a service does with the connection once a request has come. */
type Serve = (socket: Socket) => void;

interface More {
  /** Seen in the message, besides. */
  readonly says?: string;
  /** How long it may keep the event loop from turning, in milliseconds of processor time; 100 if left out. */
  readonly blocksMs?: number;
}

type Broken = readonly [what: string, code: ErrorCode, serve: Serve, more?: More];

type Headers = Readonly<Record<string, string | number>>;

function head(headers: Headers): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 200 Status\r\n${lines.join('')}\r\n`;
}

/** The beginning of an answer that will not be as long as it says. */
const longHead = (type: string) => head({ 'content-type': type, 'content-length': 1_000_000_000 });

/** An answer with its proper length, in gzip. */
const answered =
  (type: string, bytes: Buffer, headers: Headers = {}): Serve =>
  (socket) => {
    socket.write(head({ 'content-type': type, 'content-length': bytes.length, ...headers }));
    socket.write(bytes);
  };

/** Writes `bytes`, and then does nothing more, or ends. */
const only =
  (bytes: string): Serve =>
  (socket) =>
    void socket.write(bytes);
const ended =
  (bytes: string): Serve =>
  (socket) =>
    void socket.end(bytes);

/** Writes `start` and then `piece` again and again, with a pause if `everyMs` is given, until the client gives up. */
function forever(start: string, piece: string, everyMs = 0): Serve {
  return (socket) => {
    socket.write(start);
    const timer = setInterval(() => {
      for (let room = true; room; ) room = socket.write(piece) && everyMs === 0 && !socket.destroyed;
    }, everyMs);
    socket.on('close', () => clearInterval(timer));
  };
}

/** Of an answer of `good`, in which the text comes after `beforeContent`. */
function brokenConnections(type: string, good: string, beforeContent: string): readonly Broken[] {
  const chunked = head({ 'content-type': type, 'transfer-encoding': 'chunked' });
  const chunk = `${chunked}${Buffer.byteLength(good).toString(16)}\r\n${good}\r\n`;
  const bomb = answered(type, gzipSync(Buffer.alloc(50_000_000)), { 'content-encoding': 'gzip' });
  return [
    ['silence', 'timeout', () => undefined],
    ['a short body', 'interrupted', ended(longHead(type) + beforeContent)],
    ['a body cut between two chunks', 'interrupted', ended(chunk)],
    ['a body that stalls behind its end', 'timeout', only(chunk)],
    ['a bomb of gzip', 'malformed', bomb, { says: 'compressed' }],
    ['gzip that does not say so', 'malformed', answered(type, gzipSync(good))],
  ];
}

const X = 'x'.repeat(65_536);
const BLANKS = ' '.repeat(65_536);

function brokenOverSoap(): Cases {
  const type = 'text/xml; charset=utf-8';
  const LONG = longHead(type);
  const [beforeContent = ''] = partsResponse(entry('|')).split('|');
  const beforeName = LONG + listResponse('|').split('|')[0];
  const inResult = LONG + beforeContent.replace(/<JobFileContentExt>.*/, '');
  const elements = forever(LONG + beforeContent.replace('<content>', ''), '<a/>'.repeat(5000));
  return {
    parts: [
      ...brokenConnections(type, partsResponse(entry('x')), beforeContent),
      ['a header that drips', 'timeout', forever('HTTP/1.1 200 OK\r\nx: ', 'x', 10)],
      // undici makes an error of each name and value of the chunk (64 KiB at most) in which the header became too long.
      [
        'a header without end',
        'malformed',
        forever('HTTP/1.1 200 OK\r\n', 'x: y\r\n'.repeat(500)),
        { blocksMs: 2_000 },
      ],
      ['white space without end', 'answer-too-large', forever(inResult, BLANKS)],
      ['a comment without end', 'malformed', forever(`${LONG}<!--`, X)],
      ['elements without end', 'answer-too-large', elements],
      ['a tag without end', 'malformed', forever(`${LONG}<a b="`, X)],
    ],
    file: [['base64 without end', 'interrupted', ended(LONG + fileResponse('AAAA').slice(0, -200))]],
    list: [
      ['names without end', 'answer-too-large', forever(beforeName, '<string>a</string>'.repeat(3000))],
      ['a name without end', 'answer-too-large', forever(`${beforeName}<string>`, X)],
      ['bytes that trickle on and on', 'timeout', forever(LONG, ' '.repeat(1100), 10)],
    ],
  };
}

function brokenOverRest(): Cases {
  const type = 'application/json; charset=utf-8';
  const LONG = longHead(type);
  const good = '[{"Content":"x","RelativePath":"out","Offset":0,"FileType":3,"SubmittedTaskInfoId":9001}]';
  return {
    parts: [
      ...brokenConnections(type, good, '[{"Content":"'),
      ['white space without end', 'answer-too-large', forever(LONG, BLANKS)],
      ['values without end', 'answer-too-large', forever(`${LONG}[[`, '0,'.repeat(5000))],
      ['a name without end', 'answer-too-large', forever(`${LONG}[{"`, X)],
      ['a number without end', 'answer-too-large', forever(`${LONG}[`, '1'.repeat(65_536))],
    ],
    file: [['base64 without end', 'interrupted', ended(`${LONG}"AAAA`)]],
    list: [
      ['names without end', 'answer-too-large', forever(`${LONG}[`, '"a",'.repeat(3000))],
      ['files without end', 'answer-too-large', forever(`${LONG}[`, '{"FileName":"a"},'.repeat(3000))],
      ['one name without end', 'answer-too-large', forever(`${LONG}["`, X)],
      ['bytes that trickle on and on', 'timeout', forever(LONG, ' '.repeat(1100), 10)],
    ],
  };
}

const { signal } = new AbortController();
const CALLS = {
  parts: (remote: Remote) => remote.readParts(JOB, [{ taskId: TASK, file: 'stdout', offset: 0 }], signal),
  file: (remote: Remote) => remote.downloadFile(JOB, '/a', () => undefined, signal),
  list: (remote: Remote) => remote.listChangedFiles(JOB, signal),
};
type Cases = Readonly<Record<keyof typeof CALLS, readonly Broken[]>>;

const SHORT = { connectMs: 20_000, headersMs: 250, idleMs: 250, totalMs: 1500 };
/** Where something else is to be met first: on a busy machine, too. */
const LONG = { connectMs: 20_000, headersMs: 20_000, idleMs: 20_000, totalMs: 20_000 };

/** Whether these are the last bytes of a request, in either protocol. */
const isEnd = (text: string) => /:Envelope>$|\}$/.test(text) || (text.startsWith('GET ') && text.endsWith('\r\n\r\n'));

type Connect = (
  url: string,
  options: object,
) => {
  readonly remote: Remote;
  readonly kept?: ReadonlyMap<string, string>;
  close(): Promise<void>;
};

/** Makes the call and returns its failure and for how long the process could do nothing else, at most, in milliseconds. */
async function suffer([, code, serve]: Broken, call: keyof typeof CALLS, connect: Connect) {
  const server = await startTcpServer((socket) => socket.on('data', (data) => isEnd(String(data)) && serve(socket)));
  const limits = code === 'timeout' ? SHORT : LONG;
  // So few that small answers reach them.
  const { remote, kept, close } = connect(server.url, { limits, maxSmallResponseBytes: 2 * 1024 * 1024 });
  try {
    const turns = watchTurns();
    const error: unknown = await CALLS[call](remote).then(
      () => 'it succeeded',
      (thrown: unknown) => thrown,
    );
    const blockedMs = turns.longestMs();
    await until(() => server.open() <= 2);
    expect(kept?.has('rest-path') ?? false, 'nothing of a broken answer is believed').toBe(false);
    return { error, blockedMs };
  } finally {
    await close();
    await server.close();
  }
}

const ALL = Object.entries({ SOAP: [brokenOverSoap(), createRemote], REST: [brokenOverRest(), createRest] } as const);

test.each(
  ALL.flatMap(([protocol, [cases, connect]]) =>
    (Object.keys(CALLS) as (keyof Cases)[]).flatMap((call) =>
      cases[call].map((broken) => [protocol, broken[0], broken, call, connect] as const),
    ),
  ),
)('an answer over %s is refused: %s', async (_, __, broken, call, connect) => {
  let { error, blockedMs } = await suffer(broken, call, connect);
  // The garbage of all before may be collected in any of them: only what blocks again and again is a defect.
  const [, code, , { says = '', blocksMs = 100 } = {}] = broken;
  let limitMs = blocksMs;
  for (let again = 0; blockedMs > limitMs && again < 5; again += 1) {
    blockedMs = (await suffer(broken, call, connect)).blockedMs;
    limitMs = blocksMs * Math.max(1, slowness());
  }
  expect(blockedMs).toBeLessThan(limitMs);
  if (!(error instanceof JobtailError)) throw new Error(`expected a JobtailError, got ${String(error)}`);
  expect(`${error.code}: ${error.message}`).toMatch(new RegExp(`^${code}: `));
  expect(error.message).toContain(says);
  expect(error.message.length).toBeLessThan(700);
  expect(JSON.stringify([error.message, error.hint, error.stack, error.cause])).not.toContain(SESSION_CODE);
  expect(error.cause).toBeUndefined();
});

afterAll(() => {
  // Bounded, not exact: the garbage of all of them together.
  expect(process.memoryUsage().rss - startBytes).toBeLessThan(500 * 1024 * 1024);
});
