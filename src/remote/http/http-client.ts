/**
 * The HTTP client: every call ends within its limits, nothing is redirected, unpacked or proxied without request, and
 * every failure is a JobtailError without URL, header or body.
 */
import type { LookupFunction } from 'node:net';
import { Agent, type Dispatcher, Pool } from 'undici';
import { JobtailError } from '../../errors.ts';
import '../../system/network.ts';
import { CallStop, LimitedBody } from './body.ts';
import type { Compression } from './compression.ts';
import { Exchange, type ResponseHeader } from './exchange.ts';
import {
  addressOf,
  describeFailure,
  MAX_HEADER_BYTES,
  notConnected,
  proxyRefusal,
  type Target,
  timeoutError,
} from './failures.ts';
import { Spacing } from './spacing.ts';
import { connectorOf, type HttpWay, RoundTrip, routeOf, targetOf } from './ways.ts';

export type { HttpTls, HttpWay } from './ways.ts';

/** Longer pauses are cut to this: a server must not be able to stop the agent for good. */
export const MAX_RETRY_AFTER_MS = 60 * 60 * 1000;

/** How long an idle connection stays open: longer than the pause of a quiet poll (60 s by default). */
const KEEP_ALIVE_MS = 75_000;
const MAX_KEEP_ALIVE_MS = 90_000;

export interface HttpLimits {
  /** From the start of a request until it is sent: name resolution, TCP, the tunnel of a proxy, TLS. */
  readonly connectMs: number;
  /** From the sent request to the end of the response header. */
  readonly headersMs: number;
  /** Without progress in the body: less than a KiB counts as none. */
  readonly idleMs: number;
  readonly totalMs: number;
}

export interface HttpClientOptions extends HttpWay {
  readonly limits: HttpLimits;
  readonly compression?: Compression | undefined;
  readonly onResponse?: ((response: ResponseTiming) => void) | undefined;
  /** Looks names up until the client is closed; default: by the threads of this process. */
  readonly lookup?: ((closed: AbortSignal) => LookupFunction) | undefined;
}

export interface ResponseTiming {
  readonly status: number;
  readonly firstByteMs: number;
  /** Time to the first byte, less the round trip. */
  readonly workMs: number;
  readonly retryAfterMs: number | undefined;
  /** X-Rate-Limit-Remaining and X-Rate-Limit-Reset. */
  readonly quota: { readonly remaining: number; readonly resetMs: number } | undefined;
  /** The `Date` of the response, in milliseconds since 1970. */
  readonly sentAt: number | undefined;
}

export interface HttpMessage {
  readonly method: 'GET' | 'POST';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

export interface HttpRequest extends HttpMessage {
  readonly signal: AbortSignal;
  readonly totalMs?: number | undefined;
  readonly headersMs?: number | undefined;
  /** Whether it may be sent twice, if an open connection breaks before the response begins. */
  readonly isRepeatable?: boolean;
  /** Whether a compressed body is returned as it is, and not refused. */
  readonly takesAnyBody?: boolean;
}

export interface HttpStatus {
  readonly status: number;
  /** The pause that the server requests (`Retry-After`). */
  readonly retryAfterMs: number | undefined;
}

export interface HttpResponse extends HttpStatus {
  readonly contentType: string;
  readonly charset: string;
  /** Where a redirect leads to, as the server wrote it; '' without one. */
  readonly location?: string;
  /** Must be read to its end, or aborted: `return()` of its iterator (leaving a `for await`) frees the connection. */
  readonly body: AsyncIterable<Buffer>;
}

export interface HttpSender {
  /** @throws JobtailError */
  request(request: HttpRequest): Promise<HttpResponse>;
}

interface Sending {
  readonly url: URL;
  readonly target: Target;
  readonly stop: CallStop;
  readonly encoding: 'gzip' | 'identity';
  readonly spacing: Spacing;
}

/** Connections are kept alive between calls. Redirects are responses like any other. */
export class HttpClient implements HttpSender {
  readonly #way: HttpWay;
  readonly #dispatcher: Dispatcher;
  readonly #limits: HttpLimits;
  readonly #roundTrip = new RoundTrip();
  readonly #spacings = new Map<string, Spacing>();
  readonly #closed = new AbortController();
  #openedConnections = 0;
  readonly #compression: HttpClientOptions['compression'];
  readonly #onResponse: HttpClientOptions['onResponse'];

  constructor(options: HttpClientOptions) {
    this.#limits = options.limits;
    this.#compression = options.compression;
    this.#onResponse = options.onResponse;
    this.#way = options;
    this.#dispatcher = this.#newDispatcher(options);
  }

  /**
   * Sends a request and resolves with the response header, whatever the status. @throws JobtailError unreachable, tls,
   * timeout, interrupted, aborted, malformed; config for a wrong URL
   */
  async request(request: HttpRequest): Promise<HttpResponse> {
    const url = parseUrl(request.url);
    const target = targetOf(url, this.#way.proxy);
    const limits = this.#limits;
    const stop = new CallStop(request.signal, request.totalMs ?? limits.totalMs, target);
    const encoding = this.#compression?.isWanted === true ? 'gzip' : 'identity';
    const sending = { url, target, stop, encoding, spacing: this.#spacingOf(url) } as const;
    const { exchange, header: response } = await this.#exchange(request, sending).catch((error: unknown) => {
      stop.release();
      throw error;
    });
    const { status, headers } = response;
    if (status === 407 && this.#way.proxy !== undefined) {
      stop.stop(proxyRefusal(target, status, headers['proxy-authenticate']));
      throw stop.signal.reason;
    }
    const header = (name: string) => headerOf(headers, name);
    const sentAt = timeOf(header('date'));
    const respondedAt = sentAt ?? Date.now();
    const retryAfterMs = retryAfterMsOf(header('retry-after'), respondedAt);
    const quota = quotaOf(header('x-rate-limit-remaining'), header('x-rate-limit-reset'), respondedAt);
    const { firstByteMs } = exchange;
    const workMs = Math.max(0, firstByteMs - this.#roundTrip.ms);
    this.#onResponse?.({ status, firstByteMs, workMs, retryAfterMs, quota, sentAt });
    const measure = this.#compression?.measuring();
    const onBroken = () => sending.spacing.failed();
    const wire = new LimitedBody(exchange, { stop, idleMs: limits.idleMs, target, measure, onBroken });
    const body = await this.#decoded(wire, header('content-encoding'), sending, request);
    const contentType = header('content-type');
    return {
      status,
      contentType: mediaTypeOf(contentType),
      charset: charsetOf(contentType),
      retryAfterMs,
      location: header('location'),
      body,
    };
  }

  /** Sends a request until its response begins, or it fails. */
  async #exchange(request: HttpRequest, sending: Sending): Promise<{ exchange: Exchange; header: ResponseHeader }> {
    const { stop, spacing, target } = sending;
    for (;;) {
      await spacing.turn(stop.signal);
      const exchange = this.#send(request, sending);
      try {
        const header = await exchange.header();
        spacing.responded();
        return { exchange, header };
      } catch (error) {
        const failure = describeFailure(error, target);
        // Each failure closes an open connection: in the end, a new one is used.
        const isStale = exchange.isOnOpenConnection && failure.code === 'interrupted' && request.isRepeatable === true;
        if (isStale) spacing.doubted();
        else if (failure.code !== 'aborted') spacing.failed();
        if (!isStale || stop.signal.aborted) throw failure;
      }
    }
  }

  /** Of the server, or of the proxy on the way to it. */
  #spacingOf({ origin }: URL): Spacing {
    const key = this.#way.proxy ?? origin;
    const spacing = this.#spacings.get(key) ?? new Spacing();
    this.#spacings.set(key, spacing);
    return spacing;
  }

  async #decoded(
    body: LimitedBody,
    contentEncoding: string,
    { encoding, target }: Pick<Sending, 'encoding' | 'target'>,
    { signal, takesAnyBody = false }: HttpRequest,
  ): Promise<AsyncIterable<Buffer>> {
    const coding = contentEncoding.trim().toLowerCase();
    if (coding === '' || coding === 'identity') return body;
    const isRequested = encoding === 'gzip' && (coding === 'gzip' || coding === 'x-gzip');
    if (isRequested && this.#compression !== undefined) return this.#compression.unpacked(body, target, signal);
    if (takesAnyBody) return body;
    await body.destroy();
    throw new JobtailError('malformed', `the response of ${addressOf(target)} is compressed without request`, {
      hint: 'switch off compression for this service in the web server or proxy in front of it',
    });
  }

  async close(): Promise<void> {
    const closed = new JobtailError('aborted', 'the connections were closed');
    this.#closed.abort();
    await this.#dispatcher.destroy(closed);
  }

  #newDispatcher({ limits: { connectMs }, lookup, ...way }: HttpClientOptions): Dispatcher {
    const closed = this.#closed.signal;
    return new Agent({
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: MAX_KEEP_ALIVE_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
      connect: connectorOf(way, { connectMs, lookup: lookup?.(closed), closed, roundTrip: this.#roundTrip }),
      factory: (origin: string | URL, options: object) =>
        new Pool(origin, options).on('connect', () => {
          this.#openedConnections += 1;
        }),
    });
  }

  #send(request: HttpRequest, { url, target, stop, encoding }: Sending): Exchange {
    const { headersMs = this.#limits.headersMs } = request;
    const { connectMs } = this.#limits;
    const late = () => timeoutError(target, 'did not start to respond in time');
    const onLate = (isSent: boolean) => stop.stop(isSent ? late() : notConnected(target));
    const exchange = new Exchange({ countOpened: () => this.#openedConnections, connectMs, headersMs, onLate });
    const { signal } = stop;
    if (signal.aborted) exchange.stop(signal.reason);
    else {
      signal.addEventListener('abort', () => exchange.stop(signal.reason), { once: true });
      const { origin, path, headers: ofProxy } = routeOf(url, this.#way);
      const headers = { 'accept-encoding': encoding, ...request.headers, ...ofProxy };
      const { method, body = null } = request;
      this.#dispatcher.dispatch({ origin, path, method, headers, body, headersTimeout: 0, bodyTimeout: 0 }, exchange);
    }
    return exchange;
  }
}

/** The whole body. @throws JobtailError answer-too-large above `maxBytes`, and what reading the body throws */
export async function readBody(response: HttpResponse, maxBytes: number): Promise<Buffer> {
  const body = await readBeginning(response, maxBytes + 1);
  if (body.length <= maxBytes) return body;
  throw new JobtailError('answer-too-large', `the response is larger than the ${maxBytes} bytes allowed`, {
    hint: 'the address may belong to another kind of service',
  });
}

/** At least the first `enoughBytes` of the body, if it has so many. */
export async function readBeginning(response: HttpResponse, enoughBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response.body) {
    chunks.push(chunk);
    length += chunk.length;
    if (length >= enoughBytes) break;
  }
  return Buffer.concat(chunks, length);
}

/** Statuses that are clear without a body, in whose place a server may close the connection. */
const CLEAR_STATUSES: readonly number[] = [401, 403, 413];

/** As `readBeginning`, of a refusal: nothing if the body breaks, and the status alone is clear. */
export async function readRefusal(response: HttpResponse, enoughBytes: number): Promise<Buffer> {
  return await readBeginning(response, enoughBytes).catch((thrown: unknown) => {
    const isBroken = thrown instanceof JobtailError && thrown.code === 'interrupted';
    if (isBroken && CLEAR_STATUSES.includes(response.status)) return Buffer.alloc(0);
    throw thrown;
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

function headerOf(headers: Readonly<Record<string, string | string[] | undefined>>, name: string): string {
  const value = headers[name];
  return (Array.isArray(value) ? value[0] : value) ?? '';
}

function mediaTypeOf(contentType: string): string {
  return (contentType.split(';', 1)[0] ?? '').trim().toLowerCase();
}

function charsetOf(contentType: string): string {
  const charset = /;\s*charset\s*=\s*(?:"([^"]*)"|([^\s;]*))/i.exec(contentType);
  return (charset?.[1] ?? charset?.[2] ?? '').trim().toLowerCase();
}

/** When a response was sent, by the clock of the server: the clocks of server and agent may differ. */
function timeOf(date: string): number | undefined {
  const sentAt = dateOf(date);
  return Number.isNaN(sentAt) ? undefined : sentAt;
}

/** A number alone is no date, although `Date.parse` reads a year: 3600 is a number of seconds. */
const dateOf = (text: string) => (/[A-Z]/i.test(text) ? Date.parse(text) : Number.NaN);

/** `Retry-After` in milliseconds: seconds or a date. */
function retryAfterMsOf(value: string, respondedAt: number): number | undefined {
  const text = value.trim();
  if (text === '') return undefined;
  const waitMs = /^[0-9]{1,15}$/.test(text) ? Number(text) * 1000 : dateOf(text) - respondedAt;
  return Number.isNaN(waitMs) ? undefined : Math.min(Math.max(0, waitMs), MAX_RETRY_AFTER_MS);
}

/** The calls that a limit of the server allows until its period ends (docs/dev/rest.md 4.5). */
function quotaOf(remaining: string, reset: string, respondedAt: number): ResponseTiming['quota'] {
  const resetMs = dateOf(reset) - respondedAt;
  if (!/^[0-9]{1,15}$/.test(remaining) || !(resetMs > 0)) return undefined;
  return { remaining: Number(remaining), resetMs };
}
