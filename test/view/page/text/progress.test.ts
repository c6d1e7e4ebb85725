import { describe, expect, it } from 'vitest';
import { progressOf } from '../../../../src/view/page/text/values.ts';

describe('the last line of a progress file', () => {
  it.each([
    ['42 %', 0.42],
    ['54 % after 81 of 150 steps', 0.54],
    ['[####      ] 37.5%', 0.375],
    ['hotovo 12,5 %', 0.125],
    ['step 30 of 120', 0.25],
    ['krok 75 z 150 · 第75歩', 0.5],
    ['3/4', 0.75],
    ['epoch 2/8, loss 0.31', 0.25],
    ['100 % of 12 files', 1],
    ['line before\nlast 10 %\n', 0.1],
    ['old 10 %\rnew 90 %', 0.9],
  ])('%j says how far it is', (text, done) => {
    expect(progressOf(text)?.done).toBeCloseTo(done, 9);
  });

  it.each(['', 'starting', '2026/11/22 10:00', '120 %', '5 of 0', '7 of 3', 'v1.2/3.4', 'residual 6.667e-3'])(
    '%j does not',
    (text) => {
      expect(progressOf(text)).toBeUndefined();
    },
  );
});
