/** What is broken whatever protocol is spoken, in one way each: connections and answers, as raw bytes of HTTP. */
import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import type { ErrorCode } from '../../src/errors.ts';
import type { Operation } from '../../src/operations.ts';

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
