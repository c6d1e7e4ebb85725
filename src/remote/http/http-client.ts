/**
 * HTTP as the services of a cluster need it: every call settles within its limits, nothing is followed, unpacked or
 * routed that was not asked for, and every failure is a JobtailError that holds no URL, header or body.
 */
import { Agent, type Dispatcher, Pool, ProxyAgent } from 'undici';
import { JobtailError } from '../../errors.ts';
import { LimitedBody } from './body.ts';
import { CallStop, timeoutError } from './call-stop.ts';
import { addressOf, describeFailure, type Target } from './failures.ts';

/** A wish beyond this is taken for this: a server must not be able to silence the agent for good. */
const MAX_RETRY_AFTER_MS = 60 * 60 * 1000;

/** Time limits of a call, in milliseconds. */
export interface HttpLimits {
  /** Name resolution, TCP and TLS. */
  readonly connectMs: number;
  /** From the request sent to the end of the answer's header. */
  readonly headersMs: number;
  /** Without progress in the body: less than a KiB counts as none. */
  readonly idleMs: number;
  /** The whole call; Infinity for none. */
  readonly totalMs: number;
}

/** PEM material. A `ca` replaces the system's roots. Host names are always checked. */
export interface HttpTls {
  readonly ca?: Buffer | string;
  readonly cert?: Buffer | string;
  readonly key?: Buffer | string;
}

export interface HttpClientOptions {
  readonly limits: HttpLimits;
  readonly tls?: HttpTls;
  /** Address of a proxy, `http://host:port`; proxy variables of the environment are not read. */
  readonly proxy?: string;
}

export interface HttpRequest {
  readonly method: 'GET' | 'POST';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  readonly signal: AbortSignal;
  /** Instead of the client's own `totalMs`; Infinity for none. */
  readonly totalMs?: number | undefined;
}

export interface HttpAnswer {
  readonly status: number;
  /** Media type in lower case without parameters, '' if none. */
  readonly contentType: string;
  /** The charset parameter of the content type in lower case, '' if none. */
  readonly charset: string;
  /** The server's wish how long to wait (`Retry-After`). */
  readonly retryAfterMs: number | undefined;
  /**
   * The body, read once. It must be read to its end or given up: `return()` of its iterator (what leaving a
   * `for await` calls) frees the connection.
   */
  readonly body: AsyncIterable<Buffer>;
}

/** Connections to servers, kept alive between calls. Redirects are answers like any other. */
export class HttpClient {
  readonly #dispatcher: Dispatcher;
  readonly #limits: HttpLimits;

  constructor(options: HttpClientOptions) {
    this.#limits = options.limits;
    this.#dispatcher = createDispatcher(options);
  }

  /**
   * Sends a request and resolves with the header of its answer, whatever the status.
   * @throws JobtailError unreachable, tls, timeout, interrupted, aborted, malformed; config for a wrong URL
   */
  async request(request: HttpRequest): Promise<HttpAnswer> {
    const url = parseUrl(request.url);
    const target: Target = { host: url.hostname, port: url.port || (url.protocol === 'https:' ? '443' : '80') };
    const limits = this.#limits;
    const stop = new CallStop(request.signal, request.totalMs ?? limits.totalMs, target);
    let response: Dispatcher.ResponseData;
    let timer: NodeJS.Timeout | undefined;
    try {
      stop.signal.throwIfAborted();
      response = await this.#dispatcher.request({
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method: request.method,
        headers: { 'accept-encoding': 'identity', ...request.headers },
        body: request.body ?? null,
        signal: stop.signal,
        headersTimeout: limits.headersMs,
        bodyTimeout: 0,
        // Each provisional answer (1xx) starts the limit of the header anew; all together have it once more.
        onInfo: () => {
          timer ??= setTimeout(
            () => stop.stop(timeoutError(target, 'did not begin to answer in time')),
            limits.headersMs,
          );
        },
      });
    } catch (error) {
      stop.settle();
      throw describeFailure(error, target);
    } finally {
      clearTimeout(timer);
    }
    const body = new LimitedBody(response.body, { stop, idleMs: limits.idleMs, target });
    await refuseCompressed(response, body, target);
    const contentType = headerOf(response.headers, 'content-type');
    return {
      status: response.statusCode,
      contentType: mediaTypeOf(contentType),
      charset: charsetOf(contentType),
      retryAfterMs: retryAfterMsOf(
        headerOf(response.headers, 'retry-after'),
        headerOf(response.headers, 'date'),
        Date.now(),
      ),
      body,
    };
  }

  /** Ends all calls in flight at once and closes the connections. */
  async close(): Promise<void> {
    await this.#dispatcher.destroy(new JobtailError('aborted', 'the connections were closed'));
  }
}

/**
 * The whole body.
 * @throws JobtailError answer-too-large beyond `maxBytes`, and whatever reading the body throws
 */
export async function readBody(answer: HttpAnswer, maxBytes: number): Promise<Buffer> {
  const body = await readBeginning(answer, maxBytes + 1);
  if (body.length <= maxBytes) return body;
  throw new JobtailError('answer-too-large', `the answer is larger than the ${maxBytes} bytes allowed`, {
    hint: 'the address may belong to another kind of service',
  });
}

/** The beginning of the body, at least `enoughBytes` of it if it has so many; the rest is given up. */
export async function readBeginning(answer: HttpAnswer, enoughBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of answer.body) {
    chunks.push(chunk);
    length += chunk.length;
    if (length >= enoughBytes) break;
  }
  return Buffer.concat(chunks, length);
}

function createDispatcher({ limits, tls, proxy }: HttpClientOptions): Dispatcher {
  // Explicit, because NODE_TLS_REJECT_UNAUTHORIZED would else switch the checks off.
  const connect = { ...tls, timeout: limits.connectMs, rejectUnauthorized: true };
  const pool = { pipelining: 1 };
  if (proxy === undefined) return new Agent({ ...pool, connect });
  return new ProxyAgent({
    ...pool,
    uri: parseUrl(proxy).href,
    proxyTunnel: false,
    requestTls: connect,
    proxyTls: { timeout: limits.connectMs, rejectUnauthorized: true },
    clientFactory: (origin, options) => new Pool(origin, { ...options, headersTimeout: limits.connectMs }),
  });
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new JobtailError('config', 'the address of the service is no http or https URL', {
      hint: 'write it as https://host/path',
    });
  }
  return url;
}

async function refuseCompressed(response: Dispatcher.ResponseData, body: LimitedBody, target: Target): Promise<void> {
  const encoding = headerOf(response.headers, 'content-encoding').trim().toLowerCase();
  if (encoding === '' || encoding === 'identity') return;
  await body.destroy();
  throw new JobtailError('malformed', `the answer of ${addressOf(target)} is compressed though not asked for`, {
    hint: 'switch off compression for this service in the web server or proxy in front of it',
  });
}

/** The first value of a header, '' if there is none. */
function headerOf(headers: Readonly<Record<string, string | string[] | undefined>>, name: string): string {
  const value = headers[name];
  return (Array.isArray(value) ? value[0] : value) ?? '';
}

/** `text/xml` out of `Text/XML; charset=utf-8`. */
function mediaTypeOf(contentType: string): string {
  return (contentType.split(';', 1)[0] ?? '').trim().toLowerCase();
}

/** `utf-8` out of `text/xml; charset="UTF-8"`. */
function charsetOf(contentType: string): string {
  const charset = /;\s*charset\s*=\s*(?:"([^"]*)"|([^\s;]*))/i.exec(contentType);
  return (charset?.[1] ?? charset?.[2] ?? '').trim().toLowerCase();
}

/**
 * `Retry-After` in milliseconds: seconds or a date; undefined if absent or not understood. A date is held against the
 * one of the answer itself (`Date`), for the server's clock may be another than that of this machine.
 */
function retryAfterMsOf(value: string, answeredAt: string, nowMs: number): number | undefined {
  const text = value.trim();
  if (text === '') return undefined;
  const answeredMs = Date.parse(answeredAt);
  const fromMs = Number.isNaN(answeredMs) ? nowMs : answeredMs;
  const waitMs = /^[0-9]{1,15}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - fromMs;
  return Number.isNaN(waitMs) ? undefined : Math.min(Math.max(0, waitMs), MAX_RETRY_AFTER_MS);
}
