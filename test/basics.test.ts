/** Small parts that many modules use: texts for people, the pause after failures, work in turn, states of a line. */
import path from 'node:path';
import { expect, it } from 'vitest';
import { BackOff } from '../src/back-off.ts';
import { asJobtailError, ERROR_POLICIES } from '../src/errors.ts';
import { InTurn } from '../src/in-turn.ts';
import { jobTimeOf, latestMsOf, phaseOf, startedEarlyMs } from '../src/job-information.ts';
import { lastState, rowsOf, statesOf, withLastState } from '../src/line-states.ts';
import { showAge, showBytes } from '../src/numbers.ts';
import { printable } from '../src/printable.ts';
import { safeText } from '../src/redact.ts';
import { expectCases } from './support/errors.ts';

const FUNCTIONS: Readonly<Record<string, (...args: never[]) => unknown>> = {
  ...{ showBytes, showAge, lastState, withLastState, rowsOf, printable, safeText, phaseOf, jobTimeOf },
  latestMsOf: (text: string) => latestMsOf(jobTimeOf(text)),
  startedEarlyMs: (submitTime: string, startTime: string) =>
    startedEarlyMs({ submitTime: jobTimeOf(submitTime), startTime: jobTimeOf(startTime) }),
};

it('each function returns what is written in basics.txt', async () => {
  await expectCases(path.join(import.meta.dirname, 'basics.txt'), (written) => {
    const [, name = '', args] = /^(\w+) (.*)$/.exec(written) ?? [];
    return [`${JSON.stringify(FUNCTIONS[name]?.(...(JSON.parse(`[${args}]`) as never[])))}`];
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
  // What Node.js throws where the system fails.
  const [place, at] = [{ path: '/x' }, { address: '127.0.0.1', port: 80 }];
  const failed = [
    ...['ENOSPC', 'EDQUOT', 'EROFS', 'EACCES', 'EPERM', 'EFBIG', 'ENAMETOOLONG'].map((code) => [code, place] as const),
    ...['EIO', 'ESTALE', 'ENOENT', 'ENOTDIR', 'EMFILE', 'EEXIST', 'EXDEV'].map((code) => [code, place] as const),
    ...[['EADDRINUSE', at] as const, ['EACCES', { address: '/s' }] as const, ['EIO', {}] as const],
  ].map(([code, where]) => {
    const of = 'path' in where ? `, open '/x'` : ` ${Object.values(where).join(':')}`;
    return Object.assign(new Error(`${code}: its words${of}`), { code, syscall: 'open', ...where });
  });
  const others = [new DOMException('x', 'AbortError'), 'text', new Error('a defect'), { code: 'EIO', syscall: 'open' }];
  for (const thrown of [...failed, ...others, Object.assign(new Error('as code'), { code: 'ERR_X', syscall: 'x' })]) {
    const { code, message, hint, cause } = asJobtailError(thrown);
    rows.push(`${message} -> ${code}${cause === thrown ? '' : ', without its cause'}: ${hint}`);
  }
  const known = asJobtailError(failed[0]);
  expect(asJobtailError(known)).toBe(known);
  await expect(`${rows.join('\n')}\n`).toMatchFileSnapshot('error-codes.txt');
});
