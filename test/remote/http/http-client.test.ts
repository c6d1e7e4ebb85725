import { getEventListeners } from 'node:events';
import path from 'node:path';
import { describe, expect, test, vi } from 'vitest';
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
import { Spacing } from '../../../src/remote/http/spacing.ts';
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

test('each response is read, or is an error, as is written in responses.txt', async () => {
  await expectCases(path.join(import.meta.dirname, 'responses.txt'), async (written) => {
    const [, scheme = 'http', stops, limit, ms, text = '', more] =
      /^(?:(https) )?(?:(?:(stop)|(call|idle|headers|connect) (\d+)): )?(.*?)(?:\.\.\.(.*))?$/.exec(written) ?? [];
    const bytesOf = (lines: string) =>
      lines.replaceAll(/ ?\/\/ ?/g, '\r\n').replaceAll(/(.)\{(\d+)\}/g, (_, one, times) => one.repeat(Number(times)));
    const [stop, timings] = [new AbortController(), [] as ResponseTiming[]];
    const stopNow = () => setImmediate(() => stops && stop.abort());
    const server = await serve(
      startTcpServer((socket) => {
        socket.once('data', () => {
          if (scheme === 'http') socket.write(bytesOf(text));
          if (more === undefined) socket.end();
          const flow = more ? setInterval(() => socket.write(bytesOf(more)), 5) : undefined;
          socket.on('close', () => clearInterval(flow));
          if (!text.includes(' 200 ')) stopNow();
        });
      }),
    );
    // Short only for what is to end by it: a busy machine may need longer for all else.
    const short = text.includes(' 200 ') && / \/\/ ?\/\//.test(text) ? { idleMs: 80 } : { headersMs: 80 };
    const limits = limit || stops || more === undefined ? { [`${limit}Ms`]: Number(ms) } : short;
    const onResponse = (timing: ResponseTiming) => void (timings.push(timing) && stopNow());
    const http = client(limits, { onResponse });
    const asked = get(server.url.replace('http:', `${scheme}:`), { signal: stop.signal });
    const result = await http
      .request({ ...asked, ...(limit === 'call' && { totalMs: Number(ms) }) })
      .then(async ({ body, ...got }) => `${JSON.stringify(got)} ${await readBody({ body, ...got }, 1_500)}`)
      .then((line) => [line], errorLines);
    // Nothing of them stays with the signal, which lives as long as the agent.
    expect(getEventListeners(stop.signal, 'abort')).toEqual([]);
    if (more !== undefined && scheme === 'http') await until(() => server.open() === 0);
    await server.close();
    // On a busy machine, the time of a call may be over before the header is there.
    const told = limit === 'call' ? [] : timings.map(({ firstByteMs: _, workMs: __, ...timing }) => timing);
    return [...result, ...told.map((timing) => JSON.stringify(timing))].map((line) =>
      line.replaceAll(`:${server.port}`, '').replace(/only \d+ bytes? in 600/, 'only N bytes in 600'),
    );
  });
});

function errorLines(thrown: unknown): string[] {
  const { code, message, hint } = asJobtailError(thrown);
  return [`${code}: ${message}`, `(${hint})`];
}

test('close closes all connections, and calls in flight end', async () => {
  const server = await serve(startTcpServer(() => undefined));
  const http = client();
  const call = http.request(get(server.url));
  const outcome = expect(call).rejects.toMatchObject({ code: 'aborted' });
  const failed = vi.spyOn(Spacing.prototype, 'failed');
  await until(() => server.open() === 1);
  await http.close();
  await outcome;
  expect(failed.mock.calls, 'a call that is stopped delays no other').toEqual([]);
  failed.mockRestore();
  await until(() => server.open() === 0);
});

test('a call without an end has no limit', async () => {
  const server = await serve(startHttpServer((_, response) => answer(response, 200, '', 'x')));
  const got = await client({ totalMs: 1 }).request(get(server.url, { totalMs: Number.POSITIVE_INFINITY }));
  expect(String(await readBody(got, 1))).toBe('x');
});

test('a signal that has fired already sends nothing', async () => {
  const server = await serve(startHttpServer((_, response) => answer(response, 200, '', 'x')));
  const signal = AbortSignal.abort();
  await expect(client().request(get(server.url, { signal }))).rejects.toMatchObject({ code: 'aborted' });
  expect(server.connections()).toBe(0);
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

  test.each(['ftp://host/', 'nonsense'])('the address %s, which is none', async (url) => {
    const refused = { code: 'config', hint: 'write it as https://host/path' };
    await expect(client().request(get(url))).rejects.toMatchObject(refused);
  });
});
