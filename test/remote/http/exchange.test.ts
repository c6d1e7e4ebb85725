/** What a slow reader does to the server, and what is measured of a body. */
import { expect, test } from 'vitest';
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
  abort: () => {},
});

function begun() {
  const asked: string[] = [];
  const controller = controllerOf(asked);
  const exchange = new Exchange({ countOpened: () => 0, connectMs: 60_000, headersMs: 60_000, onLate: () => {} });
  exchange.onRequestStart(controller);
  exchange.onResponseStart(controller, 200, {});
  return { asked, exchange, send: (bytes: number) => exchange.onResponseData(controller, Buffer.alloc(bytes)) };
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
  const { exchange, send } = begun();
  const target = { host: 'host', port: '1' };
  const stop = new CallStop(new AbortController().signal, 60_000, target);
  const measured: number[] = [];
  const body = new LimitedBody(exchange, {
    stop,
    idleMs: 60_000,
    target,
    measure: (bytes) => void measured.push(bytes),
  });
  for (const bytes of [1_000_001, 1_000_002]) send(bytes);
  for (let chunk = 0; chunk < 2; chunk++) await body.next();
  expect(measured).toEqual([1_000_001, 1_000_002]);
  await body.destroy();
});
