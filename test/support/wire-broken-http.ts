/** What is broken whatever protocol is spoken, as raw bytes of HTTP, and how a call fares with it. */
import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { expect } from 'vitest';
import type { Remote } from '../../src/agent/ports/server.ts';
import type { ErrorCode } from '../../src/errors.ts';
import { JobtailError } from '../../src/errors.ts';
import type { Operation } from '../../src/operations.ts';
import type { HttpLimits } from '../../src/remote/http/http-client.ts';
import { slowness, watchTurns } from './cpu-cost.ts';
import { JOB, SESSION_CODE, TASK } from './wire-remote.ts';
import { startTcpServer, until } from './wire-server.ts';

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

/** Whatever was called. */
export type BrokenAnswer = Omit<Broken, 'operation'>;

export const of =
  (operation: Operation) =>
  (broken: BrokenAnswer): Broken => ({ ...broken, operation });

type Headers = Readonly<Record<string, string | number>>;

/** An answer with its proper length. */
export function answered(status: number, type: string, body: string | Buffer, headers: Headers = {}): Broken['serve'] {
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

export const HTML = 'text/html';
export const status = (code: number, headers: Headers = {}) => answered(code, '', '', headers);

/** The beginning of an answer that will not be as long as it says. */
export const longHead = (type: string, code = 200) =>
  head(code, { 'content-type': type, 'content-length': 1_000_000_000 });

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

export const page = (size: number) =>
  `<!DOCTYPE html><html><head><title>Sign in</title></head>${'<p>text '.repeat(size / 8)}`;

/** A sound answer of a protocol, and what stands of it before its text. */
interface Sound {
  readonly type: string;
  readonly good: string;
  readonly beforeContent: string;
}

export function brokenConnections({ type, good, beforeContent }: Sound): readonly BrokenAnswer[] {
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

export function brokenStatuses({ type, good }: Sound): readonly BrokenAnswer[] {
  const long = longHead(type, 500);
  return [
    broken('an empty 200', 'unexpected-answer', status(200), 'empty'),
    broken('an empty 200 of HTML', 'unexpected-answer', answered(200, HTML, ''), 'empty'),
    broken('202', 'unexpected-answer', status(202), '202'),
    broken('206', 'unexpected-answer', answered(206, type, good)),
    broken('301', 'redirected', status(301, { location: 'http://127.0.0.1:1/?secret' })),
    broken('307', 'redirected', status(307, { location: '/' })),
    broken('308 with a body', 'redirected', answered(308, HTML, page(1_000_000), { location: '/' })),
    broken('400', 'http-status', status(400)),
    broken('401', 'session-lost', status(401)),
    broken('403', 'session-lost', answered(403, HTML, page(1000)), 'Sign in'),
    broken('405', 'http-status', status(405)),
    broken('413', 'request-too-long', status(413)),
    broken('500', 'http-status', status(500)),
    broken('500 with a page of 1 MB', 'http-status', answered(500, HTML, page(1_000_000))),
    broken('500 with a body that stalls', 'timeout', only(long)),
    broken('500 with a body without end', 'http-status', forever(long, 'x'.repeat(65_536))),
    broken('503', 'unavailable', status(503, { 'retry-after': 7 })),
    broken('504', 'unavailable', status(504)),
  ];
}

export function broken(
  what: string,
  code: BrokenAnswer['code'],
  serve: BrokenAnswer['serve'],
  says?: string,
): BrokenAnswer {
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

export interface Protocol {
  /** Whether these are the last bytes of a request. */
  readonly isEnd: (data: Buffer) => boolean;
  readonly connect: (url: string, options: Options, broken: Broken) => Connected;
}

const SHORT = { connectMs: 20_000, headersMs: 250, idleMs: 250, totalMs: 1500 };
/** Where something else is to be met first: on a busy machine, too. */
const LONG = { connectMs: 20_000, headersMs: 20_000, idleMs: 20_000, totalMs: 20_000 };

/** The call of an operation, with as little as it may have. */
export function callOf(remote: Remote, operation: Broken['operation']): Promise<unknown> {
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
export async function expectFailure(broken: Broken, protocol: Protocol): Promise<void> {
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
  const waits = error.code === 'rate-limited' || (error.code === 'unavailable' && broken.what === '503');
  expect(error.retryAfterMs).toBe(waits ? 7000 : undefined);
}
