import { describe, expect, it } from 'vitest';
import { numberLines } from '../../../../src/view/page/text/values.ts';

describe('lines of numbers', () => {
  it('are found by what stands around their numbers, measured ones first', () => {
    const lines = ['iteration 1', 'residual  6.667e-3', 'iteration 2', 'residual  5.1e-3', 'iteration 3', 'the end'];
    expect(numberLines(lines)).toEqual([
      { words: 'residual #', index: 3, isMeasured: true },
      { words: 'iteration #', index: 4, isMeasured: false },
    ]);
  });

  it.each([
    ['CSV', ['1,2.5,-3', '2,2.6,-4'], '#,#,#'],
    ['as Fortran prints them', ['E = -1.0D+02', 'E = +.5D-1'], 'E = #'],
    ['a name with a digit', ['co2 1', 'co2 2'], 'co2 #'],
  ])('%s', (_, lines, words) => {
    expect(numberLines(lines).map((line) => line.words)).toEqual([words]);
  });

  it('are none that are alone of their kind, or that go on without an end', () => {
    expect(numberLines(['a 1', 'b 2', `c ${'1 '.repeat(9_000)}`, `c ${'1 '.repeat(9_000)}`])).toEqual([]);
  });
});
