/** One request to a server and its response, as undici hands them over; and the round trip to a server. */
import type { IncomingHttpHeaders } from 'node:http';
import { Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import type { buildConnector, Dispatcher } from 'undici';

type Handler = Dispatcher.DispatchHandler;
type Controller = Dispatcher.DispatchController;
type Interceptor = Dispatcher.DispatcherComposeInterceptor;

interface ExchangeOptions {
  readonly countOpened: () => number;
  /** Maximum time from the first provisional response (1xx) to the header: each restarts the limit of undici. */
  readonly headersMs: number;
  readonly onLate: () => void;
}

export interface ResponseHeader {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
}

/** Maximum chunks that wait for the reader. */
const MAX_WAITING = 4;

/** The handler of one request. Not a stream of undici: that one costs more time than all else of a small response. */
export class Exchange implements Handler {
  isOnOpenConnection = false;
  /** From the sent request on. */
  firstByteMs = Number.NaN;
  readonly #options: ExchangeOptions;
  readonly #openedBefore: number;
  #controller: Controller | undefined;
  #sentAt = Number.NaN;
  #lateTimer: NodeJS.Timeout | undefined;
  #header: ResponseHeader | undefined;
  readonly #waiting: Buffer[] = [];
  #isComplete = false;
  #failure: { readonly error: unknown } | undefined;
  #wake = () => {};

  constructor(options: ExchangeOptions) {
    this.#options = options;
    this.#openedBefore = options.countOpened();
  }

  /** @throws what undici reports, or the reason of `stop` */
  async header(): Promise<ResponseHeader> {
    while (this.#header === undefined) await this.#change();
    return this.#header;
  }

  /** The next chunk of the body; undefined at its end. @throws as `header` */
  async chunk(): Promise<Buffer | undefined> {
    while (this.#waiting.length === 0 && !this.#isComplete) await this.#change();
    return this.#waiting.shift();
  }

  /** Ends a request that is not complete, at once: undici itself waits until it has a connection. */
  stop(reason: Error): void {
    const controller = this.#controller;
    this.#fail(reason);
    controller?.abort(reason);
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller;
    this.#sentAt = performance.now();
    this.isOnOpenConnection = this.#options.countOpened() === this.#openedBefore;
    if (this.#failure !== undefined) controller.abort(this.#failure.error as Error);
  }

  onResponseStart(_: Controller, status: number, headers: IncomingHttpHeaders): void {
    const { headersMs, onLate } = this.#options;
    if (status < 200) {
      this.#lateTimer ??= setTimeout(onLate, headersMs);
      return;
    }
    clearTimeout(this.#lateTimer);
    this.firstByteMs = performance.now() - this.#sentAt;
    this.#header = { status, headers };
    this.#wake();
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    if (this.#waiting.push(chunk) >= MAX_WAITING) controller.pause();
    this.#wake();
  }

  onResponseEnd(): void {
    this.#isComplete = true;
    this.#end();
  }

  onResponseError(_: Controller, error: Error): void {
    this.#fail(error);
  }

  #fail(error: unknown): void {
    clearTimeout(this.#lateTimer);
    this.#failure ??= { error };
    this.#end();
  }

  /** Nothing holds the bytes of undici any longer: what is old itself would keep them until the whole heap is collected. */
  #end(): void {
    this.#controller = undefined;
    this.#wake();
  }

  async #change(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure.error;
    const changed = new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    this.#controller?.resume();
    await changed;
  }
}

/** Connections that the round trip is taken from: the minimum counts, because delays only add. */
const MAX_MEASUREMENTS = 4;

export class RoundTrip {
  #measurements: number[] = [];

  get ms(): number {
    return this.#measurements.length === 0 ? 0 : Math.min(...this.#measurements);
  }

  /** Measures the TCP handshakes of `connector`. */
  measuring(connector: buildConnector.connector): buildConnector.connector {
    return (options, callback) => {
      let startedAt = performance.now();
      const socket: unknown = connector(options, callback);
      if (!(socket instanceof Socket)) return;
      // After the name is resolved.
      socket.once('lookup', () => {
        startedAt = performance.now();
      });
      socket.once('connect', () => this.#add(performance.now() - startedAt));
    };
  }

  /** Measures tunnels: a proxy answers when it is connected to the server. */
  readonly observeTunnel: Interceptor = (dispatch) => (options, handler) => {
    let sentAt = performance.now();
    callBefore(handler, 'onRequestStart', () => {
      sentAt = performance.now();
    });
    callBefore(handler, 'onRequestUpgrade', () => this.#add(performance.now() - sentAt));
    return dispatch(options, handler);
  };

  #add(ms: number): void {
    this.#measurements = [...this.#measurements.slice(1 - MAX_MEASUREMENTS), ms];
  }
}

/** Lets a method of a handler, which is that of one request, call `first` before all else. */
function callBefore(handler: Handler, name: keyof Handler, first: () => void): void {
  const method = handler[name] as ((...all: unknown[]) => unknown) | undefined;
  const both = (...all: unknown[]) => {
    first();
    return method?.apply(handler, all);
  };
  Object.assign(handler, { [name]: both });
}
