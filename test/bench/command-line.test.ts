import { expect, test } from 'vitest';
import { countOf, numberOf, valuesOf } from '../../bench/command-line.ts';

const OPTIONS = { quick: { type: 'boolean', default: false }, rounds: { type: 'string' } } as const;

test('the options of the benchmark are read', () => {
  expect(valuesOf(OPTIONS, ['--quick', '--rounds', '3'])).toEqual({ quick: true, rounds: '3' });
  expect([numberOf('--minutes', '0.5'), countOf('--rounds', '3')]).toEqual([0.5, 3]);
});

test.each([
  [() => valuesOf(OPTIONS, ['--fast']), "Unknown option '--fast': the options are --quick, --rounds"],
  [() => valuesOf(OPTIONS, ['result']), "Unexpected argument 'result': the options are --quick, --rounds"],
  [
    () => valuesOf(OPTIONS, ['--rounds']),
    "Option '--rounds <value>' argument missing: the options are --quick, --rounds",
  ],
  [() => countOf('--rounds', 'many'), '--rounds takes a number above 0, found "many"'],
  [() => countOf('--rounds', '1.5'), '--rounds takes a whole number, found "1.5"'],
  [() => numberOf('--minutes', '-1'), '--minutes takes a number above 0, found "-1"'],
])('what is wrong with them is reported in one line (%#)', (read, message) => {
  expect(read).toThrow(expect.objectContaining({ code: 'usage', message }));
});
