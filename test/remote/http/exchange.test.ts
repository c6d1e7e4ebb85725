/** A response as it comes: its timers, a slow reader, what is measured of a body, and how it ends. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { JobtailError } from '../../../src/errors.ts';
import { CallStop, LimitedBody } from '../../../src/remote/http/body.ts';
import { Exchange } from '../../../src/remote/http/exchange.ts';

/** Timers that keep this process alive. */
const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

test.each(['the header', 'the end', 'an error', 'a stop'])('no timer of a request is left after %s', async (what) => {
  const before = timers();
  const late: boolean[] = [];
  const limits = { connectMs: 600_000, headersMs: 600_000, onLate: (isSent: boolean) => void late.push(isSent) };
  const exchange = new Exchange({ countOpened: () => 0, ...limits });
  const controller = controllerOf([]);
  expect(timers()).toBe(before + 1);
  exchange.onRequestStart(controller);
  expect(timers()).toBe(before + 1);
  if (what === 'an error') exchange.onResponseError(controller, new Error('broken'));
  else if (what === 'a stop') exchange.stop(new Error('stopped'));
  else exchange.onResponseStart(controller, 200, {});
  expect(timers()).toBe(before);
  const target = { host: 'host', port: '1' };
  const stop = new CallStop(new AbortController().signal, 600_000, target);
  const body = new LimitedBody(exchange, { stop, idleMs: 600_000, target });
  const next = body.next();
  if (what === 'the header') exchange.onResponseData(controller, Buffer.from('x'));
  if (what === 'the end') exchange.onResponseEnd();
  await next.catch(() => undefined);
  if (what === 'the header') await body.return();
  expect(timers()).toBe(before);
  expect(late).toEqual([]);
});

const controllerOf = (asked: string[]) => ({
  ...{ aborted: false, reason: null, paused: false, rawHeaders: null, rawTrailers: null },
  pause: () => void asked.push('pause'),
  resume: () => void asked.push('resume'),
  abort: () => void asked.push('abort'),
});

/** An exchange that has begun, a body of its response, and what happens to both. */
function begun() {
  const asked: string[] = [];
  const controller = controllerOf(asked);
  const exchange = new Exchange({ countOpened: () => 0, connectMs: 60_000, headersMs: 60_000, onLate: () => {} });
  exchange.onRequestStart(controller);
  exchange.onResponseStart(controller, 200, {});
  const target = { host: 'host', port: '1' };
  const stop = new CallStop(new AbortController().signal, 60_000, target);
  const [onBroken, measure] = [vi.fn(), vi.fn()];
  const body = new LimitedBody(exchange, { stop, idleMs: 60_000, target, onBroken, measure });
  const fail = (error: Error) => exchange.onResponseError(controller, error);
  const send = (bytes: number) => exchange.onResponseData(controller, Buffer.alloc(bytes, 'x'));
  return { ...{ asked, exchange, stop, body, send, fail, onBroken, measure } };
}

test('a server is paused while four chunks wait for a slow reader, and goes on when they are read', async () => {
  const { asked, exchange, send } = begun();
  for (let chunk = 0; chunk < 3; chunk++) send(100);
  expect(asked).toEqual([]);
  send(100);
  expect(asked).toEqual(['pause']);
  for (let chunk = 0; chunk < 4; chunk++) await exchange.chunk();
  expect(asked).toEqual(['pause']);
  const next = exchange.chunk();
  expect(asked).toEqual(['pause', 'resume']);
  send(7);
  expect(await next).toHaveLength(7);
});

test('the bytes of each chunk of a body are measured', async () => {
  const { body, send, measure } = begun();
  for (const bytes of [1_000_001, 1_000_002]) send(bytes);
  for (let chunk = 0; chunk < 2; chunk++) await body.next();
  expect(measure.mock.calls.map(([bytes]) => bytes)).toEqual([1_000_001, 1_000_002]);
  await body.destroy();
});

test('a body whose call is stopped in the moment of its end does not look complete', async () => {
  const { body, stop, exchange, send } = begun();
  send(4);
  expect((await body.next()).value).toHaveLength(4);
  const last = body.next();
  setImmediate(() => {
    exchange.onResponseEnd();
    stop.stop(new JobtailError('timeout', 'too late'));
  });
  await expect(last).rejects.toMatchObject({ code: 'timeout' });
});

test.each([
  ['a connection that breaks', 'interrupted', 1],
  ['a limit that is over', 'timeout', 0],
] as const)('%s within a body is a failed attempt or not: %s', async (_, code, count) => {
  const { body, stop, fail, onBroken } = begun();
  const next = body.next();
  if (code === 'timeout') stop.stop(new JobtailError('timeout', 'too late'));
  fail(Object.assign(new Error('other side closed'), { code: 'UND_ERR_SOCKET' }));
  await expect(next).rejects.toMatchObject({ code });
  expect(onBroken).toHaveBeenCalledTimes(count);
});

test('a body that is given up is received no further', async () => {
  const { asked, body, send } = begun();
  send(5);
  await body.next();
  await body.return();
  expect(asked).toEqual(['abort']);
});

test('a body that makes progress is not ended by the time that it waited before, nor by that of its reader', async () => {
  let now = 0;
  // Two pieces are a progress. They come within the limit of 60 s, all of them do not.
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => (now += 25_000));
  onTestFinished(() => clock.mockRestore());
  const { body, send } = begun();
  for (let pieces = 0; pieces < 5; pieces += 1) {
    setTimeout(() => send(512), 20);
    expect((await body.next()).value).toHaveLength(512);
  }
});

test('the time of a response is that from the request on, without that for the connection', () => {
  let [now, opened] = [1_000, 3];
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
  onTestFinished(() => clock.mockRestore());
  const limits = { connectMs: 1_000, headersMs: 1_000, onLate: () => {} };
  const exchange = new Exchange({ countOpened: () => opened, ...limits });
  [now, opened] = [1_450, 4];
  exchange.onRequestStart(controllerOf([]));
  now += 162;
  exchange.onResponseStart(controllerOf([]), 200, {});
  expect([exchange.firstByteMs, exchange.isOnOpenConnection]).toEqual([162, false]);
});
