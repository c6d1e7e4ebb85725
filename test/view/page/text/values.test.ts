/** What the text of a line alone shows: the level of a line of a log, and how far a progress file is. */
import { describe, expect, it } from 'vitest';
import { levelOf, progressOf } from '../../../../src/view/page/text/values.ts';

describe('a line of a log', () => {
  it.each([
    ['2026-11-25 10:00:00,123 ERROR solver: no convergence', 'error'],
    ['Nov 25 10:00:00 node1 slurmstepd: error: Detected 1 oom_kill event', 'error'],
    ['[warning] the mesh is coarse', 'warning'],
    ['warning: unused variable', 'warning'],
    ['main.c:3:4: error: expected ;', 'error'],
    ['time=10:00 level=debug msg="x"', 'debug'],
    ['{"level":"Error","msg":"x"}', 'error'],
    ['Traceback (most recent call last):', 'error'],
    ['ValueError: could not convert', 'error'],
    ['INFO - 0 ERROR lines', 'info'],
    ['TRACE enter', 'debug'],
    ...['FATAL', 'CRITICAL', 'SEVERE'].map((word) => [`${word}: x`, 'error']),
    ...['WARN', 'WARNING'].map((word) => [`${word}: x`, 'warning']),
    ['NOTICE: x', 'info'],
  ])('%j names its level', (line, level) => {
    expect(levelOf(line)).toBe(level);
  });

  it.each([
    '',
    'train error: 0.0213',
    'error = 1e-3',
    'no errors',
    'the error of the last step',
    'TERROR and WARNINGS',
    `${'x'.repeat(120)} ERROR`,
    'information',
  ])('%j names none', (line) => {
    expect(levelOf(line)).toBeUndefined();
  });
});

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
