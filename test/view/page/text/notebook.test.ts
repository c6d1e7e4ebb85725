import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cellsOf } from '../../../../src/view/page/text/notebook.ts';

describe('the cells of a notebook', () => {
  it('are its source and what it printed, as text', () => {
    const outputs = [
      { output_type: 'stream', text: ['one\n', 'two'] },
      { output_type: 'execute_result', data: { 'text/plain': '42', 'text/html': '<b>42</b>' } },
      { output_type: 'display_data', data: { 'image/png': 'iVBO' } },
      { output_type: 'error', ename: 'ValueError', evalue: 'no', traceback: [] },
    ];
    const cells = [
      { cell_type: 'markdown', source: '# Title' },
      { cell_type: 'code', execution_count: 3, source: ['a = 1\n', 'a'], outputs },
      { cell_type: 'code', execution_count: null, source: '' },
    ];
    expect(cellsOf(JSON.stringify({ nbformat: 4, cells }))).toEqual([
      { label: 'text', source: '# Title', outputs: [] },
      { label: 'In [3]', source: 'a = 1\na', outputs: ['one\ntwo', '42', '(image/png: not shown)', 'ValueError: no'] },
      { label: 'In [ ]', source: '', outputs: [] },
    ]);
  });

  it.each(['', 'no JSON', '[]', '{"cells": 3}', 'null'])('are none of %j', (text) => {
    expect(cellsOf(text)).toBeUndefined();
  });

  it('are text, whatever stands in their places', () => {
    fc.assert(
      fc.property(fc.array(fc.object()), (cells) => {
        for (const { label, source, outputs } of cellsOf(JSON.stringify({ cells })) ?? [])
          expect([label, source, ...outputs].every((text) => typeof text === 'string')).toBe(true);
      }),
    );
  });
});
