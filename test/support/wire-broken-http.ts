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
    { what: 'silence', code: 'timeout', serve: () => undefined },
    { what: 'a short body', code: 'interrupted', serve: (socket) => void socket.end(begun) },
    { what: 'a body cut between two chunks', code: 'interrupted', serve: (socket) => void socket.end(chunk) },
    { what: 'a body that stalls behind its end', code: 'timeout', serve: only(chunk) },
    {
      what: 'a bomb of gzip',
      code: 'malformed',
      serve: answered(200, type, gzipSync(Buffer.alloc(50_000_000)), { 'content-encoding': 'gzip' }),
      says: 'compressed',
    },
    { what: 'gzip that does not say so', code: 'malformed', serve: answered(200, type, gzipSync(good)) },
  ];
}

export function brokenStatuses({ type, good }: Sound): readonly BrokenAnswer[] {
  const long = longHead(type, 500);
  return [
    { what: 'an empty 200', code: 'unexpected-answer', serve: status(200), says: 'empty' },
    { what: 'an empty 200 of HTML', code: 'unexpected-answer', serve: answered(200, HTML, ''), says: 'empty' },
    { what: '202', code: 'unexpected-answer', serve: status(202), says: '202' },
    { what: '206', code: 'unexpected-answer', serve: answered(206, type, good) },
    { what: '301', code: 'redirected', serve: status(301, { location: 'http://127.0.0.1:1/?secret' }) },
    { what: '307', code: 'redirected', serve: status(307, { location: '/' }) },
    { what: '308 with a body', code: 'redirected', serve: answered(308, HTML, page(1_000_000), { location: '/' }) },
    { what: '400', code: 'http-status', serve: status(400) },
    { what: '401', code: 'session-lost', serve: status(401) },
    { what: '403', code: 'session-lost', serve: answered(403, HTML, page(1000)), says: 'Sign in' },
    { what: '405', code: 'http-status', serve: status(405) },
    { what: '413', code: 'request-too-long', serve: status(413) },
    { what: '500', code: 'http-status', serve: status(500) },
    { what: '500 with a page of 1 MB', code: 'http-status', serve: answered(500, HTML, page(1_000_000)) },
    { what: '500 with a body that stalls', code: 'timeout', serve: only(long) },
    { what: '500 with a body without end', code: 'http-status', serve: forever(long, 'x'.repeat(65_536)) },
    { what: '503', code: 'unavailable', serve: status(503, { 'retry-after': 7 }) },
    { what: '504', code: 'unavailable', serve: status(504) },
  ];
}
