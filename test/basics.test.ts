/** Small parts that many modules use: numbers for people, the pause after failures, work in turn, states of a line. */
import { describe, expect, it } from 'vitest';
import { BackOff } from '../src/back-off.ts';
import { ERROR_POLICIES } from '../src/errors.ts';
import { InTurn } from '../src/in-turn.ts';
import { lastState, statesOf, withLastState } from '../src/line-states.ts';
import { showAge, showBytes } from '../src/numbers.ts';

describe('a number for people', () => {
  it.each([
    [1023, '1023 B'],
    [1024, '1.0 KiB'],
    [2 ** 40, '1.0 TiB'],
    [2 ** 51, '2048.0 TiB'],
  ])('%i bytes are shown as %s', (bytes, shown) => {
    expect(showBytes(bytes)).toBe(shown);
  });

  it.each([
    [89, '89 s'],
    [90, '2 min'],
    [90 * 60 - 1, '90 min'],
    [90 * 60, '2 h'],
    [48 * 3600 - 1, '48 h'],
    [48 * 3600, '2 d'],
  ])('an age of %i seconds is shown as %s', (seconds, shown) => {
    expect(showAge(seconds * 1000)).toBe(shown);
  });
});

it.each([
  [0, [75, 150, 225, 225]],
  [0.5, [87.5, 175, 262.5, 262.5]],
])('the pause after a failure doubles up to its maximum, with jitter (%d)', (jitter, expected) => {
  const options = { firstMs: 100, maxMs: 300, nowMs: () => 1000, random: () => jitter };
  const backOff = new BackOff(options);
  const pauses = expected.map(() => {
    backOff.lengthen();
    return backOff.remainingMs;
  });
  expect(pauses).toEqual(expected);
});

it('work on one thing waits for its turn, and work on another one does not', async () => {
  const turns = new InTurn<string>();
  const { signal } = new AbortController();
  const order: string[] = [];
  const work = (key: string, name: string) =>
    turns.run(key, signal, async () => {
      order.push(`${name} begins`);
      await new Promise((resolve) => setImmediate(resolve));
      order.push(`${name} ends`);
    });
  await Promise.all([work('a', 'first'), work('a', 'second')]);
  expect(order).toEqual(['first begins', 'first ends', 'second begins', 'second ends']);
  await turns.run('a', signal, () => turns.run('b', signal, async () => {}));
});

it.each([
  ['10%\r20%', '20%', '20%'],
  ['10%\r20%\r', '20%', '20%\r'],
  ['10%\b\b\b20%', '20%', '10%\b\b\b20%'],
  ['\r\r', '', '\r\r'],
])('the last state of the line %j is %j', (line, last, withEnd) => {
  expect([lastState(line), withLastState(line)]).toEqual([last, withEnd]);
});

it('a long state of a line comes in pieces that overlap, without a gap', () => {
  const state = Array.from({ length: 1_000 }, (_, index) => String.fromCharCode(0x4e00 + index)).join('');
  const pieces = statesOf(`10%\r${state}`, 400);
  expect(pieces).toEqual(['10%', ...[0, 144, 288, 432, 576, 720].map((at) => state.slice(at, at + 400))]);
  expect([statesOf('\r'), statesOf(state, 1_000), statesOf(state.slice(0, 401), 400)]).toEqual([
    [''],
    [state],
    [state.slice(0, 400), state.slice(144, 401)],
  ]);
});

it('each error code leads to what the table says', async () => {
  const rows = Object.entries(ERROR_POLICIES).map(([code, { exitCode, outage, ofOneFile, ...others }]) => {
    const flags = Object.entries(others).flatMap(([flag, isSet]) => (isSet ? [flag] : []));
    return [
      code,
      `exit ${exitCode}`,
      `next file: ${ofOneFile}`,
      ...(outage === null ? [] : [`the service ${outage}`]),
      ...flags,
    ].join(', ');
  });
  await expect(`${rows.join('\n')}\n`).toMatchFileSnapshot('error-codes.txt');
});
