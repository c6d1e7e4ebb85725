/**
 * One HTTP exchange: reading its body, writing its answer with backpressure and as gzip on request, and spoiling it by
 * fault rules.
 */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { createGzip } from 'node:zlib';
import type { FaultRule } from './faults.ts';
import { HttpRefusal, ServiceFault } from './refusals.ts';

export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Fires when the client has gone, the answer is complete, or the sandbox closes. */
  readonly signal: AbortSignal;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Iterable<string> | AsyncIterable<string>;
}

/** Answers up to this size go out whole, with Content-Length; larger ones chunked, while they are made. */
const WHOLE_BYTES = 64 * 1024;

/** Rules that stand in for an answer; a reset with `afterBytes` lets it begin. */
const INSTEAD: ReadonlySet<FaultRule['kind']> = new Set(['fault', 'http', 'body', 'stall', 'hang', 'reset']);

/** Reads a request to its end. A longer one is read too, so that the client sees the 413 and not a broken pipe. */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length <= maxBytes) chunks.push(chunk);
    else chunks.length = 0;
  }
  if (length > maxBytes) throw new HttpRefusal(413);
  return Buffer.concat(chunks);
}

/** A media type in lower case and its parameters. */
export function readMediaType(line: string): { type: string; parameters: Map<string, string> } {
  const [type = '', ...rest] = line.split(/;(?=(?:[^"]*"[^"]*")*[^"]*$)/);
  const parameters = new Map<string, string>();
  for (const parameter of rest) {
    const match = /^\s*([^=\s]+)\s*=\s*(?:"([^"]*)"|([^"\s]*))\s*$/.exec(parameter);
    if (match) parameters.set((match[1] ?? '').toLowerCase(), match[2] ?? match[3] ?? '');
  }
  return { type: type.trim().toLowerCase(), parameters };
}

/** Sends a small answer. */
export function sendText(response: ServerResponse, { status, headers, body }: Answer & { body: string }): void {
  const bytes = Buffer.from(body);
  response.writeHead(status, { ...headers, 'content-length': bytes.length }).end(bytes);
}

/**
 * Sends an answer, changed by the rules that let it begin (drip, truncate, reset after some bytes). What its body
 * throws before the first bytes go out is thrown on; after that the connection is cut.
 */
export async function sendAnswer(exchange: Exchange, answer: Answer, rules: readonly FaultRule[]): Promise<void> {
  const { request, response } = exchange;
  const isGzip = answer.status !== 204 && /\bgzip\b/.test(String(request.headers['accept-encoding']));
  const pieces = isGzip ? gzipOf(answer.body) : bytesOf(answer.body);
  let sent = 0;
  try {
    const { head, complete } = await beginningOf(pieces);
    const cut = rules.find((rule) => rule.kind === 'truncate' || rule.kind === 'reset');
    const drip = rules.find((rule) => rule.kind === 'drip');
    const end = cut?.afterBytes ?? Number.POSITIVE_INFINITY;
    const announced = complete && !cut && answer.status !== 204 ? head.length : undefined;
    response.writeHead(answer.status, {
      ...answer.headers,
      ...(isGzip && { 'content-encoding': 'gzip' }),
      ...(announced !== undefined && { 'content-length': announced }),
    });
    for await (const piece of joined(head, pieces)) {
      const bytes = piece.subarray(0, end - sent);
      if (drip) await sendSlowly(exchange, bytes, drip);
      else await write(exchange, bytes);
      sent += bytes.length;
      if (sent >= end) break;
    }
    if (cut?.kind === 'reset') response.socket?.resetAndDestroy();
    else response.end();
  } finally {
    await pieces.return(undefined);
  }
}

/**
 * Applies the first rule that stands in for the answer, after the delay rules. True if there was one. `type` is the
 * media type of answers.
 */
export async function spoil(exchange: Exchange, rules: readonly FaultRule[], type: string): Promise<boolean> {
  const rule = rules.find(({ kind, ...effect }) => INSTEAD.has(kind) && !('afterBytes' in effect));
  if (rule === undefined) return false;
  await delay(exchange, rules);
  const { response, signal } = exchange;
  switch (rule.kind) {
    case 'fault':
      throw new ServiceFault(rule.text ?? 'Something went wrong.');
    case 'http':
      sendText(response, { status: rule.status, headers: rule.headers ?? {}, body: rule.body ?? '' });
      break;
    case 'body':
      response.writeHead(rule.status ?? 200, { 'content-type': rule.contentType ?? type });
      response.end(rule.body);
      break;
    case 'stall':
      response.writeHead(200, { 'content-type': type }).flushHeaders();
      await aborted(signal);
      break;
    case 'hang':
      await aborted(signal);
      break;
    case 'reset':
      response.socket?.resetAndDestroy();
      break;
  }
  return true;
}

/** Waits as long as the delay rules require. */
export async function delay({ signal }: Exchange, rules: readonly FaultRule[]): Promise<void> {
  for (const rule of rules) if (rule.kind === 'delay') await sleep(rule.ms, undefined, { signal });
}

async function* bytesOf(body: Answer['body']): AsyncGenerator<Buffer> {
  if (typeof body === 'string') yield Buffer.from(body);
  else for await (const piece of body) if (piece !== '') yield Buffer.from(piece);
}

async function* gzipOf(body: Answer['body']): AsyncGenerator<Buffer> {
  const gzip = createGzip();
  // A failure of the body reaches the reader through `gzip`.
  pipeline(bytesOf(body), gzip, () => undefined);
  yield* gzip as AsyncIterable<Buffer>;
}

async function beginningOf(pieces: AsyncGenerator<Buffer>): Promise<{ head: Buffer; complete: boolean }> {
  const chunks: Buffer[] = [];
  let length = 0;
  while (length < WHOLE_BYTES) {
    const { value, done } = await pieces.next();
    if (done === true) return { head: Buffer.concat(chunks), complete: true };
    chunks.push(value);
    length += value.length;
  }
  return { head: Buffer.concat(chunks), complete: false };
}

async function* joined(head: Buffer, pieces: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  yield head;
  yield* pieces;
}

async function sendSlowly(exchange: Exchange, bytes: Buffer, drip: FaultRule & { kind: 'drip' }): Promise<void> {
  for (let at = 0; at < bytes.length; at += drip.bytes) {
    await write(exchange, bytes.subarray(at, at + drip.bytes));
    await sleep(drip.everyMs, undefined, { signal: exchange.signal });
  }
}

async function write({ response, signal }: Exchange, bytes: Buffer): Promise<void> {
  signal.throwIfAborted();
  if (!response.write(bytes)) await once(response, 'drain', { signal });
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}
