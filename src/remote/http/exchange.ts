/** One request to a server and its response, as undici hands them over, within limits of its own. */
import type { IncomingHttpHeaders } from 'node:http';
import { performance } from 'node:perf_hooks';
import type { Dispatcher } from 'undici';

type Handler = Dispatcher.DispatchHandler;
type DispatchController = Dispatcher.DispatchController;

interface ExchangeOptions {
  readonly countOpened: () => number;
  /** From the start to the sent request, whatever undici does until then. */
  readonly connectMs: number;
  /** From the sent request to the header; provisional responses (1xx) do not extend it. */
  readonly headersMs: number;
  readonly onLate: (isSent: boolean) => void;
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
  #controller: DispatchController | undefined;
  #sentAt = Number.NaN;
  #timer: NodeJS.Timeout | undefined;
  #header: ResponseHeader | undefined;
  readonly #waiting: Buffer[] = [];
  #isComplete = false;
  #failure: { readonly error: unknown } | undefined;
  #wake = () => {};

  constructor(options: ExchangeOptions) {
    this.#options = options;
    this.#openedBefore = options.countOpened();
    this.#limit(options.connectMs, false);
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

  onRequestStart(controller: DispatchController): void {
    this.#controller = controller;
    this.#sentAt = performance.now();
    this.isOnOpenConnection = this.#options.countOpened() === this.#openedBefore;
    if (this.#failure !== undefined) controller.abort(this.#failure.error as Error);
    else this.#limit(this.#options.headersMs, true);
  }

  onResponseStart(_: DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return;
    clearTimeout(this.#timer);
    this.firstByteMs = performance.now() - this.#sentAt;
    this.#header = { status, headers };
    this.#wake();
  }

  onResponseData(controller: DispatchController, chunk: Buffer): void {
    if (this.#waiting.push(chunk) >= MAX_WAITING) controller.pause();
    this.#wake();
  }

  onResponseEnd(): void {
    this.#isComplete = true;
    this.#end();
  }

  onResponseError(_: DispatchController, error: Error): void {
    this.#fail(error);
  }

  #fail(error: unknown): void {
    clearTimeout(this.#timer);
    this.#failure ??= { error };
    this.#end();
  }

  /** Nothing holds the bytes of undici any longer: what is old itself would keep them until the whole heap is collected. */
  #end(): void {
    this.#controller = undefined;
    this.#wake();
  }

  #limit(ms: number, isSent: boolean): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#options.onLate(isSent), ms);
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
