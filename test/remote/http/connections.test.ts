/** Connections between requests: how long they stay, what a closed one costs, what they measure; and attempts. */
import { getEventListeners } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Exchange } from '../../../src/remote/http/exchange.ts';
import { HttpClient, readBody } from '../../../src/remote/http/http-client.ts';
import { SPACING_MS, Spacing } from '../../../src/remote/http/spacing.ts';
import { RoundTrip } from '../../../src/remote/http/ways.ts';
import { closedAtEnd, startTcpServer, type WireServer } from '../../support/wire-server.ts';

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const serve = async (server: Promise<WireServer>): Promise<WireServer> => closedAtEnd(await server);

function newClient() {
  const limits = { connectMs: 5_000, headersMs: 5_000, idleMs: 5_000, totalMs: 10_000 };
  const client = closedAtEnd(new HttpClient({ limits }));
  return async (url: string, isRepeatable?: boolean): Promise<string> => {
    const { signal } = new AbortController();
    const more = isRepeatable === undefined ? {} : { isRepeatable };
    const got = await client.request({ method: 'POST', url, headers: {}, body: 'x', signal, ...more });
    const body = (await readBody(got, 1_000)).toString();
    // The connection is free again a moment later.
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
    return body;
  };
}

test('a connection without a request is used again after a minute, and closed before two', async () => {
  const server = await serve(
    startTcpServer((socket) => socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'))),
  );
  // The timers of the connections are those of the global object, and begin with the first answer.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const ask = newClient();
  await ask(server.url, true);
  await vi.advanceTimersByTimeAsync(60_000);
  await ask(server.url, true);
  expect(server.connections()).toBe(1);
  await vi.advanceTimersByTimeAsync(120_000);
  await ask(server.url, true);
  expect(server.connections()).toBe(2);
});

describe('a connection that the server closes when a request arrives', () => {
  const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello';

  /** Answers the first request of each connection if it is `live`, and closes it at the next one. */
  function stale(asked: number[], live: (connection: number) => boolean, end: (socket: Socket) => void) {
    return serve(
      startTcpServer((socket) => {
        const connection = asked.push(0) - 1;
        socket.on('data', () => {
          const requests = (asked[connection] ?? 0) + 1;
          asked[connection] = requests;
          if (requests === 1 && live(connection)) socket.write(OK);
          else end(socket);
        });
      }),
    );
  }

  const ways: [string, (socket: Socket) => void][] = [
    ['in order', (socket) => void socket.end()],
    ['with a reset', (socket) => void socket.resetAndDestroy()],
  ];

  test.each(ways)('%s costs no error: the request is sent once more on a new one', async (_, end) => {
    const asked: number[] = [];
    const server = await stale(asked, () => true, end);
    const ask = newClient();
    for (let request = 0; request < 3; request++) expect(await ask(server.url, true)).toBe('hello');
    // The new ones are not kept: the first one may have been closed for a reason that holds for them, too.
    expect(asked[0]).toBe(2);
    expect(Math.max(...asked)).toBe(2);
  });

  test.each(ways)('%s is an error if the request must not be sent twice', async (_, end) => {
    const asked: number[] = [];
    const server = await stale(asked, () => true, end);
    const ask = newClient();
    // One of which nothing is said must not, either: a sign-in, a notification.
    expect(await ask(server.url)).toBe('hello');
    await expect(ask(server.url)).rejects.toMatchObject({ code: 'interrupted' });
    expect(await ask(server.url, false)).toBe('hello');
    await expect(ask(server.url, false)).rejects.toMatchObject({ code: 'interrupted' });
    expect(asked).toEqual([2, 2]);
  });

  test.each(ways)('%s is an error if it was new, or the second one, too', async (_, end) => {
    const asked: number[] = [];
    const server = await stale(asked, (connection) => connection === 0, end);
    const ask = newClient();
    expect(await ask(server.url, true)).toBe('hello');
    await expect(ask(server.url, true)).rejects.toMatchObject({ code: 'interrupted' });
    expect(asked).toEqual([2, 1]);
    await expect(ask(server.url, true)).rejects.toMatchObject({ code: 'interrupted' });
    expect(asked).toEqual([2, 1, 1]);
  });

  test('in the middle of an answer is an error: the request was answered', async () => {
    const asked: number[] = [];
    const server = await stale(
      asked,
      () => true,
      (socket) => {
        socket.write(OK.slice(0, -2));
        socket.end();
      },
    );
    const ask = newClient();
    expect(await ask(server.url, true)).toBe('hello');
    await expect(ask(server.url, true)).rejects.toMatchObject({ code: 'interrupted' });
    expect(asked).toEqual([2]);
  });
});

describe('what is measured, in a time that the test sets', () => {
  function clock() {
    const at = { ms: 1_000 };
    vi.spyOn(performance, 'now').mockImplementation(() => at.ms);
    return at;
  }
  const controller = {} as Parameters<NonNullable<import('undici').Dispatcher.DispatchHandler['onRequestStart']>>[0];

  test('is the time from the request to its answer, without that for the connection', () => {
    const at = clock();
    const opened = { count: 3 };
    const exchange = new Exchange({
      countOpened: () => opened.count,
      connectMs: 1_000,
      headersMs: 1_000,
      onLate: () => {},
    });
    at.ms += 450;
    opened.count += 1;
    exchange.onRequestStart(controller);
    at.ms += 162;
    exchange.onResponseStart(controller, 200, {});
    expect(exchange.firstByteMs).toBe(162);
    expect(exchange.isOnOpenConnection).toBe(false);
  });

  test('is the round trip that the opening of a connection takes, without the resolving of the name', async () => {
    const server = await serve(startTcpServer(() => undefined));
    const at = clock();
    const roundTrip = new RoundTrip();
    expect(roundTrip.ms).toBe(0);
    const open = async (lookupMs: number, connectMs: number) => {
      const opened = roundTrip.measuring((_, callback) => {
        const socket = connect(server.port, 'localhost', () => callback(null, socket));
        socket.prependListener('lookup', () => {
          at.ms += lookupMs;
        });
        socket.prependListener('connect', () => {
          at.ms += connectMs;
        });
        return socket;
      });
      await new Promise<void>((resolve) => {
        opened({ hostname: 'localhost', protocol: 'http:', port: String(server.port) }, (_, socket) => {
          socket?.destroy();
          setImmediate(resolve);
        });
      });
    };
    await open(300, 150);
    expect(roundTrip.ms).toBe(150);
    await open(0, 400);
    expect(roundTrip.ms, 'a delay on the way makes a single one slower').toBe(150);
    for (let times = 0; times < 4; times++) await open(0, 400);
    expect(roundTrip.ms, 'the way has changed').toBe(400);
  });
});

describe('while a server does not answer', () => {
  beforeEach(() => void vi.useFakeTimers());

  /** Each attempt has its own, as in the client. */
  const newSignal = () => new AbortController().signal;

  function attempts(spacing: Spacing, count: number) {
    const begun = { count: 0 };
    for (let made = 0; made < count; made += 1) void spacing.turn(newSignal()).then(() => (begun.count += 1));
    return begun;
  }

  const newSpacing = () => new Spacing(() => Date.now());

  test('many attempts at a server that has not answered yet begin one after the other', async () => {
    const begun = attempts(newSpacing(), 10);
    await vi.advanceTimersByTimeAsync(0);
    expect(begun.count).toBe(1);
    await vi.advanceTimersByTimeAsync(3 * SPACING_MS);
    expect(begun.count).toBe(4);
  });

  test('the first answer lets all of them begin, and those after it', async () => {
    const spacing = newSpacing();
    const begun = attempts(spacing, 10);
    await vi.advanceTimersByTimeAsync(0);
    spacing.responded();
    const next = attempts(spacing, 5);
    await vi.advanceTimersByTimeAsync(0);
    expect([begun.count, next.count]).toEqual([10, 5]);
  });

  test('a failed attempt delays the next one; a broken open connection delays only the one after that', async () => {
    const spacing = newSpacing();
    spacing.responded();
    spacing.doubted();
    const afterDoubt = attempts(spacing, 2);
    await vi.advanceTimersByTimeAsync(SPACING_MS - 1);
    expect(afterDoubt.count).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    spacing.failed();
    const afterFailure = attempts(spacing, 1);
    await vi.advanceTimersByTimeAsync(SPACING_MS - 1);
    expect([afterDoubt.count, afterFailure.count]).toEqual([2, 0]);
    await vi.advanceTimersByTimeAsync(1);
    expect(afterFailure.count).toBe(1);
    // A failure is a doubt as well.
    spacing.responded();
    spacing.failed();
    const afterResponse = attempts(spacing, 1);
    await vi.advanceTimersByTimeAsync(SPACING_MS - 1);
    expect(afterResponse.count).toBe(0);
  });

  test('an attempt that waits for its turn is stopped at once', async () => {
    const spacing = newSpacing();
    await spacing.turn(newSignal());
    const stop = new AbortController();
    const waiting = expect(spacing.turn(stop.signal)).rejects.toThrow('stopped');
    stop.abort(new Error('stopped'));
    await waiting;
    expect(vi.getTimerCount()).toBe(0);
    const { signal } = new AbortController();
    const next = spacing.turn(signal);
    await vi.advanceTimersByTimeAsync(SPACING_MS);
    await next;
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});
