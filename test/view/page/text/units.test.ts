import { describe, expect, it } from 'vitest';
import { counted, duration } from '../../../../src/view/page/text/units.ts';

describe('figures in words', () => {
  it.each([
    [-5_000, '0 s'],
    [59_000, '59 s'],
    [61_000, '1 min'],
    [2 * 3_600_000, '2 h'],
    [7_860_000, '2 h 11 min'],
    [3 * 86_400_000 + 4 * 3_600_000, '3 d 4 h'],
  ])('%d ms', (ms, words) => {
    expect(duration(ms)).toBe(words);
  });

  it('one and more', () => {
    expect([counted(1, 'line'), counted(12_345, 'line')]).toEqual(['1 line', '12,345 lines']);
  });
});
