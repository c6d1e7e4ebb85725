/** What can be measured of the way to a server: the round trip, and when a request was sent and answered. */
import { Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import type { buildConnector, Dispatcher } from 'undici';

type Handler = Dispatcher.DispatchHandler;
type Interceptor = Dispatcher.DispatcherComposeInterceptor;

/** One request and the header of its answer. */
export class Exchange {
  #sentAt = Number.NaN;
  #answeredAt = Number.NaN;
  #isOnOpenConnection = false;
  readonly #countOpened: () => number;

  /** `countOpened` returns how many connections were opened so far. */
  constructor(countOpened: () => number) {
    this.#countOpened = countOpened;
  }

  /** Whether the request went out on a connection that was open already. */
  get isOnOpenConnection(): boolean {
    return this.#isOnOpenConnection;
  }

  /** From the request sent to the first byte of its answer. */
  get firstByteMs(): number {
    return this.#answeredAt - this.#sentAt;
  }

  readonly observe: Interceptor = (dispatch) => (options, handler) => {
    const openedBefore = this.#countOpened();
    const observed = delegateTo(handler, {
      onRequestStart: () => {
        this.#sentAt = performance.now();
        this.#isOnOpenConnection = this.#countOpened() === openedBefore;
      },
      onResponseStart: () => {
        this.#answeredAt = performance.now();
      },
    });
    return dispatch(options, observed);
  };
}

/** Connections that the round trip is taken from: delays on the way make single ones slower, never faster. */
const MAX_MEASUREMENTS = 4;

/** The round trip to a server, which the opening of a connection shows. */
export class RoundTrip {
  #measurements: number[] = [];

  /** In milliseconds; 0 while it is not measured. */
  get ms(): number {
    return this.#measurements.length === 0 ? 0 : Math.min(...this.#measurements);
  }

  /** Opens connections by `connector`, and measures how long TCP takes for it. */
  measuring(connector: buildConnector.connector): buildConnector.connector {
    return (options, callback) => {
      let startedAt = performance.now();
      const socket: unknown = connector(options, callback);
      if (!(socket instanceof Socket)) return;
      // The name is resolved first.
      socket.once('lookup', () => {
        startedAt = performance.now();
      });
      socket.once('connect', () => this.#add(performance.now() - startedAt));
    };
  }

  /** Measures the tunnels that a proxy opens: its answer comes when it has a connection to the server. */
  readonly observeTunnel: Interceptor = (dispatch) => (options, handler) => {
    let sentAt = performance.now();
    return dispatch(
      options,
      delegateTo(handler, {
        onRequestStart: () => {
          sentAt = performance.now();
        },
        onRequestUpgrade: () => this.#add(performance.now() - sentAt),
      }),
    );
  };

  #add(ms: number): void {
    this.#measurements = [...this.#measurements.slice(1 - MAX_MEASUREMENTS), ms];
  }
}

/** The handler, with something done before some of its callbacks. */
function delegateTo(
  handler: Handler,
  before: Readonly<Partial<Record<'onRequestStart' | 'onResponseStart' | 'onRequestUpgrade', () => void>>>,
): Handler {
  return {
    onRequestStart: (...all) => {
      before.onRequestStart?.();
      handler.onRequestStart?.(...all);
    },
    onRequestUpgrade: (...all) => {
      before.onRequestUpgrade?.();
      handler.onRequestUpgrade?.(...all);
    },
    onResponseStart: (...all) => {
      before.onResponseStart?.();
      handler.onResponseStart?.(...all);
    },
    onResponseData: (...all) => handler.onResponseData?.(...all),
    onResponseEnd: (...all) => handler.onResponseEnd?.(...all),
    onResponseError: (...all) => handler.onResponseError?.(...all),
  };
}
