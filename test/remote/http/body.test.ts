/** The end of a body whose call is stopped, and the time that it waits. */
import { expect, it, onTestFinished, vi } from 'vitest';
import { JobtailError } from '../../../src/errors.ts';
import { CallStop, LimitedBody } from '../../../src/remote/http/body.ts';
import { Exchange } from '../../../src/remote/http/exchange.ts';

function bodyOf() {
  const target = { host: '127.0.0.1', port: '9' };
  const stop = new CallStop(new AbortController().signal, 60_000, target);
  const exchange = new Exchange({ countOpened: () => 1, connectMs: 60_000, headersMs: 60_000, onLate: () => {} });
  const controller = { aborted: false, paused: false, reason: null, abort: vi.fn(), pause: () => {}, resume: () => {} };
  exchange.onRequestStart(controller);
  const write = (bytes: Buffer | string) => exchange.onResponseData(controller, Buffer.from(bytes));
  const onBroken = vi.fn();
  const body = new LimitedBody(exchange, { stop, idleMs: 60_000, target, onBroken });
  const fail = (error: Error) => exchange.onResponseError(controller, error);
  return { body, stop, exchange, write, fail, onBroken, ...controller };
}

it('a body whose call is stopped in the moment of its end does not look complete', async () => {
  const { body, stop, exchange, write } = bodyOf();
  write('half');
  expect((await body.next()).value?.toString()).toBe('half');
  const last = body.next();
  setImmediate(() => {
    exchange.onResponseEnd();
    stop.stop(new JobtailError('timeout', 'too late'));
  });
  await expect(last).rejects.toMatchObject({ code: 'timeout' });
});

it.each([
  ['a connection that breaks', 'interrupted', 1],
  ['a limit that is over', 'timeout', 0],
] as const)('%s within a body is a failed attempt or not: %s', async (_, code, count) => {
  const { body, stop, fail, onBroken } = bodyOf();
  const next = body.next();
  if (code === 'timeout') stop.stop(new JobtailError('timeout', 'too late'));
  fail(Object.assign(new Error('other side closed'), { code: 'UND_ERR_SOCKET' }));
  await expect(next).rejects.toMatchObject({ code });
  expect(onBroken).toHaveBeenCalledTimes(count);
});

it('a body that is given up is received no further', async () => {
  const { body, write, abort } = bodyOf();
  write('begun');
  await body.next();
  await body.return();
  expect(abort).toHaveBeenCalledOnce();
});

it('a body that makes progress is not ended by the time that it waited before', async () => {
  let now = 0;
  // Each piece comes within the limit of 60 s, all of them do not.
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => (now += 25_000));
  onTestFinished(() => clock.mockRestore());
  const { body, write } = bodyOf();
  for (let pieces = 0; pieces < 5; pieces += 1) {
    setTimeout(() => write(Buffer.alloc(1024)), 20);
    expect((await body.next()).value).toHaveLength(1024);
  }
});
