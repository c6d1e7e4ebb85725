/** Measures the round trip to a server, and the time to the first byte of a response. */
import { Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import type { buildConnector, Dispatcher } from 'undici';

type Handler = Dispatcher.DispatchHandler;
type Interceptor = Dispatcher.DispatcherComposeInterceptor;

export class Exchange {
  #sentAt = Number.NaN;
  #answeredAt = Number.NaN;
  #isOnOpenConnection = false;
  readonly #countOpened: () => number;

  constructor(countOpened: () => number) {
    this.#countOpened = countOpened;
  }

  get isOnOpenConnection(): boolean {
    return this.#isOnOpenConnection;
  }

  get firstByteMs(): number {
    return this.#answeredAt - this.#sentAt;
  }

  readonly observe: Interceptor = (dispatch) => (options, handler) => {
    const openedBefore = this.#countOpened();
    callBefore(handler, 'onRequestStart', () => {
      this.#sentAt = performance.now();
      this.#isOnOpenConnection = this.#countOpened() === openedBefore;
    });
    callBefore(handler, 'onResponseStart', () => {
      this.#answeredAt = performance.now();
    });
    return dispatch(options, handler);
  };
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
