/** One HTTP request with a SOAP envelope and its answer, read while it arrives. */
import { JobtailError } from '../../errors.ts';
import type { HttpAnswer, HttpClient } from '../http/http-client.ts';
import { EnoughRead, type Lifted } from './answer/lifted.ts';
import { AnswerScanner, type Rest } from './answer/scanner.ts';
import { malformed, unexpected } from './malformed.ts';
import { type RefusedCall, refusalError } from './refusals.ts';

/** How much of an answer that is no success is looked at. */
const MAX_REFUSAL_BYTES = 256 * 1024;
const MAX_TITLE_LENGTH = 100;

export interface Exchange extends RefusedCall {
  readonly http: HttpClient;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly namespace: string;
  readonly lifted: Lifted | undefined;
  /** Bytes of the answer allowed besides the lifted texts. */
  readonly maxBytes: number;
  /** Instead of the HTTP client's own limit. */
  readonly totalMs: number | undefined;
  readonly signal: AbortSignal;
  /** Counts the bytes of the answer, also of one that ends in an error. */
  readonly count: { bytes: number };
}

/** What came back: an envelope without its lifted texts. With a status other than 200 it is no success. */
export interface Envelope extends Rest {
  readonly status: number;
  readonly retryAfterMs: number | undefined;
}

/**
 * Sends `xml` and reads the answer.
 * @throws EnoughRead if the lifted texts want no more
 * @throws JobtailError whatever the HTTP client throws; redirected, unexpected-answer, malformed, answer-too-large;
 * the error for the status if that is no success and the answer no SOAP
 */
export async function exchange(xml: string, call: Exchange): Promise<Envelope> {
  const { http, url, headers, signal, totalMs } = call;
  const answer = await http.request({ method: 'POST', url, headers, body: xml, signal, totalMs });
  const { status, retryAfterMs } = answer;
  if (status === 200) return { status, retryAfterMs, ...(await readSuccess(answer, call)) };
  if (status >= 400) return { status, retryAfterMs, ...(await readRefusal(answer, call)) };
  await answer.body[Symbol.asyncIterator]().return?.();
  if (status < 300) throw unexpected(`its status is ${status} instead of 200`);
  throw new JobtailError('redirected', `the service answered ${call.operation} with status ${status}`, {
    hint: 'redirects are not followed: put the final address into service.fileTransferUrl',
  });
}

async function readSuccess(answer: HttpAnswer, call: Exchange): Promise<Rest> {
  if (!isXml(answer.contentType)) {
    const head = await readHead(answer, call);
    if (head.length === 0) throw unexpected('it is empty');
    throw isWebPage(answer, head)
      ? webPage(head, call)
      : malformed(`it is ${call.secrets.safeText(answer.contentType)} and no SOAP envelope`);
  }
  if (!['', 'utf-8', 'utf8', 'us-ascii'].includes(answer.charset)) throw malformed('its encoding is not UTF-8');
  const scanner = new AnswerScanner(call);
  let head: Buffer | undefined;
  try {
    for await (const chunk of answer.body) {
      head ??= chunk;
      call.count.bytes += chunk.length;
      scanner.push(chunk);
      await call.lifted?.flush();
      if (call.lifted?.hasEnough) throw new EnoughRead();
    }
    return scanner.finish();
  } catch (error) {
    const isDamage = error instanceof JobtailError && error.code === 'malformed';
    throw isDamage && head !== undefined && isWebPage(answer, head) ? webPage(head, call) : error;
  }
}

/** The rest of an envelope that came with a status other than 200, most likely a fault. */
async function readRefusal(answer: HttpAnswer, call: Exchange): Promise<Rest> {
  const head = await readHead(answer, call);
  if (isXml(answer.contentType)) {
    const scanner = new AnswerScanner({
      operation: call.operation,
      namespace: call.namespace,
      maxBytes: call.maxBytes,
      secrets: call.secrets,
    });
    try {
      scanner.push(head);
      return scanner.finish();
    } catch {
      // No envelope, so the status alone says what happened.
    }
  }
  const { status, retryAfterMs } = answer;
  const words = isWebPage(answer, head) ? titleOf(head) : isXml(answer.contentType) ? '' : head.toString();
  throw refusalError({ status, retryAfterMs, words, isFault: false }, call);
}

async function readHead(answer: HttpAnswer, call: Exchange): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of answer.body) {
    call.count.bytes += chunk.length;
    chunks.push(chunk);
    length += chunk.length;
    if (length >= MAX_REFUSAL_BYTES) break;
  }
  return Buffer.concat(chunks, length);
}

/** Some servers send no content type; then the text itself must show that it is XML. */
function isXml(contentType: string): boolean {
  return /^(?:|text\/xml|application\/xml|application\/soap\+xml)$/.test(contentType);
}

function isWebPage(answer: HttpAnswer, head: Buffer): boolean {
  if (answer.contentType === 'text/html' || answer.contentType === 'application/xhtml+xml') return true;
  return /^\s*<(?:!doctype\s+html|html)\b/i.test(head.toString('latin1', 0, 1024));
}

function webPage(head: Buffer, call: Exchange): JobtailError {
  const title = call.secrets.safeText(titleOf(head), MAX_TITLE_LENGTH);
  return new JobtailError('malformed', `the answer is a web page${title === '' ? '' : ` ("${title}")`}`, {
    hint: 'a proxy or sign-in page stands in the way, or service.fileTransferUrl is the address of something else',
  });
}

function titleOf(head: Buffer): string {
  return /<title[^<>]{0,200}>([^<]{0,1000})/i.exec(head.toString('utf8', 0, 64 * 1024))?.[1]?.trim() ?? '';
}
