/** Connections between requests: how long they stay, what a closed one costs, what they measure; and attempts. */
import { getEventListeners } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { asJobtailError } from '../../../src/errors.ts';
import { HttpClient, readBody } from '../../../src/remote/http/http-client.ts';
import { Spacing } from '../../../src/remote/http/spacing.ts';
import { RoundTrip } from '../../../src/remote/http/ways.ts';
import { HeldClock, hurry } from '../../support/held-clock.ts';
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

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello';
const WAYS: Readonly<Record<string, (socket: Socket) => void>> = {
  'in order': (socket) => void socket.end(),
  'with a reset': (socket) => void socket.resetAndDestroy(),
  'in the middle of an answer': (socket) => void socket.end(OK.slice(0, -2)),
};

/** The first requests of so many connections are answered; any other request is what a connection is closed at. */
type Stale = [how: string, what: string, live: number, calls: (boolean | undefined)[], done: string, asked: number[]];

test.each<Stale>([
  ...['in order', 'with a reset'].flatMap((how) => [
    [how, 'costs no error: the request is sent once more', 9, [true, true], 'hello, hello', [2, 1]] as Stale,
    [how, 'is an error if it was new', 1, [true, true, true], 'hello, interrupted, interrupted', [2, 1, 1]] as Stale,
  ]),
  // One of which nothing is said must not, either: a sign-in, a notification.
  ...Object.keys(WAYS).map((how) => {
    const calls = [undefined, undefined, false, false];
    return [how, 'is an error if not repeatable', 9, calls, 'hello, interrupted, hello, interrupted', [2, 2]] as Stale;
  }),
  ['in the middle of an answer', 'is an error: it was answered', 9, [true, true], 'hello, interrupted', [2]],
])('a connection that the server closes %s when a request arrives %s', async (how, _, live, calls, done, counts) => {
  hurry();
  const asked: number[] = [];
  const server = await serve(
    startTcpServer((socket) => {
      const connection = asked.push(0) - 1;
      socket.on('data', () => {
        const requests = (asked[connection] ?? 0) + 1;
        asked[connection] = requests;
        if (requests === 1 && connection < live) socket.write(OK);
        else WAYS[how]?.(socket);
      });
    }),
  );
  const ask = newClient();
  const found: string[] = [];
  for (const isRepeatable of calls)
    found.push(await ask(server.url, isRepeatable).catch((error: unknown) => asJobtailError(error).code));
  expect([found.join(', '), asked]).toEqual([done, counts]);
});

test('the round trip is measured as the opening of a connection, without the resolving of the name', async () => {
  const server = await serve(startTcpServer(() => undefined));
  let now = 1_000;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  const pass = (ms: number) => () => {
    now += ms;
  };
  const roundTrip = new RoundTrip();
  expect(roundTrip.ms).toBe(0);
  const open = async (lookupMs: number, connectMs: number) => {
    const opened = roundTrip.measuring((_, callback) => {
      const socket = connect(server.port, 'localhost', () => callback(null, socket));
      socket.prependListener('lookup', pass(lookupMs));
      socket.prependListener('connect', pass(connectMs));
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

/** Attempts at a server: what happens, the milliseconds that pass, and how many have begun by then. */
test.each([
  ['one after the other, while it has not answered', 'begin 10, 1, +1200, 4'],
  ['all at once, after its first answer', 'begin 10, 1, responded, begin 5, 15'],
  [
    'late after a failure, and after the first one behind a broken connection',
    'responded, doubted, begin 2, +399, 1, +1, failed, begin 1, +399, 2, +1, 3',
  ],
  ['late after a failure, which is a doubt as well', 'responded, failed, begin 1, +399, 0'],
])('attempts begin %s', async (_, story) => {
  const clock = new HeldClock();
  const spacing = new Spacing(clock);
  let begun = 0;
  for (const step of story.split(', ')) {
    const [word = '', count = word] = step.split(' ');
    // Each attempt has a signal of its own, as in the client.
    for (let made = 0; word === 'begin' && made < Number(count); made++)
      void spacing.turn(new AbortController().signal).then(() => begun++);
    if (word === 'responded' || word === 'doubted' || word === 'failed') spacing[word]();
    await clock.pass(word.startsWith('+') ? Number(word) : 0);
    if (/^\d/.test(word)) expect(begun, step).toBe(Number(word));
  }
});

test('an attempt that waits for its turn is stopped at once', async () => {
  const clock = new HeldClock();
  const spacing = new Spacing(clock);
  await spacing.turn(new AbortController().signal);
  const stop = new AbortController();
  const waiting = expect(spacing.turn(stop.signal)).rejects.toThrow('stopped');
  stop.abort(new Error('stopped'));
  await waiting;
  expect(clock.timers).toBe(0);
  const { signal } = new AbortController();
  const next = spacing.turn(signal);
  await clock.passWhile(next);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});
