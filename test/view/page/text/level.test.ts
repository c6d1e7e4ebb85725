/** The level of a line of a log, from its text alone. */
import { describe, expect, it } from 'vitest';
import { levelOf } from '../../../../src/view/page/text/values.ts';

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
