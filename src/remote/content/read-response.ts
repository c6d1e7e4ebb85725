/** Reads a response of SOAP or REST: a success while it arrives, a refusal up to a limit, or a web page. */
import { JobtailError } from '../../errors.ts';
import { isIdempotent, type Operation } from '../../operations.ts';
import type { Secrets } from '../../redact.ts';
import { type HttpMessage, type HttpResponse, readRefusal } from '../http/http-client.ts';
import type { Count, ServiceCallsOptions } from '../session-calls.ts';
import { malformed, titleOf } from '../wrong-responses.ts';
import type { Lifted } from './lifted.ts';
import type { Taken } from './values.ts';

const MAX_TITLE_LENGTH = 100;

export interface ResponseFormat {
  readonly name: 'SOAP envelope' | 'JSON';
  /** Some servers send no content type (''). */
  readonly hasType: (contentType: string) => boolean;
  readonly maxRefusalBytes: number;
  readonly mayBeEmpty: boolean;
  readonly urlKeyOf: (operation: Operation) => string;
  readonly unexpected: (operation: Operation, what: string) => JobtailError;
}

interface Reader<Parsed> {
  push(chunk: Buffer): void;
  finish(): Parsed;
}

interface ResponseReading<Parsed> {
  readonly operation: Operation;
  readonly format: ResponseFormat;
  readonly reader: Reader<Parsed>;
  readonly lifted?: Lifted | undefined;
  readonly count: Count;
  readonly secrets: Secrets;
}

/** nothing: status 204. enough: no more was needed. refusal: `head` is the beginning of its body. */
export type ServiceResult<Parsed> =
  | { readonly kind: 'success'; readonly parsed: Parsed }
  | { readonly kind: 'nothing' | 'enough' }
  | { readonly kind: 'refusal'; readonly head: Buffer };

/** @throws JobtailError what the body throws; redirected, unexpected-answer, malformed, answer-too-large */
async function readResponse<Parsed>(
  response: HttpResponse,
  reading: ResponseReading<Parsed>,
): Promise<ServiceResult<Parsed>> {
  const { operation, format } = reading;
  const { status } = response;
  if (status === 200) return await readSuccess(response, reading);
  if (status >= 400) return { kind: 'refusal', head: await readHead(response, reading) };
  await endUnread(response);
  if (status === 204 && format.mayBeEmpty) return { kind: 'nothing' };
  if (status < 300) throw format.unexpected(operation, `its status is ${status} instead of 200`);
  throw new JobtailError('redirected', `the service answered ${operation} with status ${status}`, {
    hint: `redirects are not followed: put the final address into ${format.urlKeyOf(operation)}`,
  });
}

/** Without this, a body that has no time limit holds its connection. */
async function endUnread({ body }: HttpResponse): Promise<void> {
  await body[Symbol.asyncIterator]().return?.();
}

async function readSuccess<Parsed>(
  response: HttpResponse,
  reading: ResponseReading<Parsed>,
): Promise<ServiceResult<Parsed>> {
  const { reader, lifted, count, format } = reading;
  if (!format.hasType(response.contentType)) throw anotherFormat(response, await readHead(response, reading), reading);
  if (!['', 'utf-8', 'utf8', 'us-ascii'].includes(response.charset)) {
    await endUnread(response);
    throw malformed('its encoding is not UTF-8');
  }
  let head: Buffer | undefined;
  try {
    for await (const chunk of response.body) {
      head ??= chunk;
      count.bytes += chunk.length;
      await pushInSlices(reader, chunk);
      await lifted?.flush();
      if (lifted?.hasEnough) return { kind: 'enough' };
    }
    return { kind: 'success', parsed: reader.finish() };
  } catch (error) {
    const isDamage = error instanceof JobtailError && error.code === 'malformed';
    const isOther = isDamage && (head === undefined || isWebPage(response, head));
    throw isOther ? anotherFormat(response, head ?? Buffer.alloc(0), reading) : error;
  }
}

/** Of many small tags or values, this many bytes take milliseconds. */
const SLICE_BYTES = 16 * 1024;
const SLICE_MS = 10;

/** All else of the process gets its turn while many small things are read. */
async function pushInSlices<Parsed>(reader: Reader<Parsed>, chunk: Buffer): Promise<void> {
  let beganAt = performance.now();
  for (let at = 0; at < chunk.length; at += SLICE_BYTES) {
    reader.push(chunk.subarray(at, at + SLICE_BYTES));
    if (performance.now() - beganAt < SLICE_MS) continue;
    await new Promise((resolve) => setImmediate(resolve));
    beganAt = performance.now();
  }
}

async function readHead(response: HttpResponse, { format, count }: ResponseReading<unknown>): Promise<Buffer> {
  const head = await readRefusal(response, format.maxRefusalBytes);
  count.bytes += head.length;
  return head;
}

function anotherFormat(
  response: HttpResponse,
  head: Buffer,
  { operation, format, secrets }: ResponseReading<unknown>,
): JobtailError {
  if (head.length === 0) return format.unexpected(operation, 'it is empty');
  if (!isWebPage(response, head))
    return malformed(`it is ${secrets.safeText(response.contentType)} and no ${format.name}`);
  const title = secrets.safeText(titleOf(head.toString()), MAX_TITLE_LENGTH);
  return new JobtailError('malformed', `the response is a web page${title === '' ? '' : ` ("${title}")`}`, {
    hint: `a proxy or sign-in page stands in the way, or ${format.urlKeyOf(operation)} is the address of something else`,
  });
}

function isWebPage({ contentType }: HttpResponse, head: Buffer): boolean {
  if (contentType === 'text/html' || contentType === 'application/xhtml+xml') return true;
  return /^\s*<(?:!doctype\s+html|html)\b/i.test(head.toString('latin1', 0, 1024));
}

/** A call by either protocol. */
export interface ServiceCall extends Taken {
  readonly operation: Operation;
  /** Whether the response may take as long as it makes progress. */
  readonly bulky?: boolean;
  /** Maximum time until the response begins; the usual limit if omitted. */
  readonly headersMs?: number | undefined;
  readonly signal: AbortSignal;
}

/** @throws JobtailError what the HTTP client throws; redirected, unexpected-answer, malformed, answer-too-large */
export async function sendCall<Parsed>(
  { operation, lifted, bulky, headersMs, signal }: ServiceCall,
  { http, secrets }: ServiceCallsOptions,
  request: HttpMessage,
  reading: Pick<ResponseReading<Parsed>, 'format' | 'reader' | 'count'>,
): Promise<{ readonly response: HttpResponse; readonly result: ServiceResult<Parsed> }> {
  const response = await http.request({
    ...request,
    headersMs,
    signal,
    isRepeatable: isIdempotent(operation),
    totalMs: bulky === true ? Number.POSITIVE_INFINITY : undefined,
  });
  return { response, result: await readResponse(response, { operation, lifted, secrets, ...reading }) };
}
