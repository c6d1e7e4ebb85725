/** Answers that are broken in one way each, as raw bytes of HTTP: each is refused by the code of an error, in few words, and soon. */
import type { Socket } from 'node:net';
import { afterAll, expect, test } from 'vitest';
import type { Remote } from '../../../src/agent/ports/server.ts';
import { type ErrorCode, JobtailError } from '../../../src/errors.ts';
import { slowness, watchTurns } from '../../support/cpu-cost.ts';
import { entry, fileResponse, listResponse, partsResponse } from '../../support/wire-envelopes.ts';
import { createRemote, JOB, SESSION_CODE, TASK } from '../../support/wire-remote.ts';
import { createRest } from '../../support/wire-rest.ts';
import { startTcpServer, until } from '../../support/wire-server.ts';

const startBytes = process.memoryUsage().rss;

const TYPES = { SOAP: 'text/xml; charset=utf-8', REST: 'application/json; charset=utf-8' };
const [beforeContent = ''] = partsResponse(entry('|')).split('|');
const [beforeName = ''] = listResponse('|').split('|');
const inResult = beforeContent.replace(/<JobFileContentExt>.*/, '');
const X = 'x'.repeat(65_536);
const BLANKS = ' '.repeat(65_536);

/** What comes after a header that announces very much: a beginning, and a piece again and again; `drips`: with pauses. */
type Broken = readonly [
  call: keyof typeof CALLS,
  what: string,
  code: ErrorCode,
  start: string,
  piece: string,
  how?: string,
];

const SOAP: readonly Broken[] = [
  ['parts', 'a header that drips', 'timeout', 'HTTP/1.1 200 OK\r\nx: ', 'x', 'drips'],
  // undici makes an error of each name and value of the chunk (64 KiB at most) in which the header became too long.
  ['parts', 'a header without end', 'malformed', 'HTTP/1.1 200 OK\r\n', 'x: y\r\n'.repeat(500), 'blocks'],
  ['parts', 'white space without end', 'answer-too-large', inResult, BLANKS],
  ['parts', 'a comment without end', 'malformed', '<!--', X],
  ['parts', 'elements without end', 'answer-too-large', beforeContent.replace('<content>', ''), '<a/>'.repeat(5000)],
  ['parts', 'a tag without end', 'malformed', '<a b="', X],
  ['parts', 'a short body', 'interrupted', beforeContent, ''],
  ['file', 'a short file', 'interrupted', fileResponse('AAAA').slice(0, -200), ''],
  ['list', 'names without end', 'answer-too-large', beforeName, '<string>a</string>'.repeat(3000)],
  ['list', 'a name without end', 'answer-too-large', `${beforeName}<string>`, X],
  ['list', 'bytes that trickle on and on', 'timeout', '', ' '.repeat(1100), 'drips'],
];
const REST: readonly Broken[] = [
  ['parts', 'white space without end', 'answer-too-large', '', BLANKS],
  ['parts', 'values without end', 'answer-too-large', '[[', '0,'.repeat(5000)],
  ['parts', 'a name without end', 'answer-too-large', '[{"', X],
  ['parts', 'a number without end', 'answer-too-large', '[', '1'.repeat(65_536)],
  ['parts', 'a short body', 'interrupted', '[{"Content":"', ''],
  ['file', 'a short file', 'interrupted', '"AAAA', ''],
  ['list', 'names without end', 'answer-too-large', '[', '"a",'.repeat(3000)],
  ['list', 'files without end', 'answer-too-large', '[', '{"FileName":"a"},'.repeat(3000)],
  ['list', 'one name without end', 'answer-too-large', '["', X],
  ['list', 'bytes that trickle on and on', 'timeout', '', ' '.repeat(1100), 'drips'],
];

const { signal } = new AbortController();
const CALLS = {
  parts: (remote: Remote) => remote.readParts(JOB, [{ taskId: TASK, file: 'stdout', offset: 0 }], signal),
  file: (remote: Remote) => remote.downloadFile(JOB, '/a', () => undefined, signal),
  list: (remote: Remote) => remote.listChangedFiles(JOB, signal),
};

const SHORT = { connectMs: 20_000, headersMs: 250, idleMs: 250, totalMs: 1500 };
/** Where something else is to be met first: on a busy machine, too. */
const LONG = { connectMs: 20_000, headersMs: 20_000, idleMs: 20_000, totalMs: 20_000 };

/** Whether these are the last bytes of a request, in either protocol. */
const isEnd = (text: string) => /:Envelope>$|\}$/.test(text) || (text.startsWith('GET ') && text.endsWith('\r\n\r\n'));

type Connect = typeof createRemote | typeof createRest;

/** Makes the call and returns its failure and for how long the process could do nothing else, at most, in milliseconds. */
async function suffer(type: string, [call, , code, start, piece, how]: Broken, connect: Connect) {
  const head = `HTTP/1.1 200 Status\r\ncontent-type: ${type}\r\ncontent-length: 1000000000\r\n\r\n`;
  const answer = (socket: Socket) => {
    socket.write(start.startsWith('HTTP/') ? start : head + start);
    if (piece === '') return void socket.end();
    const timer = setInterval(
      () => {
        for (let room = true; room; ) room = socket.write(piece) && how !== 'drips' && !socket.destroyed;
      },
      how === 'drips' ? 10 : 0,
    );
    socket.on('close', () => clearInterval(timer));
  };
  const server = await startTcpServer((socket) => socket.on('data', (data) => isEnd(String(data)) && answer(socket)));
  // So few bytes that small answers reach them.
  const limits = { limits: code === 'timeout' ? SHORT : LONG, maxSmallResponseBytes: 2 * 1024 * 1024 };
  const { remote, close, ...more } = connect(server.url, limits);
  try {
    const turns = watchTurns();
    const error: unknown = await CALLS[call](remote).then(
      () => 'it succeeded',
      (thrown: unknown) => thrown,
    );
    const blockedMs = turns.longestMs();
    await until(() => server.open() <= 2);
    if ('kept' in more) expect(more.kept.has('rest-path'), 'nothing of a broken answer is believed').toBe(false);
    return { error, blockedMs };
  } finally {
    await close();
    await server.close();
  }
}

const ALL = Object.entries({ SOAP: [SOAP, createRemote], REST: [REST, createRest] } as const).flatMap(
  ([protocol, [cases, connect]]) =>
    cases.map((broken) => [protocol as keyof typeof TYPES, broken[1], broken, connect] as const),
);

test.each(ALL)('an answer over %s is refused: %s', async (protocol, _, broken, connect) => {
  const [, , code, , , how] = broken;
  const first = await suffer(TYPES[protocol], broken, connect);
  const usualMs = how === 'blocks' ? 2_000 : 100;
  let [limitMs, blockedMs] = [usualMs, first.blockedMs];
  // The garbage of all before may be collected in any of them: only what blocks again and again is a defect.
  for (let again = 0; blockedMs > limitMs && again < 5; again += 1) {
    blockedMs = (await suffer(TYPES[protocol], broken, connect)).blockedMs;
    limitMs = usualMs * Math.max(1, slowness());
  }
  expect(blockedMs).toBeLessThan(limitMs);
  const { error } = first;
  if (!(error instanceof JobtailError)) throw new Error(`expected a JobtailError, got ${String(error)}`);
  expect(error.code, error.message).toBe(code);
  expect(error.message.length).toBeLessThan(700);
  expect(JSON.stringify([error.message, error.hint, error.stack])).not.toContain(SESSION_CODE);
  expect(error.cause).toBeUndefined();
});

afterAll(() => {
  // Bounded, not exact: the garbage of all of them together.
  expect(process.memoryUsage().rss - startBytes).toBeLessThan(500 * 1024 * 1024);
});
