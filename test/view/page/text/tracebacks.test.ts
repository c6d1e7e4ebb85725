import { describe, expect, it } from 'vitest';
import { TextWindow } from '../../../../src/view/page/file/text-window.ts';
import { foldOf } from '../../../../src/view/page/text/tracebacks.ts';

function foldsOf(lines: readonly string[]) {
  const window = new TextWindow();
  window.replace({ start: 0, line: 0, beginsLine: true }, Buffer.from(`${lines.join('\n')}\n`));
  return lines.map((_, index) => foldOf(window.rows, index)?.lines ?? 0);
}

describe('the lines of a traceback', () => {
  it.each([
    [
      'of Python',
      ['Traceback (most recent call last):', '  File "a.py", line 1', '    f()', '    ^^^', 'ValueError: x'],
    ],
    [
      'of Java',
      ['java.io.IOException: x', '\tat a.B.c(B.java:1)', '\tat a.B.d(B.java:2)', '\tat a.B.e(B.java:3)', 'end'],
    ],
  ])('%s are folded between the first and the last one', (_, lines) => {
    expect(foldsOf(lines)).toEqual([0, 3, 3, 3, 0]);
  });

  it.each([
    ['indented text', ['config:', '  a: 1', '  b: 2', '  c: 3']],
    ['two lines', ['Traceback (most recent call last):', '  File "a.py", line 1', '    f()', 'ValueError: x']],
    ['more lines than any traceback has', ['Traceback (most recent call last):', ...Array(600).fill('  f()')]],
  ])('are none in %s', (_, lines) => {
    expect(new Set(foldsOf(lines))).toEqual(new Set([0]));
  });
});
