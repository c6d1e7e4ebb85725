import { getEventListeners } from 'node:events';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { asJobtailError } from '../../../src/errors.ts';
import { describeFailure } from '../../../src/remote/http/failures.ts';
import {
  HttpClient,
  type HttpClientOptions,
  type HttpLimits,
  type HttpRequest,
  type ResponseTiming,
  readBody,
} from '../../../src/remote/http/http-client.ts';
import { expectCases } from '../../support/errors.ts';
import {
  answer,
  closedAtEnd,
  startHttpServer,
  startTcpServer,
  until,
  type WireServer,
} from '../../support/wire-server.ts';

const LIMITS: HttpLimits = { connectMs: 5000, headersMs: 5000, idleMs: 5000, totalMs: 20_000 };

function client(limits: Partial<HttpLimits> = {}, more: Partial<HttpClientOptions> = {}): HttpClient {
  return closedAtEnd(new HttpClient({ ...more, limits: { ...LIMITS, ...limits } }));
}

const serve = async (server: Promise<WireServer>): Promise<WireServer> => closedAtEnd(await server);

function get(url: string, more: Partial<HttpRequest> = {}): HttpRequest {
  return { method: 'GET', url, headers: {}, signal: new AbortController().signal, ...more };
}

/** A server that writes `head` for each request and then leaves the connection to `then`. */
function raw(head: string, then: (socket: import('node:net').Socket) => void = () => undefined): Promise<WireServer> {
  return serve(
    startTcpServer((socket) => {
      socket.once('data', () => {
        socket.write(head);
        then(socket);
      });
    }),
  );
}

test('each response is read, or is an error, as is written in responses.txt', async () => {
  await expectCases(path.join(import.meta.dirname, 'responses.txt'), async (written) => {
    const isOpen = written.endsWith('...');
    const text = (isOpen ? written.slice(0, -3) : written).replaceAll(/ ?\/\/ ?/g, '\r\n');
    const server = await raw(
      text.replaceAll(/(.)\{(\d+)\}/g, (_, one, times) => one.repeat(Number(times))),
      (socket) => void (isOpen || socket.end()),
    );
    const timings: ResponseTiming[] = [];
    // Short only for what is to end by it: a busy machine may need longer for all else.
    const limit = text.includes('\r\n\r\n') && text.includes(' 200 ') ? { idleMs: 80 } : { headersMs: 80 };
    const http = client(isOpen ? limit : {}, { onResponse: (timing) => timings.push(timing) });
    const result = await http
      .request(get(server.url))
      .then(async ({ body, ...got }) => `${JSON.stringify(got)} ${await readBody({ body, ...got }, 1_500)}`)
      .then((line) => [line], errorLines);
    const told = timings.map(({ firstByteMs: _, workMs: __, ...timing }) => JSON.stringify(timing));
    await server.close();
    return [...result, ...told].map((line) => line.replaceAll(`:${server.port}`, ''));
  });
});

function errorLines(thrown: unknown): string[] {
  const { code, message, hint } = asJobtailError(thrown);
  return [`${code}: ${message}`, `(${hint})`];
}

describe('an answer', () => {
  test('that is larger by one byte than allowed is given up, and is not cut', async () => {
    let go = () => {};
    const server = await serve(
      startHttpServer((_, response) => {
        response.write(Buffer.alloc(1_000));
        go = () => void response.write('x');
      }),
    );
    const got = await client().request(get(server.url));
    const read = readBody(got, 1_000);
    read.catch(() => {});
    await new Promise((resolve) => setImmediate(resolve));
    go();
    await expect(read).rejects.toMatchObject({ code: 'answer-too-large' });
    await until(() => server.open() === 0);
  });
});

describe('connections', () => {
  test('are kept for the next call', async () => {
    const server = await serve(startHttpServer((_, response) => answer(response, 200, '', 'x')));
    const http = client();
    const { signal } = new AbortController();
    for (let count = 0; count < 5; count += 1) await readBody(await http.request(get(server.url, { signal })), 10);
    // Nothing of them stays with the signal, which lives as long as the agent.
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    // One is still busy for a moment after its answer has been read.
    expect(server.connections()).toBeLessThanOrEqual(2);
  });

  test('are all closed by close, and calls in flight end', async () => {
    const server = await serve(startTcpServer(() => undefined));
    const http = client();
    const call = http.request(get(server.url));
    const outcome = expect(call).rejects.toMatchObject({ code: 'aborted' });
    await until(() => server.open() === 1);
    await http.close();
    await outcome;
    await until(() => server.open() === 0);
  });
});

describe('a call ends by its limit', () => {
  test('of the header, whatever comes before it', async () => {
    const server = await raw('', (socket) => {
      const flow = setInterval(() => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'), 5);
      socket.on('close', () => clearInterval(flow));
    });
    await expect(client({ headersMs: 80 }).request(get(server.url))).rejects.toMatchObject({ code: 'timeout' });
  });

  test('of a body that drips', async () => {
    const head = 'HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n';
    // What came before is no progress of what drips.
    const server = await raw(`${head}${'x'.repeat(5_000)}`, (socket) => {
      const drip = setInterval(() => socket.write('x'), 5);
      socket.on('close', () => clearInterval(drip));
    });
    const got = await client({ idleMs: 600 }).request(get(server.url));
    await expect(readBody(got, 100_000)).rejects.toThrow(/sent only \d+ bytes in 600 ms$/);
  });

  test('of silence, which does not count the time the reader takes', async () => {
    const server = await serve(startHttpServer((_, response) => answer(response, 200, '', Buffer.alloc(500_000))));
    const got = await client({ idleMs: 150 }).request(get(server.url));
    let length = 0;
    for await (const chunk of got.body) {
      if (length === 0) await new Promise((resolve) => setTimeout(resolve, 300));
      length += chunk.length;
    }
    expect(length).toBe(500_000);
  });

  test('of the whole call, which a request can set itself', async () => {
    const server = await raw('HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n', (socket) => {
      const flow = setInterval(() => socket.write('x'.repeat(2000)), 5);
      socket.on('close', () => clearInterval(flow));
    });
    const http = client({ totalMs: 1_000_000 });
    // On a busy machine the time may be over before the header is there.
    const read = http.request(get(server.url, { totalMs: 200 })).then((got) => readBody(got, 10_000_000));
    await expect(read).rejects.toMatchObject({
      code: 'timeout',
      message: `127.0.0.1:${server.port} did not respond completely within 200 ms`,
    });
    const unlimited = await http.request(get(server.url, { totalMs: Number.POSITIVE_INFINITY }));
    await unlimited.body[Symbol.asyncIterator]().return?.();
  });

  test('of the handshake', async () => {
    const server = await serve(startTcpServer(() => undefined));
    const url = server.url.replace('http:', 'https:');
    await expect(client({ connectMs: 80 }).request(get(url))).rejects.toMatchObject({
      code: 'unreachable',
      message: `127.0.0.1:${server.port} did not accept a connection in time`,
    });
  });
});

describe('a signal', () => {
  test('ends a call that waits for its connection, and so does the limit of the whole call', async () => {
    const server = await serve(startTcpServer(() => undefined));
    const url = server.url.replace('http:', 'https:');
    const stop = new AbortController();
    const http = client({ connectMs: 1_000_000 });
    const stopped = expect(http.request(get(url, { signal: stop.signal }))).rejects.toMatchObject({ code: 'aborted' });
    const limited = expect(http.request(get(url, { totalMs: 80 }))).rejects.toMatchObject({
      code: 'timeout',
      message: `127.0.0.1:${server.port} did not respond completely within 80 ms`,
    });
    await until(() => server.open() > 0);
    stop.abort();
    await Promise.all([stopped, limited]);
  });

  test('that has fired already sends nothing', async () => {
    const server = await serve(startHttpServer((_, response) => answer(response, 200, '', 'x')));
    const signal = AbortSignal.abort();
    await expect(client().request(get(server.url, { signal }))).rejects.toMatchObject({ code: 'aborted' });
    expect(server.connections()).toBe(0);
  });

  test('ends a call that waits for its header', async () => {
    const server = await serve(startTcpServer(() => undefined));
    const stop = new AbortController();
    const outcome = expect(client().request(get(server.url, { signal: stop.signal }))).rejects.toMatchObject({
      code: 'aborted',
    });
    await until(() => server.open() === 1);
    stop.abort();
    await outcome;
    await until(() => server.open() === 0);
  });

  test('ends a call that waits for its body', async () => {
    const server = await raw('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc');
    const stop = new AbortController();
    const got = await client().request(get(server.url, { signal: stop.signal }));
    const chunks = got.body[Symbol.asyncIterator]();
    expect((await chunks.next()).value?.toString()).toBe('abc');
    const outcome = expect(chunks.next()).rejects.toMatchObject({ code: 'aborted' });
    stop.abort();
    await outcome;
    await until(() => server.open() === 0);
  });
});

describe('a failure has its code:', () => {
  const codedOf = (code: string) => Object.assign(new Error('why'), { code });
  test('of the system and of OpenSSL, as is written in failures.txt', async () => {
    await expectCases(path.join(import.meta.dirname, 'failures.txt'), (written) => {
      const [, via, code, isRead, words = 'why'] = /^(?:(proxy|by) )?(\w+)( read)?(?: (.*))?$/.exec(written) ?? [];
      const thrown = Object.assign(new Error(words), { code, ...(isRead && { syscall: 'read' }) });
      const targets = { proxy: { isProxy: true }, by: { by: 'p:8' } };
      return errorLines(describeFailure(thrown, { host: 'h', port: '1', ...targets[via as keyof typeof targets] }));
    });
  });

  test.each([
    [new AggregateError([codedOf('EPERM'), codedOf('ECONNREFUSED')]), 'unreachable', 'connection refused'],
    [new AggregateError([]), 'interrupted', 'failed: AggregateError'],
    [new TypeError('a defect'), 'interrupted', 'the call to h:1 failed: TypeError: a defect'],
    ['a text', 'interrupted', 'failed: without an error message'],
    [new Error('WebAssembly.Memory(): out of memory'), 'local-io', 'no call to h:1: this process'],
  ])('of the program, %s, is %s', (thrown, code, message) => {
    const error = describeFailure(thrown, { host: 'h', port: '1' });
    expect(error).toMatchObject({ code, message: expect.stringContaining(message) });
  });

  test('nobody listens', async () => {
    const server = await startTcpServer(() => undefined);
    await server.close();
    const request = get(`${server.url}?secret`);
    await expect(client().request(request)).rejects.toMatchObject({
      code: 'unreachable',
      message: `127.0.0.1:${server.port} cannot be reached: connection refused (ECONNREFUSED)`,
    });
    expect(getEventListeners(request.signal, 'abort')).toEqual([]);
  });

  test.each(['ftp://host/', 'nonsense'])('the address %s, which is none', async (url) => {
    const refused = { code: 'config', hint: 'write it as https://host/path' };
    await expect(client().request(get(url))).rejects.toMatchObject(refused);
  });
});
