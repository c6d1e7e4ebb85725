/** Bodies that are made while they are sent: piece by piece, to their end, or until the client goes. */
import { once } from 'node:events';
import { expect, it, onTestFinished, vi } from 'vitest';
import type { HttpContext } from '../../src/http/app.ts';
import { Refused } from '../../src/http/refused.ts';
import { HEARTBEAT_MS, jsonLines, newsLines, streamed } from '../../src/http/streams.ts';
import { until } from '../support/e2e-until.ts';

/** A body of these pieces, and what happened to it. */
function bodyOf(pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>, headers = {}) {
  const seen: unknown[] = [];
  const context = { env: { outgoing: { destroy: () => seen.push('connection broken') } } } as unknown as HttpContext;
  const onFailure = (error: unknown) => void seen.push(error);
  const response = streamed({ onFailure }, context, pieces, { headers, end: () => void seen.push('end') });
  return { response, seen };
}

it('a body has all its pieces, then ends once', async () => {
  const { response, seen } = bodyOf(
    jsonLines(
      (async function* () {
        yield* [{ a: 1 }, ['b']];
      })(),
    ),
    { etag: 'v1' },
  );
  expect(Object.fromEntries(response.headers)).toEqual({ 'cache-control': 'no-store', etag: 'v1' });
  expect(await response.text()).toBe('{"a":1}\n["b"]\n');
  expect(seen).toEqual(['end']);
  const kept = bodyOf([Buffer.from('all')], { 'cache-control': 'private' }).response;
  expect([kept.headers.get('cache-control'), await kept.text()]).toEqual(['private', 'all']);
});

it('a piece is made when the one before was taken, and none after the client went', async () => {
  const made: string[] = [];
  function* pieces() {
    try {
      for (const name of ['first', 'second', 'third']) {
        made.push(name);
        yield Buffer.from(name);
      }
    } finally {
      made.push('closed');
    }
  }
  const { response, seen } = bodyOf(pieces());
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  for (const name of ['first', 'second']) expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe(name);
  await new Promise((resolve) => setImmediate(resolve));
  expect(made).toEqual(['first', 'second']);
  await reader.cancel();
  expect([made, seen]).toEqual([['first', 'second', 'closed'], ['end']]);
});

const failure = new Error('the disk is gone');

it.each([
  ['a failure is reported, and breaks the connection', failure, [failure, 'connection broken', 'end']],
  ['content that was replaced breaks the connection', new Refused(409, 'replaced'), ['connection broken', 'end']],
])('%s', async (_, thrown, expected) => {
  const { response, seen } = bodyOf(
    (async function* () {
      yield* [];
      throw thrown;
    })(),
  );
  await response.text();
  expect(seen).toEqual(expected);
});

it('a piece that fails after the client went is no failure', async () => {
  const moments = new EventTarget();
  async function* pieces() {
    moments.dispatchEvent(new Event('begun'));
    await once(moments, 'gone');
    yield* [];
    throw failure;
  }
  const { response, seen } = bodyOf(pieces());
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const begun = once(moments, 'begun');
  const first = reader.read();
  await begun;
  const cancelled = reader.cancel();
  moments.dispatchEvent(new Event('gone'));
  await Promise.allSettled([first, cancelled]);
  await new Promise((resolve) => setImmediate(resolve));
  expect(seen.filter((each) => each !== 'end')).toEqual([]);
});

it('news goes out together, and an empty line where there is none for 15 s', async () => {
  let [now, looks] = [0, 0];
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
  onTestFinished(() => clock.mockRestore());
  const [waiting, over] = [[[]] as unknown[][], new AbortController()];
  const news = () => {
    looks++;
    return waiting.splice(0).flat();
  };
  const lines = newsLines(news, over.signal);
  const next = async () => Buffer.from((await lines.next()).value ?? '-').toString();
  expect(await next(), 'at once').toBe('\n');
  waiting.push([{ a: 1 }, 'b']);
  expect(await next()).toBe('{"a":1}\n"b"\n');
  let sent: string | undefined;
  const heartbeat = next().then((line) => (sent = line));
  now = HEARTBEAT_MS - 1;
  const before = looks;
  await until('two looks without news', () => looks >= before + 2);
  expect([HEARTBEAT_MS, sent]).toEqual([15_000, undefined]);
  now = HEARTBEAT_MS;
  expect(await heartbeat).toBe('\n');
  over.abort();
  expect(await next()).toBe('-');
});
