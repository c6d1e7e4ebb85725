/**
 * HTTP as the services of a cluster need it: every call settles within its limits, nothing is followed, unpacked or
 * routed without request, and every failure is a JobtailError without URL, header or body.
 */
import { Agent, buildConnector, type Dispatcher, Pool, ProxyAgent } from 'undici';
import { JobtailError } from '../../errors.ts';
import { CallStop, LimitedBody, timeoutError } from './body.ts';
import type { Compression } from './compression.ts';
import { Exchange, RoundTrip } from './exchange.ts';
import { addressOf, describeFailure, type Target } from './failures.ts';

/** A wish beyond this is taken for this: a server must not be able to silence the agent for good. */
export const MAX_RETRY_AFTER_MS = 60 * 60 * 1000;

/**
 * How long a connection without a request stays open: longer than the pause of a quiet poll (60 s by default). A server
 * or proxy may close it earlier.
 */
const KEEP_ALIVE_MS = 75_000;
const MAX_KEEP_ALIVE_MS = 90_000;

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
  /** When gzip is requested; never if left out. */
  readonly compression?: Compression | undefined;
  /** Called when the header of an answer has arrived. */
  readonly onAnswer?: ((answer: AnswerTiming) => void) | undefined;
}

export interface AnswerTiming {
  readonly status: number;
  readonly firstByteMs: number;
  /** How long the server worked for it: the time to its first byte, less the round trip. */
  readonly workMs: number;
  readonly retryAfterMs: number | undefined;
}

export interface HttpRequest {
  readonly method: 'GET' | 'POST';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  readonly signal: AbortSignal;
  /** Instead of the client's own `totalMs`; Infinity for none. */
  readonly totalMs?: number | undefined;
  /** Instead of the client's own `headersMs`. */
  readonly headersMs?: number | undefined;
  /**
   * Whether it may be sent twice: if an open connection breaks before the answer begins, it is sent once more on a new
   * one, since the server may have closed the old one in the meantime.
   */
  readonly isRepeatable?: boolean;
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

interface Sending {
  readonly url: URL;
  readonly target: Target;
  readonly stop: CallStop;
  readonly exchange: Exchange;
  readonly encoding: 'gzip' | 'identity';
}

/** Connections to servers, kept alive between calls. Redirects are answers like any other. */
export class HttpClient {
  readonly #dispatcher: Dispatcher;
  /** For requests that need a new connection. */
  readonly #newConnections: Dispatcher;
  readonly #limits: HttpLimits;
  readonly #roundTrip = new RoundTrip();
  #openedConnections = 0;
  readonly #compression: HttpClientOptions['compression'];
  readonly #onAnswer: HttpClientOptions['onAnswer'];

  constructor(options: HttpClientOptions) {
    this.#limits = options.limits;
    this.#compression = options.compression;
    this.#onAnswer = options.onAnswer;
    this.#dispatcher = this.#newDispatcher(options, 1);
    this.#newConnections = this.#newDispatcher(options, 0);
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
    const countOpened = () => this.#openedConnections;
    const encoding = this.#compression?.isWanted === true ? 'gzip' : 'identity';
    const sending = { url, target, stop, encoding } as const;
    let exchange = new Exchange(countOpened);
    let response: Dispatcher.ResponseData;
    try {
      stop.signal.throwIfAborted();
      try {
        response = await this.#send(this.#dispatcher, request, { ...sending, exchange });
      } catch (error) {
        const isStale = exchange.isOnOpenConnection && describeFailure(error, target).code === 'interrupted';
        if (!isStale || request.isRepeatable !== true || stop.signal.aborted) throw error;
        exchange = new Exchange(countOpened);
        response = await this.#send(this.#newConnections, request, { ...sending, exchange });
      }
    } catch (error) {
      stop.settle();
      throw describeFailure(error, target);
    }
    const retryAfterMs = retryAfterMsOf(
      headerOf(response.headers, 'retry-after'),
      headerOf(response.headers, 'date'),
      Date.now(),
    );
    const { firstByteMs } = exchange;
    const workMs = Math.max(0, firstByteMs - this.#roundTrip.ms);
    this.#onAnswer?.({ status: response.statusCode, firstByteMs, workMs, retryAfterMs });
    const measure = this.#compression?.measuring();
    const wire = new LimitedBody(response.body, { stop, idleMs: limits.idleMs, target, measure });
    const body = await this.#decoded(wire, headerOf(response.headers, 'content-encoding'), { ...sending, ...request });
    const contentType = headerOf(response.headers, 'content-type');
    return {
      status: response.statusCode,
      contentType: mediaTypeOf(contentType),
      charset: charsetOf(contentType),
      retryAfterMs,
      body,
    };
  }

  /** The body without its content encoding, which must be the one that was requested. */
  async #decoded(
    body: LimitedBody,
    contentEncoding: string,
    { encoding, target, signal }: Pick<Sending, 'encoding' | 'target'> & Pick<HttpRequest, 'signal'>,
  ): Promise<AsyncIterable<Buffer>> {
    const coding = contentEncoding.trim().toLowerCase();
    if (coding === '' || coding === 'identity') return body;
    const isRequested = encoding === 'gzip' && (coding === 'gzip' || coding === 'x-gzip');
    if (isRequested && this.#compression !== undefined) return this.#compression.unpacked(body, target, signal);
    await body.destroy();
    throw new JobtailError('malformed', `the response of ${addressOf(target)} is compressed without request`, {
      hint: 'switch off compression for this service in the web server or proxy in front of it',
    });
  }

  /** Ends all calls in flight at once and closes the connections. */
  async close(): Promise<void> {
    const closed = new JobtailError('aborted', 'the connections were closed');
    await Promise.all([this.#dispatcher.destroy(closed), this.#newConnections.destroy(closed)]);
  }

  /** `pipelining`: requests at a time on one connection; 0 opens a new connection for each request. */
  #newDispatcher({ limits, tls, proxy }: HttpClientOptions, pipelining: 0 | 1): Dispatcher {
    // Explicit, because NODE_TLS_REJECT_UNAUTHORIZED would else switch the checks off.
    const connect = { ...tls, timeout: limits.connectMs, rejectUnauthorized: true };
    const factory = (origin: string | URL, options: object) =>
      new Pool(origin, options).on('connect', () => {
        this.#openedConnections += 1;
      });
    const pool = { pipelining, keepAliveTimeout: KEEP_ALIVE_MS, keepAliveMaxTimeout: MAX_KEEP_ALIVE_MS, factory };
    if (proxy === undefined) return new Agent({ ...pool, connect: this.#roundTrip.measuring(buildConnector(connect)) });
    return new ProxyAgent({
      ...pool,
      uri: parseUrl(proxy).href,
      proxyTunnel: false,
      requestTls: connect,
      proxyTls: { timeout: limits.connectMs, rejectUnauthorized: true },
      clientFactory: (origin, options) =>
        new Pool(origin, { ...options, headersTimeout: limits.connectMs }).compose(this.#roundTrip.observeTunnel),
    });
  }

  async #send(dispatcher: Dispatcher, request: HttpRequest, sending: Sending): Promise<Dispatcher.ResponseData> {
    const { url, target, stop, exchange, encoding } = sending;
    const { headersMs = this.#limits.headersMs } = request;
    let timer: NodeJS.Timeout | undefined;
    // undici looks at the signal only once it has a connection.
    const stopped = new Promise<never>((_, reject) => {
      stop.signal.addEventListener('abort', () => reject(stop.signal.reason), { once: true });
    });
    try {
      const answered = dispatcher.compose(exchange.observe).request({
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method: request.method,
        headers: { 'accept-encoding': encoding, ...request.headers },
        body: request.body ?? null,
        signal: stop.signal,
        headersTimeout: headersMs,
        bodyTimeout: 0,
        // Each provisional answer (1xx) starts the limit of the header anew; all together have it once more.
        onInfo: () => {
          timer ??= setTimeout(() => stop.stop(timeoutError(target, 'did not start to respond in time')), headersMs);
        },
      });
      return await Promise.race([answered, stopped]);
    } finally {
      clearTimeout(timer);
    }
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

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new JobtailError('config', 'the address of the service is no http or https URL', {
      hint: 'write it as https://host/path',
    });
  }
  return url;
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
 * `Retry-After` in milliseconds: seconds or a date; undefined if absent or not understood. A date is compared with
 * the one of the response itself (`Date`), because the clocks of server and agent may differ.
 */
function retryAfterMsOf(value: string, answeredAt: string, nowMs: number): number | undefined {
  const text = value.trim();
  if (text === '') return undefined;
  const answeredMs = Date.parse(answeredAt);
  const fromMs = Number.isNaN(answeredMs) ? nowMs : answeredMs;
  const waitMs = /^[0-9]{1,15}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - fromMs;
  return Number.isNaN(waitMs) ? undefined : Math.min(Math.max(0, waitMs), MAX_RETRY_AFTER_MS);
}
